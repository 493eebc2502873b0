"""Reading a session's past: its records a page at a time, where an event stands, and how its conversation branched."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Protocol, TypeVar

from zotd.core.lineage import RewindPoint
from zotd.core.ports import Stored
from zotd.core.records import RewindRow
from zotd.store import generations, slices
from zotd.store.generations import Generation
from zotd.store.queries import MAX_SEQ, damage_told, record_of

_FROM = """
SELECT number, kind, v, body, first_seq, events, messages FROM records
WHERE session = (SELECT key FROM sessions WHERE id = ?) AND number > ?
ORDER BY number
"""

_SHOWING = """
SELECT number, last_seq FROM records
WHERE session = (SELECT key FROM sessions WHERE id = ?) AND first_seq > 0 AND first_seq <= ?
ORDER BY first_seq DESC LIMIT 1
"""

_REWINDS = """
SELECT number, kind, v, body, first_seq FROM records
WHERE session = (SELECT key FROM sessions WHERE id = ?) AND kind = 'rewind'
ORDER BY number
"""
"""No index: an index on the kind would cost every commit something, and this is asked by whoever rewinds or looks at
the tree. 150 ms for a session of 50,000 messages."""


T = TypeVar("T")


class ReadOf(Protocol):
    """Asks the database something about a session, and notes when damage keeps it from answering."""

    def __call__(self, session: str, query: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """What `query` makes of the connection that reads."""
        ...


class StoredHistory:
    """`core.ports.RecordReader` on disk; raises as the journal's own methods do."""

    def __init__(self, read_of: ReadOf, generation: Generation) -> None:
        self._read_of = read_of
        self._generation = generation

    async def holds_to(self, session: str, epoch: str) -> int | None:
        """The last `seq` up to which a cursor with this epoch holds; see `core.ports.RecordReader.holds_to`."""
        if epoch == self._generation.epoch:
            return MAX_SEQ
        number = generations.number_of(epoch, self._generation)
        if number is None:
            return None
        found = await self._read_of(session, partial(generations.holds_to, session=session, number=number))
        return MAX_SEQ if found is None else found

    async def entries(self, session: str, after: int, limit_bytes: int) -> list[Stored]:
        """The records behind number `after`, oldest first: at least one when there is one, and no more than fit."""
        return await self._read_of(session, partial(_entries, session=session, after=after, limit_bytes=limit_bytes))

    async def record_at(self, session: str, seq: int) -> int | None:
        """The number of the record that shows the event `seq`; None: there is no such event."""
        return await self._read_of(session, partial(_record_at, session=session, seq=seq))

    async def rewinds(self, session: str) -> list[RewindPoint]:
        """Every rewind of the session, oldest first."""
        return await self._read_of(session, partial(rewinds, session=session))


def _entries(connection: sqlite3.Connection, session: str, after: int, limit_bytes: int) -> list[Stored]:
    with damage_told(session), closing(connection.execute(_FROM, (session, min(after, MAX_SEQ)))) as found:
        return list(slices.first(_stored(session, after, found), limit_bytes))


def _record_at(connection: sqlite3.Connection, session: str, seq: int) -> int | None:
    found = connection.execute(_SHOWING, (session, min(seq, MAX_SEQ))).fetchone()
    if found is None:
        return None
    number, last_seq = found
    return int(number) if seq <= last_seq else None


def rewinds(connection: sqlite3.Connection, session: str) -> list[RewindPoint]:
    """Every rewind of the session, oldest first; raises UnreadableSessionError."""
    with damage_told(session):
        found = connection.execute(_REWINDS, (session,)).fetchall()
    rewound: list[RewindPoint] = []
    for *columns, first_seq in found:
        record = record_of(session, columns[0], (columns[0], columns[1], columns[2], columns[3]))
        assert isinstance(record, RewindRow)
        rewound.append(RewindPoint(columns[0], record.to, first_seq, record.seq))
    return rewound


def _stored(session: str, after: int, found: sqlite3.Cursor) -> Iterator[Stored]:
    for due, (number, kind, v, body, first_seq, events, messages) in enumerate(found, after + 1):
        record = record_of(session, due, (number, kind, v, body))
        slices.check(events)
        yield Stored(number, record, body, first_seq, events, messages)
