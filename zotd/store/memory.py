"""A journal in memory, with the same order, paging and replay as the one on disk.

It holds the records of ephemeral sessions until `delete`. `zot rpc` uses it without reading from it.
"""

import secrets
from collections.abc import Callable, Sequence

from msgspec import Struct

from zotd.core.lineage import RewindPoint, Span, holds
from zotd.core.ports import JournalEntry, PartialText, SessionRow, StorageError, Stored
from zotd.core.records import AnyRecord, RewindRow
from zotd.store import partials, slices
from zotd.store.batch import check_continues
from zotd.store.epoch import EPOCH_BYTES
from zotd.store.queries import MAX_SEQ
from zotd.wire.base import ENCODER


class _Kept(Struct):
    row: SessionRow
    entries: list[JournalEntry]
    partial: PartialText | None = None


class Memory:
    """`core.ports.Journal` in memory."""

    is_immediate = True
    """`done` is called before `commit` returns."""
    check_lease: Callable[[], None] | None = None
    """Nothing else has the sessions."""

    def __init__(self, *, keeps: bool = True) -> None:
        """With `keeps=False` records are dropped, for `zot rpc`: it never reads them, and would otherwise grow."""
        self._keeps = keeps
        self._epoch = secrets.token_hex(EPOCH_BYTES)
        self._sessions: dict[str, _Kept] = {}
        self.history = _History(self._entries, self._epoch)

    @property
    def epoch(self) -> str:
        """Random for each object, so that no cursor outlives it."""
        return self._epoch

    def commit(
        self,
        row: SessionRow,
        entries: Sequence[JournalEntry],
        *,
        durable: bool,  # noqa: ARG002  (memory survives neither a crash nor a power failure)
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Append `entries` and replace the row; like the journal on disk, refuse what does not continue the session."""
        kept = self._sessions.get(row.id)
        if self._keeps:  # else nothing is stored that could be continued in a wrong way
            try:
                check_continues(row, entries, records=kept.row.records if kept else 0, seq=kept.row.seq if kept else 0)
            except StorageError as error:
                done(error)
                return
        if kept is None:
            kept = self._sessions[row.id] = _Kept(row, [])
        kept.row = row
        if self._keeps:
            kept.entries.extend(entries)
        if kept.partial is not None and any(map(partials.is_replaced_by, entries)):
            kept.partial = None
        done(None)

    async def records(self, session: str, start: int) -> list[AnyRecord]:
        """Return the records from number `start` on, oldest first."""
        # Numbers begin at 1 and have no gaps.
        return [entry.record for entry in self._entries(session)[max(start, 1) - 1 :]]

    async def events_after(self, session: str, seq: int, limit_bytes: int) -> tuple[int, bytes]:
        """Return events after `seq` as NDJSON, those of at least one record if any, and the `seq` they reach."""
        shown = ((e.first_seq, e.last_seq, e.events) for e in self._entries(session) if e.events)
        return slices.after(shown, seq, limit_bytes)

    async def messages_before(
        self, session: str, seq: int | None, limit: int, left: Sequence[Span] = ()
    ) -> list[bytes]:
        """Return the newest `limit` message events below `seq`, without those in `left`; see `core.ports.Journal`."""
        shown = (
            (e.first_seq, e.events)
            for e in reversed(self._entries(session))
            if e.messages and not holds(left, e.first_seq)
        )
        return slices.newest_messages(shown, seq, limit)

    def keep_partial(self, session: str, partial: PartialText) -> None:
        """Store the text of a running step; ignored, as on disk, for a session that does not exist."""
        kept = self._sessions.get(session)
        if kept is not None and self._keeps:
            kept.partial = partial

    async def partial(self, session: str) -> PartialText | None:
        """Return the partial text of the running step, if any."""
        kept = self._sessions.get(session)
        return kept.partial if kept else None

    def damage(self, session: str) -> None:
        """Return None, since memory does not get damaged."""

    async def row(self, session: str) -> SessionRow | None:
        """Return the index row of the session with exactly this id, or None."""
        kept = self._sessions.get(session)
        return kept.row if kept else None

    async def delete(self, session: str) -> None:
        """Delete the session with its records; does nothing if there is none."""
        self._sessions.pop(session, None)

    def _entries(self, session: str) -> Sequence[JournalEntry]:
        kept = self._sessions.get(session)
        return kept.entries if kept else ()


class _History:
    """`core.ports.RecordReader` of a journal in memory."""

    def __init__(self, entries: Callable[[str], Sequence[JournalEntry]], epoch: str) -> None:
        self._entries = entries
        self._epoch = epoch

    async def holds_to(self, session: str, epoch: str) -> int | None:  # noqa: ARG002  (one epoch for all sessions)
        return MAX_SEQ if epoch == self._epoch else None

    async def entries(self, session: str, after: int, limit_bytes: int) -> list[Stored]:
        return list(slices.first(map(_stored, self._entries(session)[after:]), limit_bytes))

    async def record_at(self, session: str, seq: int) -> int | None:
        shown = (e.number for e in self._entries(session) if e.first_seq and e.first_seq <= seq <= e.last_seq)
        return next(shown, None)

    async def rewinds(self, session: str) -> list[RewindPoint]:
        return [
            RewindPoint(entry.number, entry.record.to, entry.first_seq, entry.record.seq)
            for entry in self._entries(session)
            if isinstance(entry.record, RewindRow)
        ]


def _stored(entry: JournalEntry) -> Stored:
    body = ENCODER.encode(entry.record)
    return Stored(entry.number, entry.record, body, entry.first_seq, entry.events, entry.messages)
