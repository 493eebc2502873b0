"""Work of a session that is no run, such as an undo: nothing else of the session runs meanwhile."""

from collections.abc import Awaitable, Callable

from zotd.runs.queue import Job
from zotd.runs.worker import Intake
from zotd.sessions.session import Session
from zotd.wire.api import Started
from zotd.wire.errors import Code, CommandError


async def run_alone(session: Session, errand: Callable[[], Awaitable[None]]) -> None:
    """Run `errand`, which answers its sender itself; what is sent meanwhile waits for its end.

    Raises:
        CommandError: a run is in progress or was cut, or the errand has failed.
    """
    ledger = session.ledger
    if session.work.intake is not Intake.OPEN:
        raise session.work.intake.refusal()
    if ledger.failure is not None:
        raise CommandError(Code.STORAGE_BLOCKED, f"the journal cannot be written: {ledger.failure}")
    if ledger.damage is not None:
        raise CommandError(Code.BLOCKED, str(ledger.damage))
    if session.work.is_active:
        raise CommandError(Code.BUSY, "the session is busy; wait for the end of the run, or abort it")
    if ledger.transcript.open_calls:
        raise CommandError(Code.BUSY, "tool calls of an interrupted run are pending; continue or abort it first")
    await session.work.enter(Job(_answers_itself, errand=errand), first=True)


def _answers_itself(_: Started) -> None:
    """The errand has answered."""
