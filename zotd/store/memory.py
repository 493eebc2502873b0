"""The journal of sessions that are not stored: the same order, paging and replay, without a disk.

Ephemeral sessions and `zot rpc` use it. It holds what its sessions recorded until `delete`, or as long as it lives.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zotd.core.ports import Entry, Row, StorageError
from zotd.core.records import AnyRecord
from zotd.store import slices
from zotd.store.batch import check_continues
from zotd.store.schema import EPOCH_BYTES


@dataclass(slots=True)
class _Kept:
    row: Row
    entries: list[Entry]


class Memory:
    """`core.ports.Journal` in memory; `done` is called before `commit` returns."""

    def __init__(self) -> None:
        self._epoch = secrets.token_hex(EPOCH_BYTES)
        self._sessions: dict[str, _Kept] = {}

    @property
    def epoch(self) -> str:
        """Made with this object: no cursor outlives it."""
        return self._epoch

    def commit(
        self,
        row: Row,
        entries: Sequence[Entry],
        *,
        durable: bool,  # noqa: ARG002  (nothing here survives anything)
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Keep `entries` and the row; refused, as on disk, when it does not continue what is kept."""
        kept = self._sessions.get(row.id)
        try:
            check_continues(row, entries, records=kept.row.records if kept else 0, seq=kept.row.seq if kept else 0)
        except StorageError as error:
            done(error)
            return
        if kept is None:
            kept = self._sessions[row.id] = _Kept(row, [])
        kept.row = row
        kept.entries.extend(entries)
        done(None)

    async def records(self, session: str, start: int) -> list[AnyRecord]:
        """The records from number `start` on, oldest first."""
        return [entry.record for entry in self._entries(session)[max(start, 1) - 1 :]]

    async def events_after(self, session: str, seq: int, limit_bytes: int) -> tuple[int, bytes]:
        """Events after `seq` as NDJSON, at least one record's when there are any; and the `seq` they reach."""
        shown = ((e.first_seq, e.last_seq, e.events) for e in self._entries(session) if e.events)
        return slices.after(shown, seq, limit_bytes)

    async def messages_before(self, session: str, seq: int | None, limit: int) -> list[bytes]:
        """The newest `limit` message events with a `seq` below (None: of all), oldest first, a JSON line each."""
        shown = ((e.first_seq, e.events) for e in reversed(self._entries(session)) if e.messages)
        return slices.newest_messages(shown, seq, limit)

    def damage(self, session: str) -> None:
        """None: memory does not get damaged."""

    async def row(self, session: str) -> Row | None:
        """The session with exactly this id."""
        kept = self._sessions.get(session)
        return kept.row if kept else None

    async def delete(self, session: str) -> None:
        """Forget the session; nothing happens when there is none."""
        self._sessions.pop(session, None)

    def _entries(self, session: str) -> Sequence[Entry]:
        kept = self._sessions.get(session)
        return kept.entries if kept else ()
