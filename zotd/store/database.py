"""One database file and its two threads: one writes, one reads, each with a connection of its own.

Neither waits for the other, and the event loop waits for none. What a write reported is seen by every read that begins
after it. In the writer's pauses the search index follows (`zotd.store.search`).
"""

import asyncio
import logging
import secrets
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from zotd.core.ports import Probe, StorageError
from zotd.store import staged
from zotd.store.recovery import Recovery
from zotd.store.schema import open_for_reading, open_for_writing
from zotd.store.search import Index
from zotd.store.space import Space, size_bytes
from zotd.store.writer import Counts, Write, Writer

READ_S = 30.0
"""Longest wait for a read. Reading a session of 50,000 messages takes under a second; a disk that needs longer than
this does not answer."""

MAKER_BYTES = 8
"""64 random bits: no two processes that ever open one database get the same."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class Database:
    """The file, open. The caller holds the daemon's lock."""

    def __init__(self, path: Path, probe: Probe | None = None) -> None:
        """Use `Database.open`."""
        self._path = path
        self.maker = secrets.token_hex(MAKER_BYTES)
        """Tells sessions that are being put together here from those that another process has left half done."""
        self.index = Index()
        """Of the texts that can be searched."""
        self.warnings: list[str] = []
        """What was found wrong when it was opened, and does not keep it from being used."""
        self._space = Space(path)
        spare = partial(_use_pause, maker=self.maker, index=self.index, space=self._space)
        self._writer = Writer(
            partial(open_for_writing, path, self._warn), spare=spare, probe=probe, tidy=self._space.shorten_log
        )
        self._reader = ThreadPoolExecutor(1, "journal-reader")
        self._connection: sqlite3.Connection | None = None
        self.recovery = Recovery(self._writer.submit)
        """For those whose write has failed."""

    @classmethod
    async def open(cls, path: Path, probe: Probe | None = None) -> Self:
        """The database in the file `path`, made when it is missing (0600; its directory exists); `close` it.

        `probe` is called at `writer.POINTS`.

        Raises:
            NewerSchemaError: a newer program made it.
            StorageError: it cannot be made, opened or read.
        """
        database = cls(path, probe)
        try:
            await database._writer.open()
            database._connection = await database._call(partial(open_for_reading, path))
        except BaseException:
            await database.close()
            raise
        return database

    @property
    def counts(self) -> Counts:
        """What was written since it was opened."""
        return self._writer.counts

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """What `query` makes of the connection that reads, in the thread of that; StorageError when it cannot."""
        if self._connection is None:
            raise StorageError("the journal is closed")
        return await self._call(partial(query, self._connection))

    def submit(self, write: Write) -> None:
        """Have it written after all that was submitted before. Returns at once; never raises."""
        self._writer.submit(write)

    async def perform(self, apply: Callable[[sqlite3.Connection], object], *, durable: bool = False) -> None:
        """The same for a write that is awaited; raises the StorageError that it failed with."""
        await self._writer.perform(apply, durable=durable)

    async def erase(self, apply: Callable[[sqlite3.Connection], object]) -> None:
        """Have a deletion written, and nothing of what was deleted kept in the log; raises StorageError.

        While somebody else reads the database (a backup), the log keeps it until they have left.
        """

        def deleted(connection: sqlite3.Connection) -> None:
            apply(connection)
            self._space.note_deletion()

        await self._writer.perform(deleted, durable=True)
        await self._writer.perform(self._space.shorten_log, alone=True)

    async def compact(self) -> tuple[int, int]:
        """Give back all space that is free; how many bytes the database had before and has now. Commits wait.

        Raises:
            StorageError: it could not be done, or not all of it.
        """
        before = await self.read(size_bytes)
        await self._writer.perform(self._space.compact, alone=True)
        return before, await self.read(size_bytes)

    async def close(self) -> None:
        """Write what waits, then close the file; bounded by `writer.CLOSE_S` and `READ_S`. May be called twice."""
        self.recovery.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await self._call(connection.close)
            except StorageError:
                log.exception("the journal's reader was not closed")
        self._reader.shutdown(wait=False)
        await self._writer.close()

    def _warn(self, sentence: str) -> None:
        log.warning("%s", sentence)
        self.warnings.append(sentence)

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(READ_S):
                return await asyncio.get_running_loop().run_in_executor(self._reader, work)
        except TimeoutError as error:
            raise StorageError(f"the journal {self._path} could not be read within {READ_S:g} s") from error
        except sqlite3.Error as error:
            raise StorageError(f"the journal {self._path} could not be read: {error}") from error


def _use_pause(connection: sqlite3.Connection, maker: str, index: Index, space: Space) -> bool:
    """A slice of what has to be done and for which nobody waits; True when there may be more."""
    return staged.sweep(connection, maker) or index.keep_up(connection) or space.keep_up(connection)
