"""What a stop of the daemon would interrupt: when it may exit by itself, and when `stop --when-idle` has to wait.

| a session in which | a stop when idle | an autostarted daemon leaves |
|---|---|---|
| a model request, a call or a command runs, an early summary included | waits | no |
| an extension has calls made, with a run or without | waits | no |
| a run only waits for people, about its own calls | stops: they are asked again, and the run goes on as they decide | no |
| a run only waits for subagents, and these for people, or they were drained | stops: all of them go on | no |
| a question of a command that runs, about a host | waits | no |
| a question is left from before a restart, with a deadline | stops: the next start ends it, if it is over | no |
| a job runs, which ends with the daemon | stops: the model is told | no |
| such a question without a deadline, or nothing, is there | stops | yes |
"""

import logging
from contextlib import nullcontext

from zotd.permissions.pending import lasting
from zotd.runs.worker import Intake
from zotd.sessions.announcements import moved
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.sessions.workspace_arrival import store
from zotd.wire.errors import CommandError

HANDED_OVER = "ended because another daemon goes on with the session"
"""Why jobs ended, as the model reads it."""

MOVED = "another daemon goes on with the session"
"""Why clients are disconnected."""

NOT_STORED = "its files could not be stored for another daemon, so none goes on with the session by itself"
"""Why clients are disconnected, too."""

log = logging.getLogger(__name__)


def is_busy(manager: Manager) -> bool:
    """A stop now would cut something."""
    return manager.nested.count > 0 or any(map(would_be_cut, manager.loaded))


def drain(manager: Manager) -> None:
    """Refuse new work in all sessions, and stop runs where they can be resumed; `is_busy` says whether any still run."""
    manager.is_stopping = True
    for session in manager.loaded:
        if session.ephemeral and session.approvals.pending():
            session.abort()  # no client can decide any more, and an ephemeral session is not asked about again
        session.work.drain(Intake.DRAINING)


async def hand_over(manager: Manager, session: Session) -> None:
    """Have another daemon go on with a session of which a run was active, as soon as it has stopped."""
    sync = session.checkpoints.sync
    with nullcontext() if sync is None else sync.leaving():
        await session.stopped()
        await session.ledger.settled.wait()
        await session.jobs.end_all(HANDED_OVER, tasks=False)
        assert manager.journal is not None
        ownership, reason = manager.journal.ownership, MOVED
        if sync is not None:
            ownership.prepare_to_end(
                without=[session.id]
            )  # until its files are stored: else others go on with older ones
        try:
            await store(session)
            ownership.give(session.id)
        except CommandError as error:
            log.warning("session %s is not handed over: %s", session.id, error)
            reason = NOT_STORED
        session.ledger.live([moved(session, reason)])
        manager.give_up(session)


def is_awaited(session: Session) -> bool:
    """Something of it goes on, or will at a certain time, without anybody's command."""
    return (
        session.work.is_active
        or not session.work.early.ended.is_set()
        or session.approvals.is_due
        or bool(session.jobs.running)
    )


def would_be_cut(session: Session) -> bool:
    """Something of the session runs that the next daemon could not go on with."""
    if not session.work.early.ended.is_set() and session.work.intake is Intake.OPEN:  # a drain does not wait for it
        return True
    pending, stored = session.approvals.pending(), lasting(session.ledger.transcript)
    is_kept = not session.ephemeral and all(one.approval in stored for one in pending)
    if not session.work.is_active or (is_kept and session.work.is_parked(len(pending))):
        return False
    return not _only_waits_for_subagents(session)


def _only_waits_for_subagents(session: Session) -> bool:
    """Its run waits for subagents, and the next daemon can go on with all of them."""
    waiting, run = session.children.waiting_calls, session.work.run_info()
    return session.children.all_outlast and run is not None and {call.id for call in run.calls} == waiting
