"""Staged sessions: built in several transactions and invisible to clients until they are complete.

    begin -> (copy | store)* -> publish | discard

`publish` is one durable commit that makes the session visible. Discarded sessions are removed in slices while the
writer is idle. A process that dies leaves an incomplete session; the next process has another `maker` and removes it.
"""

from collections.abc import Callable, Collection
from contextlib import closing

import msgspec
from msgspec import Struct

from zotd.core.ports import SessionRow, StorageError
from zotd.store import forks, generations, search, session_limits, sums
from zotd.store.batch import Batch, save_row
from zotd.store.connection import SqlConnection
from zotd.store.session_limits import NO_LIMIT, SessionLimit

_BEGIN = """
INSERT INTO staged (session, maker) VALUES (?, ?)
ON CONFLICT (session) DO UPDATE SET maker = excluded.maker
"""
"""Timers and batches begin a session with the same id again if a crash came before `publish`."""

STATE = "staged"
"""State of a staged session; queries for clients exclude it."""

SLICE_BYTES = 128 * 1024
"""Copied in one transaction: 2 to 4 ms, which is how long another session's commit may have to wait for it."""

SLICE_RECORDS = 256
"""Most records that one transaction copies; a database may read all of them although the bytes suffice before."""

SWEPT_RECORDS = 100
"""Removed in one transaction, which takes 4 ms."""

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


class Share(Struct, frozen=True):
    """The part of another session that a fork starts with."""

    origin: str
    records: int
    """Number of shared records, counted from the first."""
    at: int
    """`seq` of the last message among them."""


def begin(connection: SqlConnection, row: SessionRow, maker: str, limit: SessionLimit = NO_LIMIT) -> None:
    """Make a session without records, in the state `STATE`; raises TooManySessionsError.

    It takes over a session with this id that was begun, and has no records yet.
    """
    session_limits.check(connection, limit)
    connection.execute(_BEGIN, (save_row(connection, row), maker))


def copy(connection: SqlConnection, row: SessionRow, share: Share) -> SessionRow:
    """Copy the next slice of records of `share.origin` into the session of `row`; return the updated row.

    Raises:
        StorageError: the other session has been deleted.
    """
    copied, size = [], 0
    last = min(share.records, row.records + SLICE_RECORDS)
    with closing(connection.execute(_SOURCE, (share.origin, row.records, last))) as found:
        for number, kind, v, time, body, first_seq, last_seq, events, messages in found:
            lines = readdressed(events, share.origin, row.id)
            copied.append((row.id, number, kind, v, time, body, first_seq, last_seq, lines, messages))
            size += len(body) + len(events)
            if size >= SLICE_BYTES:
                break
    if not copied:
        raise StorageError(f"session {share.origin} was deleted while it was being copied")
    connection.executemany(_COPY, copied)
    # Records without events have a `last_seq` of 0.
    last_seq = max([row.seq, *(columns[7] for columns in copied)])
    row = msgspec.structs.replace(row, records=copied[-1][1], seq=last_seq)
    save_row(connection, row)
    return row


def publish(
    connection: SqlConnection,
    batch: Batch,
    share: Share | None = None,
    digest: str | None = None,
    *,
    limit: SessionLimit = NO_LIMIT,
) -> None:
    """Store the last records and make the session visible; `share` is for a fork, `digest` (of the file) for an import.

    Raises:
        StorageError: the same file was imported by another command meanwhile. TooManySessionsError: the user has too many sessions.
    """
    session_limits.check(connection, limit)
    # Two imports of a file may run at the same time; the check belongs into the transaction that stores the digest.
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


def discard(connection: SqlConnection, session: str) -> None:
    """Mark the staged session as abandoned; `sweep` removes its records later, in slices."""
    connection.execute(
        "UPDATE staged SET maker = '' WHERE session = (SELECT key FROM sessions WHERE id = ?)", (session,)
    )


def sweep(connection: SqlConnection, makers: Callable[[SqlConnection], Collection[str]]) -> bool:
    """Remove a slice of a session that was discarded or left incomplete by a process that has ended; True: call it again.

    `makers` returns who may be building sessions right now.
    """
    begun = connection.execute("SELECT session, maker FROM staged").fetchall()
    living = makers(connection) if begun else ()  # asked afterwards: of what was begun meanwhile, nothing has been read
    key = next((session for session, maker in begun if maker not in living), None)
    if key is None:
        return False
    query = "SELECT number FROM records WHERE session = ? ORDER BY number DESC LIMIT 1 OFFSET ?"
    # From the end, so that the numbers of the remaining records stay without gaps.
    (above,) = connection.execute(query, (key, SWEPT_RECORDS)).fetchone() or (0,)
    search.forget(connection, key, above)  # before the records: it looks up their keys
    connection.execute("DELETE FROM records WHERE session = ? AND number > ?", (key, above))
    search.step_back(connection)
    if above == 0:
        connection.execute("DELETE FROM staged WHERE session = ?", (key,))
        generations.forget(connection, key)
        sums.forget(connection, key)
        connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
    return True


def imported(connection: SqlConnection, digest: str) -> str | None:
    """Return the id of the session that was imported from the file with this digest."""
    query = "SELECT sessions.id FROM imports JOIN sessions ON sessions.key = imports.session WHERE digest = ?"
    found = connection.execute(query, (digest,)).fetchone()
    return str(found[0]) if found else None


def readdressed(lines: bytes, origin: str, session: str) -> bytes:
    """Return the events with the id of another session.

    Each line ends with the session and the `seq`. Only this last occurrence is replaced: earlier ones belong to the
    content, such as the arguments of a tool.
    """
    # A replacement of bytes instead of decoding: events are stored as the bytes that clients got (decision 1).
    old, new = (_SESSION + b'"%b",' % name.encode() for name in (origin, session))
    return b"".join(new.join(line.rsplit(old, 1)) for line in lines.splitlines(keepends=True))
