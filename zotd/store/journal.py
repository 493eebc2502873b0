"""The journal in SQLite: every session's records, in one file (`docs/durability.md`)."""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from zotd.core.lineage import Span
from zotd.core.ports import JournalEntry, PartialText, Probe, SessionRow, StorageError
from zotd.core.records import AnyRecord
from zotd.store import forks, generations, partials, queries, salvage, search, sums
from zotd.store.batch import Batch
from zotd.store.database import Database
from zotd.store.errors import UnreadableSessionError, is_damage
from zotd.store.generations import Generation
from zotd.store.history import StoredHistory
from zotd.store.partials import Partials
from zotd.store.queries import Page
from zotd.store.settings import StoredSettings
from zotd.store.writer import Write

T = TypeVar("T")

log = logging.getLogger(__name__)


class SqliteJournal:
    """`core.ports.Journal` on disk, and the index of all sessions."""

    def __init__(self, database: Database, generation: Generation) -> None:
        """Made by `SqliteJournal.open`."""
        self.database = database
        """The database that contains the journal, for other queries."""
        self.recovery = database.recovery
        """Reports when writing works again after a failure."""
        self.settings = StoredSettings(database)
        """Persistent settings of the daemon."""
        self._generation = generation
        self.history = StoredHistory(self._read_of, generation)
        """Reads single records."""
        self._partials = Partials(database.submit)
        self._damaged: dict[str, UnreadableSessionError] = {}

    @classmethod
    async def open(cls, path: Path, probe: Probe | None = None) -> Self:
        """The journal in the file `path`, made when it is missing (0600; its directory exists); `close` it.

        The caller holds the daemon's lock. `probe` is called at `writer.POINTS`.

        Raises:
            NewerSchemaError: a newer program made it.
            StorageError: it cannot be made, opened or read.
        """
        database = await Database.open(path, probe)
        try:
            return cls(database, await _begin_generation(database))
        except BaseException:
            await database.close()
            raise

    @property
    def epoch(self) -> str:
        """Identifies the database and its generation; the first half of every cursor."""
        return self._generation.epoch

    def commit(
        self,
        row: SessionRow,
        entries: Sequence[JournalEntry],
        *,
        durable: bool,
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Append `entries` and replace the index row; see `core.ports.Journal.commit`.

        A commit that does not continue what is stored is refused: after a failed one, those of the same session that
        were already on their way fail too. The session then reads its row again and goes on from there.
        """
        batch = Batch.of(row, entries, self._generation.number)
        self._partials.pass_by(row.id)
        ended = partial(self._committed, row.id, done)
        self.database.submit(Write(batch.store, ended, durable=durable, size_bytes=batch.size_bytes))

    def keep_partial(self, session: str, partial: PartialText) -> None:
        """Keep the partial text of a running step; see `core.ports.Journal.keep_partial`."""
        self._partials.keep(session, partial)

    async def partial(self, session: str) -> PartialText | None:
        """What was kept of a step that a crash cut; raises UnreadableSessionError and StorageError as those below."""
        return await self._read_of(session, partial(partials.find, session=session))

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

    async def messages_before(
        self, session: str, seq: int | None, limit: int, left: Sequence[Span] = ()
    ) -> list[bytes]:
        """The newest `limit` message events with a `seq` below, none of them in `left`; see `core.ports.Journal`."""
        query = partial(queries.messages_before, session=session, seq=seq, limit=limit, left=left)
        return await self._read_of(session, query)

    def damage(self, session: str) -> UnreadableSessionError | None:
        """Return why the session is read-only, or None if no read has found damage in it so far."""
        return self._damaged.get(session)

    async def row(self, session: str) -> SessionRow | None:
        """Return the index row of the session with exactly this id, or None."""
        return await self._read_of(session, partial(queries.row, session=session))

    async def find(self, text: str) -> list[SessionRow]:
        """The session with this id; else those with this name, or with an id that begins so, newest first."""
        return await self.database.read(partial(salvage.find, text=text))

    async def delete(self, session: str) -> None:
        """Delete the session with all its records; does nothing if there is none."""
        await self.database.erase(partial(_delete, session=session))
        self._damaged.pop(session, None)

    async def list(
        self, *, cwd: str | None = None, state: str | None = None, before: str | None = None, limit: int = 100
    ) -> Page:
        """Sessions of one directory, in one state, or all of them: newest `updated` first, `limit` at a time.

        `before` is the second result of the call for the page before. A session that is updated between two calls
        moves to the front, so that the pages after the first may lack it.
        """
        return await self.database.read(partial(salvage.page, cwd=cwd, state=state, before=before, limit=limit))

    async def close(self) -> None:
        """Finish queued writes, then close the file. Idempotent."""
        await self.database.close()

    def _committed(self, session: str, done: Callable[[StorageError | None], None], error: StorageError | None) -> None:
        """Report the outcome of a commit. If it met a damaged page, make the session read-only: the next would too."""
        if error is not None and is_damage(error.__cause__):
            self._note(
                session, UnreadableSessionError(session, str(error.__cause__), "the position of the next record")
            )
        done(error)

    async def _read_of(self, session: str, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self.database.read(query)
        except UnreadableSessionError as error:
            self._note(session, error)
            raise

    def _note(self, session: str, damage: UnreadableSessionError) -> None:
        if session not in self._damaged:
            log.error("%s", damage)
        self._damaged[session] = damage


async def _begin_generation(database: Database) -> Generation:
    try:
        await database.perform(generations.begin, durable=True)
    except StorageError as error:  # a full disk does not stop a start
        log.warning("clients that reconnect after a restart of the daemon get a snapshot: %s", error)
        return await database.read(generations.unrecorded)
    return await database.read(generations.begun)


def _delete(connection: sqlite3.Connection, session: str) -> None:
    for (key,) in connection.execute("SELECT key FROM sessions WHERE id = ?", (session,)).fetchall():
        partials.remove(connection, key)
        inheritance = forks.pass_on(connection, key)
        if inheritance is not None:
            sums.move(connection, inheritance)
        sums.forget(connection, key)
        generations.forget(connection, key)
        search.forget(connection, key)
        connection.execute("DELETE FROM records WHERE session = ?", (key,))
        connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
        search.step_back(connection)
