"""A database of PostgreSQL with a writer thread and reader threads, each with its own connection."""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import psycopg
from msgspec import Struct
from psycopg.pq import TransactionStatus

from zotd.core.ports import JournalEntry, SessionRow, StorageError
from zotd.store import staged
from zotd.store.connection import Row, SqlConnection, Write
from zotd.store.database import READ_S
from zotd.store.postgres import schema
from zotd.store.postgres.append import Append
from zotd.store.postgres.dialect import SharedConnection, translated
from zotd.store.postgres.identity import DaemonIdentity, identity_of
from zotd.store.postgres.lease import Lease, now
from zotd.store.postgres.registration import register
from zotd.store.postgres.search import WordVectors
from zotd.store.postgres.writer import ChangeWriter, QueuedChange, SharedChange
from zotd.store.recovery import Recovery
from zotd.store.search import SearchIndex
from zotd.store.writer import WriterCounts

CANCEL_S = 1.0
"""Longest time to tell the server that nobody waits for a query any more, in seconds."""

READERS = 4
"""Threads that read, each with a connection: the answer of a server takes longer than that of a file."""

_USED = """
SELECT (SELECT coalesce(sum(octet_length(body) + octet_length(events) + 128), 0) FROM records)
    + (SELECT coalesce(sum(octet_length(row) + 128), 0) FROM sessions)
"""
"""Not the size of the tables, which does not shrink with a deletion: `[retention]` would then delete one session after the
other. The lengths of long values are known without reading them."""

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relkind IN ('r', 'S') AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'meta'::regclass)
"""

UPKEEP_LOCK = 0x7A6F75
"""Number of the advisory lock of background work, which one daemon at a time does."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Begun(Struct, frozen=True):
    """A connection, and what the daemon was registered as."""

    connection: psycopg.Connection
    epoch: str
    identity: DaemonIdentity
    number: int
    sent: float


