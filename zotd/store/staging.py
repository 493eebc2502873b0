"""Builds a session in the background without blocking other sessions; see `zotd.store.staged`."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import msgspec

from zotd.core.ports import JournalEntry, SessionRow, StorageError
from zotd.store import staged
from zotd.store.batch import Batch
from zotd.store.connection import SqlConnection, Write
from zotd.store.ports import JournalDatabase
from zotd.store.session_limits import NO_LIMIT, SessionLimit, TooManySessionsError
from zotd.store.staged import STATE, Share
from zotd.wire.errors import Code, CommandError


class StagedSession:
    """A session that clients cannot see yet. Methods raise StorageError if the database cannot be written.

    Use `staging` to create one; it also removes a session that was not published.
    """

    def __init__(self, database: JournalDatabase, row: SessionRow, limit: SessionLimit) -> None:
        self._limit = limit
        self.row = row
        """The row as stored in the database."""
        self.maker = database.maker
        """Whose it is: what others have begun and left is removed."""
        self._database = database

    async def copy(self, share: Share) -> None:
        """Copy the first records of another session, with their numbers and the `seq` of their events."""
        # One transaction for each slice: commits of other sessions get their turn in between.
        copied: list[SessionRow] = []
        while self.row.records < share.records:
            await self._perform(lambda connection: copied.append(staged.copy(connection, self.row, share)))
            self.row = copied.pop()
            copied.clear()

    async def store(self, row: SessionRow, entries: Sequence[JournalEntry]) -> None:
        """Append records; `row` is the row after them. Its state is ignored."""
        row = msgspec.structs.replace(row, state=STATE)
        await self._perform(Batch.of(row, entries).store)
        self.row = row

    async def publish(
        self, row: SessionRow, entries: Sequence[JournalEntry], *, share: Share | None = None, digest: str | None = None
    ) -> None:
        """Append the last records and make the session visible; returns when that is synced to disk.

        Raises CommandError if its user has too many sessions.

        Args:
            row: the final row.
            entries: the last records.
            share: set for a fork.
            digest: set for an import: the digest of the file.
        """
        batch = Batch.of(row, entries)
        publish = partial(staged.publish, batch=batch, share=share, digest=digest, limit=self._limit)
        with refused_by_limit():
            await self._perform(publish, durable=True)
        self.row = row

    async def _perform(self, apply: Callable[[SqlConnection], object], *, durable: bool = False) -> None:
        def apply_if_kept(connection: SqlConnection) -> None:
            if self._database.maker != self.maker:  # perhaps another daemon has begun to remove it
                raise StorageError("the session was not made: this daemon has lost its lease meanwhile; try again")
            apply(connection)

        await self._database.perform(apply_if_kept, durable=durable)

    def discard(self) -> None:
        """Remove the stored part in the background, unless it was published; returns at once."""
        write = partial(staged.discard, session=self.row.id)
        self._database.submit(Write(write, _ignore))


@asynccontextmanager
async def staging(
    database: JournalDatabase, row: SessionRow, limit: SessionLimit = NO_LIMIT
) -> AsyncIterator[StagedSession]:
    """Create an empty session with this row; discard it if the block does not publish it.

    `limit`: how many sessions its user may have; when it is published, too. Raises CommandError if there are too many.
    """
    begun = StagedSession(database, msgspec.structs.replace(row, state=STATE), limit)
    try:
        with refused_by_limit():
            await database.perform(partial(staged.begin, row=begun.row, maker=begun.maker, limit=limit))
        yield begun
    finally:
        if begun.row.state == STATE:
            begun.discard()


@contextmanager
def refused_by_limit() -> Iterator[None]:
    """Raise CommandError instead of TooManySessionsError."""
    try:
        yield
    except TooManySessionsError as error:
        raise CommandError(Code.BUDGET_EXCEEDED, str(error)) from error


async def imported(database: JournalDatabase, digest: str) -> str | None:
    """Return the id of the session that was imported from the file with this digest, or None."""
    return await database.read(partial(staged.imported, digest=digest))


def _ignore(_: StorageError | None) -> None:
    pass  # an error is harmless: the next daemon has another `maker` and removes the session
