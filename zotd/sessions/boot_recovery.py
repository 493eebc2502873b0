"""After a start: looks into the sessions that the daemon before was in the middle of (`docs/durability.md`).

They are repaired, and then wait for a person; with `resume = "auto"` they go on by themselves.
"""

import logging
from collections.abc import Sequence

from zotd.core.ports import StorageError
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.store.ownership import Handover
from zotd.wire.api import Started
from zotd.wire.errors import CommandError

CUT = ("running", "waiting")
"""States of sessions that a daemon did not get to end."""

log = logging.getLogger(__name__)


def cut_states(*, resumes: bool) -> Sequence[str]:
    """Return the states of sessions that are looked into after their daemon has ended."""
    return (*CUT, "held") if resumes else CUT


async def recover(manager: Manager, *, resumes: bool) -> None:
    """Repair every session that was cut off; `resumes`: and go on with each, also with those cut off earlier."""
    assert manager.journal is not None
    ownership = manager.journal.ownership
    for state in cut_states(resumes=resumes):
        for key in await ownership.adopt(state):
            await _recover(manager, key, resumes=resumes)
    for key in await ownership.adopt_with_jobs():
        await _recover(manager, key, resumes=False)
        if resumes:
            await _resume_tasks(manager, key)


async def recover_these(manager: Manager, sessions: Sequence[str], *, resumes: bool) -> None:
    """Repair sessions that were cut off when their daemon ended; `resumes`: and go on with each."""
    for key in sessions:
        await _recover(manager, key, resumes=resumes)
        if resumes:
            await _resume_tasks(manager, key)


async def receive(manager: Manager, handover: Handover) -> None:
    """Go on with a session as the daemon would have that has handed it over, also with inputs that wait."""
    await _recover(manager, handover.session, resumes=handover.goes_on, with_inputs=True)
    if handover.goes_on:
        await _resume_tasks(manager, handover.session)


async def _recover(manager: Manager, key: str, *, resumes: bool, with_inputs: bool = False) -> None:
    try:
        session = await manager.get(key)
        await session.load()  # a client that attaches at the same time may be repairing it already
        waits = with_inputs and bool(session.work.queue.items())
        if resumes and (session.ledger.transcript.interrupted or waits):
            await _go_on(session)
    except (CommandError, StorageError) as error:  # this one waits; the others go on
        log.warning("session %s was not recovered: %s", key, error)


async def _resume_tasks(manager: Manager, key: str) -> None:
    try:
        await manager.planner.offers.resume_tasks(await manager.get(key))
    except (CommandError, StorageError) as error:
        log.warning("the subagents of session %s were not resumed: %s", key, error)


async def _go_on(session: Session) -> None:
    log.info("session %s resumes where it was interrupted", session.id)
    await session.go_on(accepted=_unheard)


def _unheard(_: Started) -> None:
    """No client waits for the answer."""
