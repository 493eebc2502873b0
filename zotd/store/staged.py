"""Sessions that are being put together, a slice at a time: nobody sees them before they are complete.

    begin -> (copy | store)* -> publish | discard

`publish` is one durable commit: then there is a session. What is discarded goes in the writer's pauses, in slices.

A process that dies leaves a half; the next one, which has another `maker`, sweeps it.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

import msgspec

from zotd.core.ports import SessionRow, StorageError
from zotd.store import forks, generations, search, sums
from zotd.store.batch import Batch, save_row

STATE = "staged"
"""Of the row of a session that nobody sees."""

SLICE_BYTES = 128 * 1024
"""Copied in one transaction: 2 to 4 ms, which is how long another session's commit may have to wait for it."""

SWEPT_RECORDS = 100
"""Removed in one transaction: 4 ms."""

_SOURCE = """
SELECT number, kind, v, time, body, first_seq, last_seq, events, messages FROM records
WHERE session = (SELECT key FROM sessions WHERE id = ?) AND number > ? AND number <= ?
ORDER BY number
"""

_COPY = """
INSERT INTO records (session, number, kind, v, time, body, first_seq, last_seq, events, messages)
VALUES ((SELECT key FROM sessions WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_SESSION = b'"session":'


@dataclass(frozen=True, slots=True)
class Share:
    """What a fork has of another session."""

    origin: str
    records: int
    """The first so many."""
    at: int
    """`seq` of the last message among them."""


def begin(connection: sqlite3.Connection, row: SessionRow, maker: str) -> None:
    """Make a session without records, in the state `STATE`."""
    connection.execute("INSERT INTO staged VALUES (?, ?)", (save_row(connection, row), maker))


def copy(connection: sqlite3.Connection, row: SessionRow, share: Share) -> SessionRow:
    """Copy the next slice of records of `share.origin` into the session of `row`; its row afterwards.

    Raises:
        StorageError: they are not there: the other session has been deleted.
    """
    copied, size = [], 0
    with closing(connection.execute(_SOURCE, (share.origin, row.records, share.records))) as found:
        for number, kind, v, time, body, first_seq, last_seq, events, messages in found:
            lines = readdressed(events, share.origin, row.id)
            copied.append((row.id, number, kind, v, time, body, first_seq, last_seq, lines, messages))
            size += len(body) + len(events)
            if size >= SLICE_BYTES:
                break
    if not copied:
        raise StorageError(f"session {share.origin} was deleted while it was being copied")
    connection.executemany(_COPY, copied)
    last_seq = max([row.seq, *(columns[7] for columns in copied)])
    row = msgspec.structs.replace(row, records=copied[-1][1], seq=last_seq)
    save_row(connection, row)
    return row


def publish(
    connection: sqlite3.Connection, batch: Batch, share: Share | None = None, digest: str | None = None
) -> None:
    """Store the last records, and let everybody see the session: a fork, or what the file with this digest holds.

    Raises:
        StorageError: the file was imported by somebody else meanwhile.
    """
    known = imported(connection, digest) if digest is not None else None
    if known is not None:
        raise StorageError(f"the same file was imported meanwhile, as session {known}")
    batch.store(connection)
    session = batch.row.id
    connection.execute("DELETE FROM staged WHERE session = (SELECT key FROM sessions WHERE id = ?)", (session,))
    if share is not None:
        forks.add_fork(connection, session, share.origin, shared=share.records, at=share.at)
    if digest is not None:
        connection.execute("INSERT INTO imports SELECT ?, key FROM sessions WHERE id = ?", (digest, session))


def discard(connection: sqlite3.Connection, session: str) -> None:
    """Mark the staged session as abandoned; `sweep` removes its records later, in slices."""
    connection.execute(
        "UPDATE staged SET maker = '' WHERE session = (SELECT key FROM sessions WHERE id = ?)", (session,)
    )


def sweep(connection: sqlite3.Connection, maker: str) -> bool:
    """Remove a slice of what was discarded, or left half done by another process; True when there may be more."""
    found = connection.execute("SELECT session FROM staged WHERE maker <> ? LIMIT 1", (maker,)).fetchone()
    if found is None:
        return False
    (key,) = found
    query = "SELECT number FROM records WHERE session = ? ORDER BY number DESC LIMIT 1 OFFSET ?"
    (above,) = connection.execute(query, (key, SWEPT_RECORDS)).fetchone() or (0,)
    search.forget(connection, key, above)
    connection.execute("DELETE FROM records WHERE session = ? AND number > ?", (key, above))
    search.step_back(connection)
    if above == 0:
        connection.execute("DELETE FROM staged WHERE session = ?", (key,))
        generations.forget(connection, key)
        sums.forget(connection, key)
        connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
    return True


def imported(connection: sqlite3.Connection, digest: str) -> str | None:
    """The session that the file with this digest was read into."""
    query = "SELECT sessions.id FROM imports JOIN sessions ON sessions.key = imports.session WHERE digest = ?"
    found = connection.execute(query, (digest,)).fetchone()
    return str(found[0]) if found else None


def readdressed(lines: bytes, origin: str, session: str) -> bytes:
    """The same events, of another session.

    Each line ends with the session and the `seq`. What stands before may name the other session, too (a tool's
    arguments may), and stays.
    """
    old, new = (_SESSION + b'"%b",' % name.encode() for name in (origin, session))
    return b"".join(new.join(line.rsplit(old, 1)) for line in lines.splitlines(keepends=True))
