"""The journal on PostgreSQL: `core.ports.Journal` for daemons whose sessions outlive their machine."""

from pathlib import Path
from typing import Self

from zotd.store.generations import Generation
from zotd.store.journal import StoredJournal
from zotd.store.postgres.database import PostgresDatabase
from zotd.store.postgres.ownership import LeasedOwnership


class PostgresJournal(StoredJournal):
    """The journal in a database, which several daemons use: each of them has other sessions (`zotd.store.ownership`)."""

    database: PostgresDatabase

    @classmethod
    async def open(cls, url: str, home: Path) -> Self:
        """Connect, upgrade the schema and register this daemon, in place of an earlier one of `home`. The caller closes it.

        Raises:
            NewerSchemaError: a newer program made the schema.
            StorageError: the database cannot be reached, or refuses a change of the schema.
        """
        database = await PostgresDatabase.open(url, home)
        # One generation for all: what clients have seen was synced before, so each event is what it was in every daemon.
        return cls(database, Generation(database.epoch, 0, "0"), LeasedOwnership(database))
