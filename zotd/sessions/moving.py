"""Moves a session to another daemon of the database, while this one goes on (`docs/postgresql.md`).

    begun: nothing new starts ──> at rest: its run has stopped, or waits for people ──> another daemon has it
                                                                      └──> that one has ended: it goes on here

The session leaves memory in both cases. What is sent to it meanwhile is refused, and clients send it again.
"""

import asyncio
import logging
from collections.abc import Sequence

from zotd.core.ports import StorageError
from zotd.runs.worker import Intake
from zotd.sessions.announcements import moved
from zotd.sessions.boot_recovery import receive
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.sessions.shutdown import HANDED_OVER, MOVED, would_be_cut
from zotd.sessions.workspace_arrival import store
from zotd.store.members import FleetMember, MemberLoad
from zotd.store.ownership import Handover
from zotd.wire.errors import Code, CommandError

STAYS = "the session was not moved, because its files cannot be stored; it stays here"
"""Why clients are disconnected: the session is loaded anew."""

log = logging.getLogger(__name__)


def chosen(loads: Sequence[MemberLoad], wanted: str) -> MemberLoad:
    """Return the running daemon with this name, or of this machine or home; the only other one if `wanted` is empty.

    Raises CommandError if there is none, or more than one.
    """
    running = [load for load in loads if load.state == "running"]
    if not any(not load.is_this for load in running):
        raise CommandError(Code.CONFLICT, "no other daemon has the same journal, so none could go on with the session")
    found = [load for load in running if wanted in _names(load.member)] if wanted else _others(running)
    if len(found) == 1:
        return found[0]
    names = ", ".join(load.member.name for load in found or running)
    if not wanted:
        raise CommandError(Code.BAD_REQUEST, f"say to which daemon: {names}")
    if found:
        raise CommandError(Code.CONFLICT, f'"{wanted}" is not unique; it could be {names}')
    raise CommandError(Code.NOT_FOUND, f'no running daemon is called "{wanted}"; there are {names}')


def begin(session: Session) -> None:
    """Let nothing start any more in the session, because it is to be moved; raises CommandError if it cannot be."""
    if session.ephemeral:
        raise CommandError(Code.CONFLICT, "an ephemeral session is not stored, so it cannot be moved")
    if session.ledger.row.parent is not None:
        raise CommandError(
            Code.CONFLICT, f"a subagent goes where its session is; move {session.ledger.row.parent.session}"
        )
    if jobs := session.jobs.running:
        raise CommandError(
            Code.CONFLICT, f"work in the background would end ({', '.join(jobs)}); wait for it, or stop it first"
        )
    if session.work.intake is not Intake.OPEN:
        raise session.work.intake.refusal()
    session.work.drain(Intake.MOVING)


async def finish(manager: Manager, session: Session, member: FleetMember, *, was_active: bool) -> bool:
    """Give the session to that daemon as soon as it rests. False: that daemon has ended, and the session goes on here.

    `was_active`: a run or a command was active when it was begun. The clients that follow the session are disconnected.
    """
    await _rest(manager, session)
    session.approvals.freeze()  # the other daemon asks again
    await session.jobs.end_all(HANDED_OVER)  # begun by the last step
    await session.ledger.settled.wait()
    transcript = session.ledger.transcript
    has_failed = transcript.held and not transcript.interrupted  # and inputs wait for a person
    goes_on = was_active and not session.is_quieted and not has_failed
    try:
        await store(session)
    except CommandError as error:
        log.warning("session %s was not moved: %s", session.id, error)
        await _stay(manager, session, goes_on=goes_on)
        raise
    for child in _below(manager, session):
        await _give(manager, child, member, goes_on=False)
    if await _give(manager, session, member, goes_on=goes_on):
        return True
    log.warning("session %s was not moved, because the daemon %s has ended", session.id, member.name)
    await receive(manager, Handover(session.id, goes_on))
    return False


async def _stay(manager: Manager, session: Session, *, goes_on: bool) -> None:
    """Let the session go on here, as soon as the shared repository answers."""
    session.ledger.live([moved(session, STAYS)])
    manager.give_up(session)
    if session.work.is_active:
        session.abort()
    await receive(manager, Handover(session.id, goes_on))


async def _give(manager: Manager, session: Session, member: FleetMember, *, goes_on: bool) -> bool:
    """Let the session go, whether the other daemon can take it or not; return whether it has."""
    assert manager.journal is not None
    try:
        is_given = await manager.journal.ownership.move(session.id, member, goes_on=goes_on)
    except StorageError as error:
        log.warning("session %s was not moved: %s", session.id, error)
        is_given = False
    session.ledger.live([moved(session, MOVED)])
    manager.give_up(session)
    if session.work.is_active:
        session.abort()  # ends the task of a run that waits for people, which can record nothing any more
    return is_given


async def _rest(manager: Manager, session: Session) -> None:
    """Wait until nothing runs that the other daemon could not go on with."""
    await session.work.early.ended.wait()  # it is paid for
    changed = asyncio.Event()
    stop_listening = manager.listen(lambda _: changed.set())
    try:
        # A subagent that waits for a person is not moved: it is answered here first.
        while would_be_cut(session) or session.children.waiting_calls:
            await changed.wait()
            changed.clear()
    finally:
        stop_listening()


def _below(manager: Manager, session: Session) -> Sequence[Session]:
    """Return the sessions of its subagents, and of theirs, that are in memory and at rest."""
    found, families = list[Session](), {session.id}
    rest = [one for one in manager.loaded if one.ledger.row.parent is not None and not one.work.is_active]
    while children := [one for one in rest if one.ledger.row.parent and one.ledger.row.parent.session in families]:
        found += children
        families = {one.id for one in children}
        rest = [one for one in rest if one.id not in families]
    return found


def _names(member: FleetMember) -> set[str]:
    machine, _, home = member.name.partition(":")
    return {member.name, machine, home}


def _others(running: Sequence[MemberLoad]) -> list[MemberLoad]:
    return [load for load in running if not load.is_this]
