"""Which sessions a session has begun (`zotd.sessions.subagents`)."""

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


async def sessions_below(journal: StoredJournal, session: str) -> Sequence[SessionRow]:
    """Return the sessions that this one has begun, oldest first.

    Raises StorageError if the database cannot be read.
    """
    return await journal.database.read(partial(_below, session=session))


def _below(connection: SqlConnection, session: str) -> Sequence[SessionRow]:
    return list(map(listed_row, connection.execute(_BELOW, (session,)).fetchall()))
