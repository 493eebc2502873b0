"""Key-value store for the daemon's own state, such as what must survive a restart but belongs to no session."""

from functools import partial

from zotd.store.connection import SqlConnection
from zotd.store.ports import JournalDatabase

_SET = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class StoredSettings:
    """The table `settings` of a database that the caller opens and closes. Both methods raise StorageError."""

    def __init__(self, database: JournalDatabase) -> None:
        self._database = database

    async def get(self, key: str) -> str | None:
        """Return the value stored under `key`, or None."""
        return await self._database.read(partial(_find, key=key))

    async def set(self, key: str, value: str) -> None:
        """Store `value`; returns when it is committed, but a power failure may undo it."""
        await self._database.perform(partial(_replace, key=key, value=value))


def _find(connection: SqlConnection, key: str) -> str | None:
    found = connection.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
    return str(found[0]) if found else None


def _replace(connection: SqlConnection, key: str, value: str) -> None:
    connection.execute(_SET, (key, value))
