"""Rewinding a session: what the model sees moves to what it saw at an earlier message. Nothing is deleted."""

import asyncio
from collections.abc import Callable

from zotd.checkpoints.outcome import WhenChanged
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.lineage import RewindPoint, events_left
from zotd.core.plan import returned
from zotd.history.past import Past, past_at
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.worker import Intake
from zotd.sessions.errands import run_alone
from zotd.sessions.file_restores import undo_after
from zotd.sessions.plans import renewed
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.api import FilesRestored
from zotd.wire.errors import Code, CommandError


async def rewind(session: Session, seq: int, *, accepted: Callable[[], None]) -> None:
    """Go back to the message `seq`; `accepted` is called when that is safe on disk.

    Raises:
        CommandError: something runs, there is no such message, or calls had no result yet at it.
        StorageError: the journal cannot be read or written.
    """
    past = await _target(session, seq)
    await go_back(session.ledger, past, accepted=accepted)


async def rewind_with_files(
    session: Session, seq: int, when_changed: WhenChanged, *, accepted: Callable[[FilesRestored], None]
) -> None:
    """Undo what the runs behind the message `seq` have changed in files, and go back to it.

    Raises:
        CommandError: as `rewind` and `file_restores.undo` do; nothing is changed then.
        StorageError: as `rewind` does; the files may be restored already.
    """
    past = await _target(session, seq)

    async def work() -> None:
        done = await undo_after(session, past.seq, when_changed)
        await go_back(session.ledger, past, accepted=lambda: accepted(done))

    await run_alone(session, work)


async def _target(session: Session, seq: int) -> Past:
    await session.load()
    _refuse_when_busy(session)
    past = await past_at(session.ledger.journal, session.ledger.row, seq, whole=True)
    _refuse_when_busy(session)  # something may have begun meanwhile
    return past


def go_back(ledger: Ledger, past: Past, *, accepted: Callable[[], None] | None = None) -> asyncio.Future[None]:
    """Record it; `past` is whole and of this ledger's session, whose transcript is loaded and has no open call."""
    record = records.RewindRow(time=rfc3339(), to=past.number, seq=past.seq)
    here = RewindPoint(ledger.row.records + 1, record.to, ledger.row.seq + 1, record.seq)
    plan = returned(past.plan, ledger.row.plan)
    return ledger.write(
        [Shown(record, [events.Rewound(past.seq)]), *renewed(ledger.row, plan)],
        durable=True,
        context=past.context,
        accepted=accepted,
        past=past.fold,
        state=ledger.transcript.rest,
        abandoned=events_left([*past.rewinds, here]),
        plan=plan,
    )


def _refuse_when_busy(session: Session) -> None:
    if session.work.intake is not Intake.OPEN:
        raise session.work.intake.refusal()
    if session.ledger.damage is not None:
        raise CommandError(Code.BLOCKED, str(session.ledger.damage))
    if session.work.is_active:
        raise CommandError(Code.BUSY, "the session is busy; rewind it after the run, or abort it")
    if session.ledger.transcript.open_calls:
        raise CommandError(Code.BUSY, "tool calls of an interrupted run are pending; continue or abort it first")
