"""The stored journal: the records of all sessions, in one file unless a daemon is told otherwise (`docs/durability.md`)."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from zotd.core.lineage import Span
from zotd.core.ports import JournalEntry, PartialText, Probe, SessionRow, StorageError
from zotd.core.records import AnyRecord
from zotd.store import forks, generations, partials, queries, salvage, search, sums, timers
from zotd.store.connection import SqlConnection
from zotd.store.database import Database
from zotd.store.errors import UnreadableSessionError, is_damage
from zotd.store.generations import Generation
from zotd.store.history import StoredHistory
from zotd.store.ownership import Ownership, SoleOwnership
from zotd.store.partials import Partials
from zotd.store.ports import JournalDatabase
from zotd.store.queries import Page
from zotd.store.settings import StoredSettings

T = TypeVar("T")

log = logging.getLogger(__name__)


class StoredJournal:
    """`core.ports.Journal` in a database, and the index of all sessions."""

    is_immediate = False
    """Each commit goes through the writer's thread."""

    def __init__(self, database: JournalDatabase, generation: Generation, ownership: Ownership) -> None:
        self.database = database
        """The database that contains the journal, for other queries."""
        self.recovery = database.recovery
        """Reports when writing works again after a failure."""
        self.ownership = ownership
        """Which sessions this daemon may write."""
        self.check_lease = ownership.check_lease
        """See `core.ports.Journal.check_lease`."""
        self.settings = StoredSettings(database)
        """Persistent settings of the daemon."""
        self._generation = generation
        self.history = StoredHistory(self._read_of, generation)
        self._partials = Partials(database.submit, ownership.check_session)
        self._damaged: dict[str, UnreadableSessionError] = {}

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

        A commit that does not continue the stored session fails. After a failed commit, the queued ones of the same
        session therefore fail too; the session then reads its row again and continues from there.
        """
        self._partials.pass_by(row.id)  # a later partial must not be written before this commit, which may remove it
        ended = partial(self._committed, row.id, done)
        self.database.append(row, entries, self._generation.number, durable=durable, done=ended)

    def keep_partial(self, session: str, partial: PartialText) -> None:
        """Keep the partial text of a running step; see `core.ports.Journal.keep_partial`."""
        self._partials.keep(session, partial)

    async def partial(self, session: str) -> PartialText | None:
        """Return the text kept of a step that a crash cut, or None. Raises like `events_after`."""
        return await self._read_of(session, partial(partials.find, session=session))

    async def records(self, session: str, start: int) -> list[AnyRecord]:
        """Return the records from number `start` on, oldest first.

        Raises UnreadableRecordError if one of them is damaged or was written by a newer program. The next two methods
        raise UnreadableSessionError; all methods below raise StorageError if the database cannot be read.
        """
        return await self._read_of(session, partial(queries.records_from, session=session, start=start))

    async def events_after(self, session: str, seq: int, limit_bytes: int) -> tuple[int, bytes]:
        """Return the `seq` of the last event and the events after `seq` as NDJSON, of at least one record, if any."""
        query = partial(queries.events_after, session=session, seq=seq, limit_bytes=limit_bytes)
        return await self._read_of(session, query)

    async def messages_before(
        self, session: str, seq: int | None, limit: int, left: Sequence[Span] = ()
    ) -> list[bytes]:
        """Return the newest `limit` message events below `seq` and outside of `left`; see `core.ports.Journal`."""
        query = partial(queries.messages_before, session=session, seq=seq, limit=limit, left=left)
        return await self._read_of(session, query)

    def damage(self, session: str) -> UnreadableSessionError | None:
        """Return why the session is read-only, or None if no read has found damage in it so far."""
        return self._damaged.get(session)

    async def row(self, session: str) -> SessionRow | None:
        """Return the index row of the session with exactly this id, or None."""
        return await self._read_of(session, partial(queries.row, session=session))

    async def find(self, text: str) -> list[SessionRow]:
        """Return the session with this id; otherwise those with this name or id prefix, newest first."""
        return await self.database.read(partial(salvage.find, text=text))

    async def delete(self, session: str) -> None:
        """Delete the session with all its records; does nothing if there is none. Raises OwnedElsewhereError."""
        await self.database.erase(partial(_delete, ownership=self.ownership, session=session))
        # A later session with the same id has other records.
        self._damaged.pop(session, None)

    async def list(
        self,
        *,
        cwd: str | None = None,
        state: str | None = None,
        before: str | None = None,
        limit: int = 100,
        subagents: bool = True,
    ) -> Page:
        """Return a page of sessions, optionally of one directory or state, newest `updated` first.

        `before` is the second result of the call for the previous page. A session that is updated between two calls
        moves to the front, so later pages may lack it.
        """
        wanted = queries.PageQuery(cwd=cwd, state=state, before=before, limit=limit, subagents=subagents)
        return await self.page(wanted)

    async def page(self, wanted: queries.PageQuery) -> Page:
        """Return a page of sessions; see `list`."""
        return await self.database.read(partial(salvage.page, query=wanted))

    async def close(self) -> None:
        """Finish queued writes, then close the database. Idempotent."""
        await self.database.close()

    def _committed(self, session: str, done: Callable[[StorageError | None], None], error: StorageError | None) -> None:
        """Report the outcome of a commit; make the session read-only if it met a damaged page, as later ones would."""
        if error is not None and is_damage(error.__cause__):
            self._note(
                session, UnreadableSessionError(session, str(error.__cause__), "the position of the next record")
            )
        done(error)

    async def _read_of(self, session: str, query: Callable[[SqlConnection], T]) -> T:
        try:
            return await self.database.read(query)
        except UnreadableSessionError as error:
            self._note(session, error)
            raise

    def _note(self, session: str, damage: UnreadableSessionError) -> None:
        if session not in self._damaged:
            log.error("%s", damage)
        self._damaged[session] = damage


class SqliteJournal(StoredJournal):
    """The journal in a file."""

    database: Database

    @classmethod
    async def open(cls, path: Path, probe: Probe | None = None) -> Self:
        """Open the journal in the file `path`, or create it (0600; the directory must exist). The caller closes it.

        The caller must hold the daemon's lock. `probe` is called at `writer.POINTS`.

        Raises:
            NewerSchemaError: a newer program wrote it.
            StorageError: it cannot be created, opened or read.
        """
        database = await Database.open(path, probe)
        try:
            return cls(database, await _begin_generation(database), SoleOwnership(database))
        except BaseException:
            await database.close()
            raise


async def _begin_generation(database: Database) -> Generation:
    try:
        await database.perform(generations.begin, durable=True)
    except StorageError as error:  # a full disk must not prevent a start: reading still works
        log.warning("clients that reconnect after a restart of the daemon get a snapshot: %s", error)
        return await database.read(generations.unrecorded)
    return await database.read(generations.begun)


def _delete(connection: SqlConnection, ownership: Ownership, session: str) -> None:
    ownership.check_session(connection, session)
    for (key,) in connection.execute("SELECT key FROM sessions WHERE id = ?", (session,)).fetchall():
        partials.remove(connection, key)
        # Forks inherit first: they need the rows of the deleted session to find out what becomes their own.
        inheritance = forks.pass_on(connection, key)
        if inheritance is not None:
            sums.move(connection, inheritance)
        sums.forget(connection, key)
        generations.forget(connection, key)
        search.forget(connection, key)  # needs the keys of the records
        timers.forget(connection, session)
        connection.execute("DELETE FROM records WHERE session = ?", (key,))
        connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
        search.step_back(connection)
