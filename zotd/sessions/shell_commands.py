"""Running a command of a person in a session: when that is possible, and with what."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import records
from zotd.runs.queue import Job, SubmitRequest
from zotd.runs.shell import ShellCommand, ShellContext
from zotd.runs.worker import Intake
from zotd.sessions.session import Session
from zotd.wire.api import Started
from zotd.wire.errors import Code, CommandError

CALLS_WAIT = "calls of a run that was cut wait for their results; /continue first, or run it for yourself only (!!)"


class Order(Struct, frozen=True):
    """A command of a person."""

    command: str
    context: bool
    """The model is to see it and its output with the next prompt."""
    sender: str
    request: SubmitRequest


class ShellPlanner(Protocol):
    """Knows what commands of a session run with."""

    async def tool_context(self, session: Session) -> ShellContext:
        """The session's directory, environment and limits."""
        ...


async def run_for_person(
    session: Session, order: Order, planner: ShellPlanner, *, accepted: Callable[[Started], None]
) -> None:
    """Run it now; `accepted` is called when it is on record, before it runs. What is sent meanwhile waits for its end.

    A request that is on record already, also from before a restart, is only answered.

    Raises:
        CommandError: something runs, or the model's history cannot take it in now.
        StorageError: the journal cannot be written.
    """
    if session.work.intake is not Intake.OPEN:
        raise session.work.intake.refusal()
    if session.ledger.damage is not None:
        raise CommandError(Code.BLOCKED, str(session.ledger.damage))
    if (first := order.request.known(session.ledger.transcript)) is not None:
        accepted(Started(started=True, run=first.input))
        return
    if session.work.is_active:
        raise CommandError(Code.BUSY, "the session is busy; run the command after the run, or abort it")
    if order.context and session.ledger.transcript.open_calls:  # nothing may stand between a call and its result
        raise CommandError(Code.CONFLICT, CALLS_WAIT)
    session.is_quieted = False
    run = ids.new("r")
    record = records.ShellStarted(
        time=rfc3339(),
        id=run,
        command=order.command,
        context=order.context,
        sender=order.sender,
        request_id=order.request.id,
        digest=order.request.digest if order.request.id else None,
    )
    shell = ShellCommand(
        record, session.ledger, grounds=lambda: planner.tool_context(session), rest=lambda: _rest(session)
    )
    await session.work.enter(Job(accepted, shell=shell, run=run), first=True)


def _rest(session: Session) -> str:
    """What the session is when the command is over and nothing else runs."""
    if session.approvals.pending():
        return "waiting"
    transcript = session.ledger.transcript
    return "held" if transcript.held or transcript.interrupted or transcript.waiting else "idle"
