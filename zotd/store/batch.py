"""One commit of a session: its consistency check and its encoding in the database."""

from collections.abc import Iterable, Sequence
from typing import Self

import msgspec
from msgspec import Struct

from zotd.core.ports import JournalEntry, SessionRow, StorageError
from zotd.core.records import Attempt, kind_of
from zotd.store import generations, partials, sums, user_days
from zotd.store.connection import SqlConnection
from zotd.store.errors import UnreadableSessionError
from zotd.wire.base import ENCODER
from zotd.wire.jobs import RUNNING

ROW_BYTES = 1024
"""Estimated size of the index row, and of a record without its JSON."""

_SAVE_ROW = """
INSERT INTO sessions (id, name, cwd, state, updated, records, seq, row, jobs, generation, parent, user_name)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, cwd = excluded.cwd, state = excluded.state,
    updated = excluded.updated, records = excluded.records, seq = excluded.seq, row = excluded.row,
    jobs = excluded.jobs
RETURNING key
"""

_SAVE_RECORD = """
INSERT INTO records (session, number, kind, v, time, body, first_seq, last_seq, events, messages)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_ROW = msgspec.json.Decoder(SessionRow)


class Batch(Struct, frozen=True):
    """An encoded commit for the writer's thread; shares no mutable data with the caller."""

    row: SessionRow
    entries: Sequence[JournalEntry]
    bodies: Sequence[bytes]
    generation: int = 0
    """The generation that writes it (`zotd.store.generations`); 0 for a session that no client has a cursor of yet."""
    is_live: bool = False
    """Whether its requests were made now, so that they count for the user; those of an imported session were not."""

    @classmethod
    def of(
        cls, row: SessionRow, entries: Sequence[JournalEntry], generation: int = 0, *, is_live: bool = False
    ) -> Self:
        """Encode the records, which takes about 1 ms per MB.

        It runs on the event loop: in the writer's thread it would hold the GIL just as long, and the caller may change
        the records meanwhile.
        """
        bodies = [ENCODER.encode(entry.record) for entry in entries]
        return cls(row, tuple(entries), bodies, generation, is_live)

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory that it uses until it is written."""
        lines = sum(len(entry.events) for entry in self.entries)
        return ROW_BYTES * (1 + len(self.entries)) + lines + sum(map(len, self.bodies))

    def store(self, connection: SqlConnection) -> None:
        """Write the commit inside the caller's transaction; raises like `check_continues`, before any change."""
        query = "SELECT records, seq, generation FROM sessions WHERE id = ?"
        # A new session has no cursors of earlier generations, so nothing has to be marked.
        records, seq, generation = connection.execute(query, (self.row.id,)).fetchone() or (0, 0, self.generation)
        check_continues(self.row, self.entries, records=records, seq=seq)
        if generation < self.generation:  # the first commit of this generation: cursors of earlier ones end here
            generations.mark(connection, self.row.id, self.generation, repeated=repeated(self.entries))
        key = save_row(connection, self.row, self.generation)
        rows = [_record(key, entry, body) for entry, body in zip(self.entries, self.bodies, strict=True)]
        connection.executemany(_SAVE_RECORD, rows)
        # The sums change in the transaction of their records, so that the two never differ.
        requests = [
            (key, entry.number, entry.record.time, body)
            for entry, body in zip(self.entries, self.bodies, strict=True)
            if kind_of(entry.record) in sums.KINDS
        ]
        if requests:
            added = sums.add(connection, requests)
            if self.is_live and self.row.user:
                user_days.add(connection, self.row.user, 0, sums.counted_usd(added))
        # In the same transaction: after a crash there must be either the partial text or the record that replaces it.
        if any(map(partials.is_replaced_by, self.entries)):
            partials.remove(connection, key)


def check_continues(row: SessionRow, entries: Iterable[JournalEntry], *, records: int, seq: int) -> None:
    """Check that a commit continues the stored session, which has `records` records and ends with event `seq`.

    This keeps numbers and `seq` dense: after a failed commit, those of the same session that were submitted before its
    error was known fail too.

    Raises:
        StorageError: it does not continue the session, or its row does not match its entries.
    """
    for entry in entries:
        records += 1
        shown = entry.events.count(b"\n")
        span = (seq + 1, seq + shown) if shown else (0, 0)
        if entry.number != records or (entry.first_seq, entry.last_seq) != span:
            raise StorageError(
                f"session {row.id} was not saved: record {entry.number} does not follow what is stored; "
                f"a commit before it failed"
            )
        seq += shown
    if (row.records, row.seq) != (records, seq):
        raise StorageError(f"session {row.id} was not saved: a commit before this one failed")


def save_row(connection: SqlConnection, row: SessionRow, generation: int = 0) -> int:
    """Replace or insert the index row; return the session's key.

    `generation`, the parent and the user are stored only with a new row.
    """
    parent = None if row.parent is None else row.parent.session
    (key,) = connection.execute(_SAVE_ROW, (*row_values(row), generation, parent, row.user)).fetchone()
    return int(key)


def row_of(session: str, stored: object) -> SessionRow:
    """Decode the row of a session; `stored` may be of any type if its page is damaged.

    Raises:
        UnreadableSessionError: the row is damaged, or belongs to another session.
    """
    try:
        row = _ROW.decode(stored)  # type: ignore[arg-type]
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError) as error:
        raise UnreadableSessionError(str(session), str(error), "the index row") from error
    if row.id != session:
        raise UnreadableSessionError(str(session), f"it is that of session {row.id}", "the index row")
    return row


def repeated(entries: Sequence[JournalEntry]) -> int:
    """Return how many events the first record of a generation repeats.

    If it is the beginning of a reply, the request was sent by an earlier generation, which may have shown the event
    without the commit of its record (`zotd.ledger`).
    """
    first = entries[0] if entries else None
    return 1 if first is not None and isinstance(first.record, Attempt) and first.record.answered else 0


def row_values(row: SessionRow) -> tuple[object, ...]:
    """Return the columns of an index row that every commit replaces, from `id` to `jobs`."""
    whole = ENCODER.encode(row).decode()
    jobs = sum(job.state == RUNNING for job in row.jobs) if row.jobs else 0
    return (row.id, row.name, row.cwd, row.state, row.updated, row.records, row.seq, whole, jobs)


def _record(key: int, entry: JournalEntry, body: bytes) -> tuple[object, ...]:
    record = entry.record
    head = (key, entry.number, kind_of(record), record.v, record.time, body)
    return (*head, entry.first_seq, entry.last_seq, entry.events, entry.messages)
