"""The journal on PostgreSQL: `core.ports.Journal` for daemons whose sessions outlive their machine."""

from typing import Self

from zotd.store.journal import StoredJournal
from zotd.store.postgres.database import PostgresDatabase


class PostgresJournal(StoredJournal):
    """The journal in a database. Whoever opens it last writes it: writes of earlier ones fail with `FencedError`."""

    database: PostgresDatabase

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect, upgrade the schema and begin a generation. The caller closes it.

        Raises:
            NewerSchemaError: a newer program made the schema.
            StorageError: the database cannot be reached, or refuses a change of the schema.
        """
        database = await PostgresDatabase.open(url)
        return cls(database, database.generation)
