"""Reads the history of a session: pages of records, the record of an event, and rewinds."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Protocol, TypeVar

from zotd.core.lineage import RewindPoint
from zotd.core.ports import Stored
from zotd.core.records import RewindRow
from zotd.store import generations, slices
from zotd.store.connection import Rows, SqlConnection
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
"""Without an index: it would slow down every commit, and only rewinds and the tree of branches need this query. It
takes 150 ms for a session of 50,000 messages."""


T = TypeVar("T")


class ReadOf(Protocol):
    """Runs a query about a session and records damage that it meets."""

    def __call__(self, session: str, query: Callable[[SqlConnection], T]) -> Awaitable[T]:
        """Return the result of `query` with the read connection."""
        ...


class StoredHistory:
    """`core.ports.RecordReader` on disk; raises as the journal's own methods do."""

    def __init__(self, read_of: ReadOf, generation: Generation) -> None:
        self._read_of = read_of
        self._generation = generation

    async def holds_to(self, session: str, epoch: str) -> int | None:
        """Return the last `seq` for which a cursor with this epoch is valid; see `core.ports.RecordReader.holds_to`."""
        if epoch == self._generation.epoch:
            return MAX_SEQ
        number = generations.number_of(epoch, self._generation)
        if number is None:
            return None
        found = await self._read_of(session, partial(generations.holds_to, session=session, number=number))
        return MAX_SEQ if found is None else found

    async def entries(self, session: str, after: int, limit_bytes: int) -> list[Stored]:
        """Return the records after number `after` that fit into `limit_bytes`, oldest first; at least one, if any."""
        return await self._read_of(session, partial(_entries, session=session, after=after, limit_bytes=limit_bytes))

    async def record_at(self, session: str, seq: int) -> int | None:
        """Return the number of the record that contains event `seq`, or None."""
        return await self._read_of(session, partial(_record_at, session=session, seq=seq))

    async def rewinds(self, session: str) -> list[RewindPoint]:
        """Return all rewinds of the session, oldest first."""
        return await self._read_of(session, partial(rewinds, session=session))


def _entries(connection: SqlConnection, session: str, after: int, limit_bytes: int) -> list[Stored]:
    with damage_told(session), closing(connection.execute(_FROM, (session, min(after, MAX_SEQ)))) as found:
        return list(slices.first(_stored(session, after, found), limit_bytes))


def _record_at(connection: SqlConnection, session: str, seq: int) -> int | None:
    # `min`, because a client may send a number that SQLite cannot represent.
    found = connection.execute(_SHOWING, (session, min(seq, MAX_SEQ))).fetchone()
    if found is None:
        return None
    number, last_seq = found
    return int(number) if seq <= last_seq else None  # the last event of the session may be before `seq`


def rewinds(connection: SqlConnection, session: str) -> list[RewindPoint]:
    """Return all rewinds of the session, oldest first; raises UnreadableSessionError."""
    with damage_told(session):
        found = connection.execute(_REWINDS, (session,)).fetchall()
    rewound: list[RewindPoint] = []
    for *columns, first_seq in found:
        record = record_of(session, columns[0], (columns[0], columns[1], columns[2], columns[3]))
        assert isinstance(record, RewindRow)
        rewound.append(RewindPoint(columns[0], record.to, first_seq, record.seq))
    return rewound


def _stored(session: str, after: int, found: Rows) -> Iterator[Stored]:
    for due, (number, kind, v, body, first_seq, events, messages) in enumerate(found, after + 1):
        record = record_of(session, due, (number, kind, v, body))
        slices.check(events)
        yield Stored(number, record, body, first_seq, events, messages)
