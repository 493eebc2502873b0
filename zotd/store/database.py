"""A database file with a writer thread and a reader thread, each with its own connection.

Neither blocks the other or the event loop. A read that begins after a write was reported as done sees that write. When
the writer is idle it updates the search index (`zotd.store.search`).
"""

import asyncio
import logging
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from zotd.core.ports import JournalEntry, Probe, SessionRow, StorageError
from zotd.store import space, staged
from zotd.store.batch import Batch
from zotd.store.connection import SqlConnection, Write
from zotd.store.recovery import Recovery
from zotd.store.schema import open_for_reading, open_for_writing
from zotd.store.search import FTS5, SearchIndex
from zotd.store.space import Space
from zotd.store.writer import Writer, WriterCounts

READ_S = 30.0
"""Longest wait for a read. Reading a session of 50,000 messages takes under a second; a disk that needs longer than
this does not answer."""

MAKER_BYTES = 8
"""Length of the random id of a process that opens the database; 64 bits do not collide."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class Database:
    """An open database. The caller must hold the daemon's lock."""

    def __init__(self, path: Path, probe: Probe | None = None) -> None:
        self._path = path
        self.maker = secrets.token_hex(MAKER_BYTES)
        """Distinguishes sessions that this process is importing from incomplete ones of an earlier process."""
        self.index = SearchIndex(FTS5)
        self.warnings: list[str] = []
        """Problems found when the database was opened that do not prevent its use."""
        self._space = Space(path)
        spare = partial(_use_pause, maker=self.maker, index=self.index, room=self._space)
        self._writer = Writer(
            partial(open_for_writing, path, self._warn), spare=spare, probe=probe, tidy=self._space.shorten_log
        )
        # One reader: queries take milliseconds, and a connection must not be used by two threads at a time.
        self._reader = ThreadPoolExecutor(1, "journal-reader")
        self._connection: sqlite3.Connection | None = None
        self.recovery = Recovery(self._writer.submit)
        """Reports when writing works again after a failure."""

    @classmethod
    async def open(cls, path: Path, probe: Probe | None = None) -> Self:
        """Open the database in the file `path`, or create it (0600; the directory must exist). The caller closes it.

        `probe` is called at `writer.POINTS`.

        Raises:
            NewerSchemaError: a newer program wrote it.
            StorageError: it cannot be created, opened or read.
        """
        database = cls(path, probe)
        try:
            # The writer first: it creates and upgrades the file that the reader opens.
            await database._writer.open()
            database._connection = await database._call(partial(open_for_reading, path))
        except BaseException:
            await database.close()
            raise
        return database

    @property
    def counts(self) -> WriterCounts:
        """Number of writes since it was opened."""
        return self._writer.counts

    async def read(self, query: Callable[[SqlConnection], T]) -> T:
        """Run `query` with the read connection in the reader's thread; raises StorageError if it fails."""
        if self._connection is None:
            raise StorageError("the journal is closed")
        return await self._call(partial(query, self._connection))

    def append(
        self,
        row: SessionRow,
        entries: Sequence[JournalEntry],
        generation: int,
        *,
        durable: bool,
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Queue a commit of a session; see `core.ports.Journal.commit`."""
        batch = Batch.of(row, entries, generation, is_live=True)
        self.submit(Write(batch.store, done, durable=durable, size_bytes=batch.size_bytes))

    def submit(self, write: Write) -> None:
        """Queue a write behind all earlier ones. Returns at once and never raises."""
        self._writer.submit(write)

    async def perform(self, apply: Callable[[SqlConnection], object], *, durable: bool = False) -> None:
        """Queue a write and wait for it; raises the StorageError that it failed with."""
        await self._writer.perform(apply, durable=durable)

    async def erase(self, apply: Callable[[SqlConnection], object]) -> None:
        """Write a deletion and truncate the write-ahead log, so that no deleted data stays in it.

        While another process reads the database (a backup), the data stays in the log until that process has finished.
        Raises StorageError.
        """

        def deleted(connection: SqlConnection) -> None:
            apply(connection)
            self._space.note_deletion()

        await self._writer.perform(deleted, durable=True)
        # SQLite overwrites deleted data in the database (secure_delete), but the log still has the old pages.
        await self._writer.perform(in_sqlite(self._space.shorten_log), alone=True)

    async def compact(self) -> tuple[int, int]:
        """Return free space to the file system; return the size in bytes before and after. Commits wait meanwhile.

        Raises:
            StorageError: it could not be done, or not all of it.
        """
        before = await self.read(in_sqlite(space.size_bytes))
        await self._writer.perform(in_sqlite(self._space.compact), alone=True)
        return before, await self.read(in_sqlite(space.size_bytes))

    async def used_bytes(self) -> int:
        """Return the size of the database without its free pages. Raises StorageError."""
        return await self.read(in_sqlite(space.used_bytes))

    async def close(self) -> None:
        """Finish queued writes, then close the file; takes `write_queue.CLOSE_S` + `READ_S` at most. Idempotent."""
        self.recovery.close()
        # The reader first: the last connection to close checkpoints the log, which is the writer's work.
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


def in_sqlite(work: Callable[[sqlite3.Connection], T]) -> Callable[[SqlConnection], T]:
    """Return work that needs a connection of SQLite as one that takes any."""

    def call(connection: SqlConnection) -> T:
        assert isinstance(connection, sqlite3.Connection)
        return work(connection)

    return call


def _use_pause(connection: sqlite3.Connection, maker: str, index: SearchIndex, room: Space) -> bool:
    """Do a slice of background work while the writer is idle; return True if there may be more."""
    # Removal first, so that records which are about to go are not indexed; the pages that become free come last.
    return staged.sweep(connection, lambda _: {maker}) or index.keep_up(connection) or room.keep_up(connection)
