"""Loads the transcript of a session, and repairs what a crash has cut (`docs/durability.md`, After a crash)."""

import asyncio

from zotd.clock import rfc3339
from zotd.core.ports import SessionRow
from zotd.ledger.ledger import Ledger
from zotd.permissions.approvals import SessionApprovals
from zotd.runs import recovery
from zotd.runs.queue import Job, Queue
from zotd.sessions.jobs import SessionJobs
from zotd.wire import events
from zotd.wire.api import Started

PAGE_BYTES = 256 * 1024
"""Events that are read at a time."""


class Loading:
    """Of one session. Raises StorageError from the journal."""

    def __init__(self, ledger: Ledger, queue: Queue, approvals: SessionApprovals, jobs: SessionJobs) -> None:
        """The queue, the approvals and the jobs get what the journal holds of them."""
        self._ledger = ledger
        self._queue = queue
        self._approvals = approvals
        self._jobs = jobs
        self._lock = asyncio.Lock()

    @property
    def is_going_on(self) -> bool:
        """Whether the transcript is being loaded or repaired, so that what it has found may not be shown yet."""
        return self._lock.locked()

    async def load(self) -> None:
        """Have the transcript in memory; after a crash, give every cut call its result and say what was cut."""
        if self._ledger.loaded and not self.is_going_on:
            return  # at once, so that commands stay in their order: a lock would let those that wait for it go first
        async with self._lock:
            if not self._ledger.loaded:
                row = self._ledger.row
                self._ledger.load(await self._ledger.journal.records(row.id, row.base))
                await self._repair()
                await self._jobs.repair()

    async def reload(self, row: SessionRow) -> None:
        """Begin anew from what the journal holds, if it could not write; the ledger keeps its followers."""
        missed = await self._missed(row)
        if self._ledger.failure is not None:
            self._ledger.reset(row, events.DECODER.decode_lines(missed), missed)
            self._queue.clear()  # what waits is in the journal; an earlier attempt to load may have queued it
            if row.state != "idle" or self._jobs.has_lost:
                await self.load()

    async def _missed(self, row: SessionRow) -> bytes:
        """Return what is stored and was not shown, as NDJSON; mostly nothing.

        A database that was lost in the middle of a commit may have stored it, and could not say so.
        """
        seq, found = self._ledger.shown_seq, []
        while seq < row.seq:
            seq, lines = await self._ledger.journal.events_after(row.id, seq, PAGE_BYTES)
            found.append(lines)
        return b"".join(found)

    async def _repair(self) -> None:
        transcript = self._ledger.transcript
        partial, begun = await self._partial(), recovery.reply_begun(transcript)
        items = recovery.repairs(transcript, partial)
        for item in transcript.waiting.values():
            self._queue.restore(Job(repeated, item, stored=True))
        restored = self._approvals.restore(transcript)
        items = [*begun, *recovery.beside_unbilled(transcript, rfc3339()), *restored, *items]
        waits = len(self._queue) > 0
        if waits and not transcript.held:
            items.append(self._queue.record(held=True))
        is_cut = transcript.interrupted or (transcript.run_open and transcript.can_resume)
        rest = rest_of(self._approvals, held=waits or is_cut)
        if items or self._ledger.row.state != rest:
            await self._ledger.write(items, durable=False, state=rest)

    async def _partial(self) -> str:
        """Return the stored text of a reply that a crash has cut; empty if there is none."""
        found, sent = await self._ledger.journal.partial(self._ledger.row.id), self._ledger.transcript.in_flight
        is_its = found is not None and sent is not None and (found.run, found.step) == (sent.run, sent.step)
        return found.text if found is not None and is_its else ""


def rest_of(approvals: SessionApprovals, *, held: bool) -> str:
    """Return the state of a session in which nothing runs; `held`: something waits for a person to go on."""
    if approvals.pending():
        return "waiting"
    return "held" if held else "idle"


def repeated(_: Started) -> None:
    """Take an answer whose receiver had it already: that of an input from before a restart."""
