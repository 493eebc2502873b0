"""The journal in SQLite: every session's records, in one file (`docs/durability.md`)."""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from zotd.core.ports import Entry, Row, StorageError
from zotd.core.records import AnyRecord
from zotd.store import queries, search
from zotd.store.batch import Batch
from zotd.store.database import Database
from zotd.store.errors import UnreadableSessionError
from zotd.store.queries import Page
from zotd.store.schema import read_epoch
from zotd.store.writer import Write

T = TypeVar("T")

log = logging.getLogger(__name__)


class Journal:
    """`core.ports.Journal` on disk, and the index of all sessions."""

    def __init__(self, database: Database, epoch: str) -> None:
        """Use `Journal.open`."""
        self.database = database
        """What it is in; for others who ask it something."""
        self._epoch = epoch
        self._damaged: dict[str, UnreadableSessionError] = {}

    @classmethod
    async def open(cls, path: Path) -> Self:
        """The journal in the file `path`, made when it is missing (0600; its directory exists); `close` it.

        The caller holds the daemon's lock. Raises StorageError when it cannot be made, opened or read;
        NewerSchemaError when a newer program made it.
        """
        database = await Database.open(path)
        try:
            return cls(database, await database.read(read_epoch))
        except BaseException:
            await database.close()
            raise

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
        self.database.submit(Write(batch.store, done, durable=durable, size_bytes=batch.size_bytes))

    async def records(self, session: str, start: int) -> list[AnyRecord]:
        """The records from number `start` on, oldest first.

        Raises UnreadableRecordError when one of them is damaged or was written by a newer program. The next two raise
        UnreadableSessionError, and all methods below StorageError when the database cannot be read.
        """
        return await self._read_of(session, partial(queries.records_from, session=session, start=start))

    async def events_after(self, session: str, seq: int, limit_bytes: int) -> tuple[int, bytes]:
        """Events after `seq` as NDJSON, at least one record's when there are any; and the `seq` they reach."""
        query = partial(queries.events_after, session=session, seq=seq, limit_bytes=limit_bytes)
        return await self._read_of(session, query)

    async def messages_before(self, session: str, seq: int | None, limit: int) -> list[bytes]:
        """The newest `limit` message events with a `seq` below (None: of all), oldest first, a JSON line each."""
        query = partial(queries.messages_before, session=session, seq=seq, limit=limit)
        return await self._read_of(session, query)

    def damage(self, session: str) -> UnreadableSessionError | None:
        """Why the session is read-only; None as long as no read of this journal has met damage in it."""
        return self._damaged.get(session)

    async def row(self, session: str) -> Row | None:
        """The session with exactly this id."""
        return await self.database.read(partial(queries.row, session=session))

    async def find(self, text: str) -> list[Row]:
        """The session with this id; else those with this name, or with an id that begins so, newest first."""
        return await self.database.read(partial(queries.find, text=text))

    async def delete(self, session: str) -> None:
        """Remove the session and all that it recorded; nothing happens when there is none."""
        await self.database.perform(partial(_delete, session=session))
        self._damaged.pop(session, None)

    async def setting(self, key: str) -> str | None:
        """What `set_setting` stored under `key`."""
        return await self.database.read(partial(queries.setting, key=key))

    async def set_setting(self, key: str, value: str) -> None:
        """Remember `value`; returns when it is committed, but a power failure may undo it."""
        await self.database.perform(partial(_set, key=key, value=value))

    async def list(
        self, *, cwd: str | None = None, state: str | None = None, before: str | None = None, limit: int = 100
    ) -> Page:
        """Sessions of one directory, in one state, or all of them: newest `updated` first, `limit` at a time.

        `before` is the second result of the call for the page before. A session that is updated between two calls
        moves to the front, so that the pages after the first may lack it.
        """
        return await self.database.read(partial(queries.page, cwd=cwd, state=state, before=before, limit=limit))

    async def close(self) -> None:
        """Write what waits, then close the file. May be called twice."""
        await self.database.close()

    async def _read_of(self, session: str, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self.database.read(query)
        except UnreadableSessionError as error:
            if session not in self._damaged:
                log.error("%s", error)  # noqa: TRY400  (the sentence says it all)
            self._damaged[session] = error
            raise


def _delete(connection: sqlite3.Connection, session: str) -> None:
    for (key,) in connection.execute("SELECT key FROM sessions WHERE id = ?", (session,)).fetchall():
        search.forget(connection, key)
        connection.execute("DELETE FROM records WHERE session = ?", (key,))
        connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
        search.step_back(connection)


def _set(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))
