"""Which sessions a session has begun (`zotd.sessions.subagents`), and which have jobs (`zotd.sessions.jobs`)."""

from collections.abc import Sequence
from functools import partial

from zotd.core.ports import SessionRow
from zotd.store.connection import SqlConnection
from zotd.store.journal import StoredJournal
from zotd.store.queries import listed_row

_BELOW = """
SELECT id, name, cwd, updated, records, seq, row FROM sessions
WHERE parent IS NOT NULL AND parent = ? AND state <> 'staged' ORDER BY id
"""
"""The first condition is that of the partial index."""


_JOBS = "SELECT id FROM sessions WHERE jobs > 0 AND state <> 'staged' ORDER BY id"


async def sessions_below(journal: StoredJournal, session: str) -> Sequence[SessionRow]:
    """Return the sessions that this one has begun, oldest first.

    Raises StorageError if the database cannot be read.
    """
    return await journal.database.read(partial(_below, session=session))


async def sessions_with_jobs(journal: StoredJournal) -> Sequence[str]:
    """Return the ids of the sessions that have running jobs, by what is stored.

    Raises StorageError if the database cannot be read.
    """
    return await journal.database.read(_with_jobs)


def _with_jobs(connection: SqlConnection) -> Sequence[str]:
    return [key for (key,) in connection.execute(_JOBS).fetchall()]


def _below(connection: SqlConnection, session: str) -> Sequence[SessionRow]:
    return list(map(listed_row, connection.execute(_BELOW, (session,)).fetchall()))
