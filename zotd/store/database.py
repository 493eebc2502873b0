"""One database file and its two threads: one writes, one reads, each with a connection of its own.

Neither waits for the other, and the event loop waits for none. What a write reported is seen by every read that begins
after it. In the writer's pauses the search index follows (`zotd.store.search`).
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from zotd.core.ports import StorageError
from zotd.store import search
from zotd.store.schema import open_for_reading, open_for_writing
from zotd.store.writer import Write, Writer

READ_S = 30.0
"""Longest wait for a read. Reading a session of 50,000 messages takes under a second; a disk that needs longer than
this does not answer."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class Database:
    """The file, open. The caller holds the daemon's lock."""

    def __init__(self, path: Path) -> None:
        """Use `Database.open`."""
        self._path = path
        self._writer = Writer(partial(open_for_writing, path), spare=search.advance)
        self._reader = ThreadPoolExecutor(1, "journal-reader")
        self._connection: sqlite3.Connection | None = None

    @classmethod
    async def open(cls, path: Path) -> Self:
        """The database in the file `path`, made when it is missing (0600; its directory exists); `close` it.

        Raises StorageError when it cannot be made, opened or read; NewerSchemaError when a newer program made it.
        """
        database = cls(path)
        try:
            await database._writer.open()
            database._connection = await database._call(partial(open_for_reading, path))
        except BaseException:
            await database.close()
            raise
        return database

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """What `query` makes of the connection that reads, in the thread of that; StorageError when it cannot."""
        if self._connection is None:
            raise StorageError("the journal is closed")
        return await self._call(partial(query, self._connection))

    def submit(self, write: Write) -> None:
        """Have it written after all that was submitted before. Returns at once; never raises."""
        self._writer.submit(write)

    async def perform(self, apply: Callable[[sqlite3.Connection], object]) -> None:
        """The same for a write that is awaited, and not durable; raises the StorageError that it failed with."""
        await self._writer.perform(apply)

    async def close(self) -> None:
        """Write what waits, then close the file; bounded by `writer.CLOSE_S` and `READ_S`. May be called twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await self._call(connection.close)
            except StorageError:
                log.exception("the journal's reader was not closed")
        self._reader.shutdown(wait=False)
        await self._writer.close()

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(READ_S):
                return await asyncio.get_running_loop().run_in_executor(self._reader, work)
        except TimeoutError as error:
            raise StorageError(f"the journal {self._path} could not be read within {READ_S:g} s") from error
        except sqlite3.Error as error:
            raise StorageError(f"the journal {self._path} could not be read: {error}") from error