class PostgresDatabase:
    """`zotd.store.ports.JournalDatabase` on PostgreSQL; see `open`."""

    def __init__(self, url: str, begun: _Begun) -> None:
        self._url = url
        connect = partial(schema.connect, url, begun.identity.application)
        self.epoch = begun.epoch
        """Identifies the content of the database: a restored copy has another one."""
        self.lease = Lease(connect, begun.identity, begun.number, begun.sent)
        self.index = SearchIndex(WordVectors())
        self.warnings: list[str] = []
        """Always empty: what is found at the start prevents it."""
        spare = partial(_use_pause, index=self.index)
        self._writer = ChangeWriter(connect, begun.connection, lambda: self.lease.number, spare)
        self._readers = ThreadPoolExecutor(READERS, "journal-reader")
        self._mine = threading.local()
        self._open: list[psycopg.Connection] = []  # each reader's; list.append is atomic
        self._closed = False
        self.recovery = Recovery(self.submit)
        """Reports when writing works again after a failure."""

    @classmethod
    async def open(cls, url: str, home: Path) -> Self:
        """Connect, upgrade the schema and register this daemon, in place of an earlier one of `home`. The caller closes it.

        Raises:
            NewerSchemaError: a newer program made the schema.
            StorageError: the database cannot be reached, or refuses a change of the schema.
        """
        return cls(url, await asyncio.to_thread(_begin, url, home))

    @property
    def maker(self) -> str:
        """The number of this daemon, of which a session is that is being imported."""
        return str(self.lease.number)

    @property
    def counts(self) -> WriterCounts:
        """Number of writes since it was opened."""
        return self._writer.counts

    async def read(self, query: Callable[[SqlConnection], T]) -> T:
        """Run `query` in a thread and a transaction of its own; raises StorageError if it fails."""
        return await self._call(lambda connection: query(SharedConnection(connection)))

    async def look(self, query: str, parameters: Sequence[object]) -> Row:
        """Return the first row of a query of our own, or None: in one round trip, and without its being planned each time."""

        def run(connection: psycopg.Connection) -> Row:
            return connection.execute(translated(query).encode(), parameters, prepare=True).fetchone()

        return await self._call(run, in_transaction=False)

    def append(
        self,
        row: SessionRow,
        entries: Sequence[JournalEntry],
        generation: int,  # noqa: ARG002  (a session belongs to the daemon with a lease)
        *,
        durable: bool,  # noqa: ARG002  (every commit is)
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Queue a commit of a session; every commit is durable. See `core.ports.Journal.commit`."""
        commit = Append.of(row, entries, self.lease.number)
        self._writer.submit(QueuedChange(commit, done, commit.size_bytes))

    def submit(self, write: Write) -> None:
        """Queue a write behind all earlier ones. Returns at once and never raises."""
        self._writer.submit(QueuedChange(SharedChange(write.apply), write.done, write.size_bytes))

    async def perform(self, apply: Callable[[SqlConnection], object], *, durable: bool = False) -> None:  # noqa: ARG002  (always)
        """Queue a write and wait for it; raises the StorageError that it failed with."""
        await self._writer.perform(SharedChange(apply))

    async def erase(self, apply: Callable[[SqlConnection], object]) -> None:
        """Write a deletion. The server overwrites deleted rows when it vacuums, and keeps its log as it is told to."""
        await self.perform(apply)

    async def compact(self) -> tuple[int, int]:
        """Have the server take back the room of deleted rows; return the size in bytes before and after."""
        before = await self._number(_SIZE)
        await self._call(_vacuum, in_transaction=False, limit_s=None)
        return before, await self._number(_SIZE)

    async def used_bytes(self) -> int:
        """Return the size of the records and rows, without indexes and the room of deleted ones. Raises StorageError."""
        return await self._number(_USED)

    async def close(self) -> None:
        """Finish queued writes, then close the connections. Idempotent."""
        self.recovery.close()
        was_closed, self._closed = self._closed, True
        await asyncio.to_thread(self._close_readers)
        await self.lease.close()
        if not was_closed:
            self.submit(Write(self.lease.leave, _note_leaving))
        await self._writer.close()

    async def _number(self, query: str) -> int:
        (number,) = await self.read(lambda connection: connection.execute(query).fetchone())
        return int(number)

    def _close_readers(self) -> None:
        for connection in tuple(self._open):
            if connection.info.transaction_status is TransactionStatus.ACTIVE:
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=CANCEL_S)
        self._readers.shutdown()  # a connection is closed while its thread does not use it
        while self._open:
            self._open.pop().close()

    async def _call(
        self, work: Callable[[psycopg.Connection], T], *, in_transaction: bool = True, limit_s: float | None = READ_S
    ) -> T:
        """Run `work` in a reader's thread. `limit_s`: None for upkeep, which may take minutes."""
        if self._closed:
            raise StorageError("the journal is closed")
        call = partial(self._with_connection, work, in_transaction=in_transaction)
        try:
            async with asyncio.timeout(limit_s):
                return await asyncio.get_running_loop().run_in_executor(self._readers, call)
        except TimeoutError as error:
            raise StorageError(f"the journal {schema.shown(self._url)} did not answer within {READ_S:g} s") from error
        except psycopg.Error as error:
            raise StorageError(f"the journal could not be read: {schema.one_line(error)}") from error

    # --- in a reader's thread ---

    def _with_connection(self, work: Callable[[psycopg.Connection], T], *, in_transaction: bool) -> T:
        connection, is_new = self._connection()
        try:
            return _run(work, connection, in_transaction=in_transaction)
        except psycopg.OperationalError:
            # The server may have ended an idle connection long ago, or was started anew: a read can be repeated.
            if is_new or not connection.closed:
                raise
        return _run(work, self._connection()[0], in_transaction=in_transaction)

    def _connection(self) -> tuple[psycopg.Connection, bool]:
        """Return this thread's connection, and whether it was made just now."""
        known: psycopg.Connection | None = getattr(self._mine, "connection", None)
        if known is not None and not known.closed:
            return known, False
        if known in self._open:
            self._open.remove(known)
        self._mine.connection = made = schema.connect(self._url)
        self._open.append(made)
        return made, True


def _run(work: Callable[[psycopg.Connection], T], connection: psycopg.Connection, *, in_transaction: bool) -> T:
    if not in_transaction:
        return work(connection)
    with connection.transaction():
        return work(connection)


def _vacuum(connection: psycopg.Connection) -> None:
    connection.execute("SET statement_timeout = 0")  # it may take minutes, and locks no commits
    try:
        for table in ("records", "sessions", "texts", "partials", "sums"):
            connection.execute(f"VACUUM {table}")
    finally:
        connection.execute(f"SET statement_timeout = '{schema.STATEMENT_S}s'")


def _use_pause(connection: SqlConnection, index: SearchIndex) -> bool:
    """Do a slice of background work while the writer is idle; return True if there may be more."""
    (is_alone,) = connection.execute("SELECT pg_try_advisory_xact_lock(?)", (UPKEEP_LOCK,)).fetchone() or (False,)
    return bool(is_alone) and (staged.sweep(connection, _makers) or index.keep_up(connection))


def _note_leaving(error: StorageError | None) -> None:
    if error is not None:
        log.warning("the sessions of this daemon are free when its lease expires: %s", error)


def _makers(connection: SqlConnection) -> Collection[str]:
    return {str(number) for (number,) in connection.execute("SELECT number FROM daemons").fetchall()}


def _begin(url: str, home: Path) -> _Begun:
    identity = identity_of(home)
    connection = schema.connect(url, identity.application)
    try:
        begun = _registered(connection, identity, upgrades=False) or _registered(connection, identity, upgrades=True)
    except psycopg.Error as error:
        connection.close()
        raise StorageError(f"the journal {schema.shown(url)} cannot be opened: {schema.one_line(error)}") from error
    except BaseException:
        connection.close()
        raise
    assert begun is not None
    return begun


def _registered(connection: psycopg.Connection, identity: DaemonIdentity, *, upgrades: bool) -> _Begun | None:
    """Register; None if the schema has to be upgraded first, for which all other daemons have to wait."""
    with connection.transaction():
        if upgrades:
            schema.upgrade(connection)
        elif not schema.is_current(connection):
            return None
        sent = now()
        return _Begun(connection, schema.epoch_of(connection), identity, register(connection, identity), sent)
