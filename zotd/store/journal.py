"""The journal in SQLite: every session's records, in one file (`docs/durability.md`).

Writes go through one thread (`zotd.store.writer`), reads through another with a connection of its own: neither waits
for the other, and the event loop waits for none. What `done` reported is seen by every read that begins after it.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from zotd.core.ports import Entry, Row, StorageError
from zotd.core.records import AnyRecord
from zotd.store import queries
from zotd.store.batch import Batch
from zotd.store.queries import Page, Totals
from zotd.store.schema import open_for_reading, open_for_writing, read_epoch
from zotd.store.writer import Write, Writer

READ_S = 30.0
"""Longest wait for a read. Reading a session of 50,000 messages takes under a second; a disk that needs longer than
this does not answer."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class Journal:
    """`core.ports.Journal` on disk, and the index of all sessions. The caller holds the daemon's lock."""

    def __init__(self, path: Path) -> None:
        """Use `Journal.open`."""
        self._path = path
        self._writer = Writer(partial(open_for_writing, path))
        self._reader = ThreadPoolExecutor(1, "journal-reader")
        self._connection: sqlite3.Connection | None = None
        self._epoch = ""

    @classmethod
    async def open(cls, path: Path) -> Self:
        """The journal in the file `path`, made when it is missing (0600; its directory exists); `close` it.

        Raises StorageError when it cannot be made, opened or read; NewerSchemaError when a newer program made it.
        """
        journal = cls(path)
        try:
            await journal._writer.open()
            journal._connection = await journal._call(partial(open_for_reading, path))
            journal._epoch = await journal._read(read_epoch)
        except BaseException:
            await journal.close()
            raise
        return journal

    @property
    def epoch(self) -> str:
        """Made with the database; half of every cursor."""
        return self._epoch

    def commit(
        self,
        row: Row,
        entries: Sequence[Entry],
        *,
        durable: bool,
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Append `entries` and replace the index row; see `core.ports.Journal.commit`.

        A commit that does not continue what is stored is refused: after a failed one, those of the same session that
        were already on their way fail too. The session then reads its row again and goes on from there.
        """
        batch = Batch.of(row, entries)
        self._writer.submit(Write(batch.store, done, durable=durable, size_bytes=batch.size_bytes))

    async def records(self, session: str, start: int) -> list[AnyRecord]:
        """The records from number `start` on, oldest first.

        Raises UnreadableRecordError when one of them is damaged or was written by a newer program. Like all methods
        below, StorageError when the database cannot be read.
        """
        return await self._read(partial(queries.records_from, session=session, start=start))

    async def events_after(self, session: str, seq: int, limit_bytes: int) -> tuple[int, bytes]:
        """Events after `seq` as NDJSON, at least one record's when there are any; and the `seq` they reach."""
        return await self._read(partial(queries.events_after, session=session, seq=seq, limit_bytes=limit_bytes))

    async def messages_before(self, session: str, seq: int | None, limit: int) -> list[bytes]:
        """The newest `limit` message events with a `seq` below (None: of all), oldest first, a JSON line each."""
        return await self._read(partial(queries.messages_before, session=session, seq=seq, limit=limit))

    async def row(self, session: str) -> Row | None:
        """The session with exactly this id."""
        return await self._read(partial(queries.row, session=session))

    async def find(self, text: str) -> list[Row]:
        """The session with this id; else those with this name, or with an id that begins so, newest first."""
        return await self._read(partial(queries.find, text=text))

    async def delete(self, session: str) -> None:
        """Remove the session and all that it recorded; nothing happens when there is none."""
        await self._writer.perform(partial(_delete, session=session))

    async def setting(self, key: str) -> str | None:
        """What `set_setting` stored under `key`."""
        return await self._read(partial(queries.setting, key=key))

    async def set_setting(self, key: str, value: str) -> None:
        """Remember `value`; returns when it is committed, but a power failure may undo it."""
        await self._writer.perform(partial(_set, key=key, value=value))

    async def counts(self) -> Totals:
        """How much the journal holds."""
        return await self._read(queries.totals)

    async def list(
        self, *, cwd: str | None = None, state: str | None = None, before: str | None = None, limit: int = 100
    ) -> Page:
        """Sessions of one directory, in one state, or all of them: newest `updated` first, `limit` at a time.

        `before` is the second result of the call for the page before. A session that is updated between two calls
        moves to the front, so that the pages after the first may lack it.
        """
        return await self._read(partial(queries.page, cwd=cwd, state=state, before=before, limit=limit))

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

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            raise StorageError("the journal is closed")
        return await self._call(partial(query, self._connection))

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(READ_S):
                return await asyncio.get_running_loop().run_in_executor(self._reader, work)
        except TimeoutError as error:
            raise StorageError(f"the journal {self._path} could not be read within {READ_S:g} s") from error
        except sqlite3.Error as error:
            raise StorageError(f"the journal {self._path} could not be read: {error}") from error


def _delete(connection: sqlite3.Connection, session: str) -> None:
    connection.execute("DELETE FROM records WHERE session = (SELECT key FROM sessions WHERE id = ?)", (session,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def _set(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))
