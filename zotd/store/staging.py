"""Putting a session together in the background: see `zotd.store.staged`. Other sessions go on meanwhile."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from zotd.core.ports import JournalEntry, SessionRow, StorageError
from zotd.store import staged
from zotd.store.batch import Batch
from zotd.store.database import Database
from zotd.store.staged import STATE, Share
from zotd.store.writer import Write


class StagedSession:
    """A session that nobody sees yet. Methods raise StorageError when the database cannot be written."""

    def __init__(self, database: Database, row: SessionRow) -> None:
        """Made by `staging`, which also removes what was not completed."""
        self.row = row
        """As it is stored."""
        self._database = database

    async def copy(self, share: Share) -> None:
        """Have the first records of another session, with their numbers and the `seq` of their events."""
        copied: list[SessionRow] = []
        while self.row.records < share.records:
            await self._database.perform(lambda connection: copied.append(staged.copy(connection, self.row, share)))
            self.row = copied.pop()
            copied.clear()

    async def store(self, row: SessionRow, entries: Sequence[JournalEntry]) -> None:
        """Append records; `row` as it is after them, in any state."""
        row = msgspec.structs.replace(row, state=STATE)
        await self._database.perform(Batch.of(row, entries).store)
        self.row = row

    async def publish(
        self, row: SessionRow, entries: Sequence[JournalEntry], *, share: Share | None = None, digest: str | None = None
    ) -> None:
        """Append the last records, and let everybody see the session; returns when that survives a power failure.

        It is a fork with this `share`, or what the file with this `digest` holds.
        """
        batch = Batch.of(row, entries)
        await self._database.perform(partial(staged.publish, batch=batch, share=share, digest=digest), durable=True)
        self.row = row

    def discard(self) -> None:
        """Have what is stored removed, unless it was published; returns at once."""
        write = partial(staged.discard, session=self.row.id)
        self._database.submit(Write(write, _ignore))


@asynccontextmanager
async def staging(database: Database, row: SessionRow) -> AsyncIterator[StagedSession]:
    """A new session with this row and without records; what is not published in the block is discarded."""
    begun = StagedSession(database, msgspec.structs.replace(row, state=STATE))
    try:
        await database.perform(partial(staged.begin, row=begun.row, maker=database.maker))
        yield begun
    finally:
        if begun.row.state == STATE:
            begun.discard()


async def imported(database: Database, digest: str) -> str | None:
    """The session that the file with this digest was read into, if there is one."""
    return await database.read(partial(staged.imported, digest=digest))


def _ignore(_: StorageError | None) -> None:
    """It stays until the next start of the daemon, then."""
