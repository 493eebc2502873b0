"""The writer thread: commits all queued writes in one transaction (group commit) and reports the outcomes in order.

    a group of the queue (`store.write_queue`) -> BEGIN, apply each, COMMIT -> outcomes
                                                  on failure: each in a transaction of its own

Synchronous is FULL for a group with a durable write in it, else NORMAL. A FULL commit syncs the whole write-ahead
log, and so makes the NORMAL ones before it durable as well; SQLite itself syncs the log before each checkpoint.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from zotd.core.ports import Probe, StorageError
from zotd.store.connection import SqlConnection, Write
from zotd.store.schema import BUSY_S, transaction
from zotd.store.write_queue import WriteQueue

RETRY_S = 5.0
"""Pause before tidying is tried again; it fails while another process reads the database."""

POINTS = (BEFORE_BEGIN, BEFORE_COMMIT, COMMITTED, BEFORE_REPORT) = (
    "before begin",
    "before commit",
    "committed",
    "before report",
)
"""Where a probe is called: three times in the thread for each transaction, once on the event loop for each group."""

_FAILED_SYNC = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})

log = logging.getLogger(__name__)


class WriterCounts(Struct, frozen=True):
    """Counters since the writer was opened."""

    writes: int = 0
    transactions: int = 0
    synced: int = 0
    """Transactions that were synced to disk."""


class Writer:
    """Owns the writer thread and its connection. Create it on the event loop on which `done` is to be called."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        spare: Callable[[sqlite3.Connection], bool] | None = None,
        probe: Probe | None = None,
        tidy: Callable[[sqlite3.Connection], bool] | None = None,
    ) -> None:
        """Prepare the thread; `open` starts it.

        Args:
            connect: opens the connection; runs in the thread.
            spare: a short slice of background work; runs in the thread, in a transaction, when the queue has been
                empty for `PAUSE_S`. It is repeated while it returns True and the queue stays empty.
            probe: called at each of `POINTS`, for tests that kill the process there.
            tidy: runs outside of a transaction once no spare work is left, again after `RETRY_S` if it returns True.
        """
        self._connect = connect
        self._tidy = tidy
        self._spare = spare
        self._probe = probe
        self._spare_failure = ""
        """Last error of the spare work; empty if it succeeded."""
        self._opened = asyncio.Event()
        self._failure: Exception | None = None
        self._queue: WriteQueue[Write] = WriteQueue("the disk", _refused, reporting=partial(self._reach, BEFORE_REPORT))
        # A daemon thread: a disk that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self.counts = WriterCounts()
        self._syncs: bool | None = None
        """Whether `PRAGMA synchronous` is FULL; None if it was not set yet."""
        self._is_doubtful = False
        """A sync has failed, so it is unknown which part of the log is on disk."""

    async def open(self) -> None:
        """Start the thread; raises what `connect` raises."""
        self._thread.start()
        await self._opened.wait()
        if self._failure is not None:
            raise self._failure

    def submit(self, write: Write) -> None:
        """Queue a write behind those submitted before. Returns at once; never raises."""
        self._queue.submit(write)

    async def perform(
        self, apply: Callable[[SqlConnection], object], *, durable: bool = False, alone: bool = False
    ) -> None:
        """Submit a write and wait until it is committed.

        Cancelling the call does not cancel the write.

        Raises:
            StorageError: the write failed.
        """
        await self._queue.perform(lambda done: Write(apply, done, durable=durable, alone=alone))

    async def close(self) -> None:
        """Write the queue, close the connection and end the thread; give up after `CLOSE_S`. May be called twice."""
        await self._queue.close()

    # --- in the thread ---

    def _run(self) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # noqa: BLE001  (boundary: raised again by `open`)
            self._failure = error
            self._queue.end()
            return
        finally:
            self._queue.tell(self._opened.set)
        idle = None if self._spare is None else partial(self._idle, connection)
        self._queue.work(partial(self._commit, connection), idle)
        try:
            connection.close()
        except sqlite3.Error:
            log.exception("the journal could not be closed")
        self._queue.end()

    def _idle(self, connection: sqlite3.Connection) -> float | None:
        """Do a slice of spare work, or tidy; see `WriteQueue.work`."""
        if self._do_spare(connection):
            return 0.0  # idle long enough: the next slice follows at once unless a write has arrived
        return RETRY_S if self._has_to_tidy(connection) else None

    def _do_spare(self, connection: sqlite3.Connection) -> bool:
        assert self._spare is not None
        try:
            self._sync(connection, durable=False)
            with self._transaction(connection):
                has_more = self._spare(connection)
        except sqlite3.Error as error:  # tried again after the next commit
            if str(error) != self._spare_failure:  # report a full disk once, not after every commit
                log.warning("the journal's index and free space are not being maintained: %s", error)
            self._spare_failure = str(error)
            return False
        except Exception:  # boundary: must not end the thread
            log.exception("background work on the journal failed")
            return False

        self._spare_failure = ""
        return has_more

    def _has_to_tidy(self, connection: sqlite3.Connection) -> bool:
        try:
            return self._tidy is not None and self._tidy(connection)
        except Exception:  # boundary: as for spare work
            log.exception("the journal could not be tidied")
            return False

    def _commit(self, connection: sqlite3.Connection, group: Sequence[Write]) -> list[StorageError | None]:
        """Commit the group, or its writes one by one if that fails; the outcome of each write."""
        try:
            # A write that runs alone cannot share a transaction; then every write of the group gets its own.
            if len(group) == 1 or not any(write.alone for write in group):
                return self._transact(connection, group)
        except Exception as error:  # noqa: BLE001  (boundary: a failed write ends neither its group nor the thread)
            self._is_doubtful |= _is_failed_sync(error)
            if len(group) == 1:
                return [_translate(error)]
        # A group fails as a whole, but perhaps because of one write only (a damaged page, a large record on a nearly
        # full disk). Separate transactions keep the other sessions going.
        return [outcome for write in group for outcome in self._commit(connection, [write])]

    def _transact(self, connection: sqlite3.Connection, group: Sequence[Write]) -> list[StorageError | None]:
        durable = any(write.durable for write in group)
        if self._is_doubtful:
            self._rewrite_log(connection)  # first, or a successful sync would acknowledge lost data
        self._sync(connection, durable=durable)
        if group[0].alone:
            return [_apply(connection, group[0])]
        with self._transaction(connection):
            outcomes = [_apply(connection, write) for write in group]
        before = self.counts
        self.counts = WriterCounts(before.writes + len(group), before.transactions + 1, before.synced + durable)
        return outcomes

    @contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Iterator[None]:
        self._reach(BEFORE_BEGIN)
        with transaction(connection):
            yield
            self._reach(BEFORE_COMMIT)
        self._reach(COMMITTED)

    def _sync(self, connection: sqlite3.Connection, *, durable: bool) -> None:
        if durable is not self._syncs:  # the statement costs more than a small commit
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._syncs = durable

    def _rewrite_log(self, connection: sqlite3.Connection) -> None:
        """Copy the whole log into the database file and start a new log.

        After a failed sync the system may drop the pages that it could not write, and the next sync succeeds without
        reporting that. The pages can still be read, so they are written again, to another file.

        Raises:
            StorageError: another process is reading the database.
            sqlite3.Error: the disk still fails.
        """
        self._sync(connection, durable=True)
        connection.execute("PRAGMA busy_timeout = 0")  # fail at once: all commits wait behind this statement
        try:
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {round(BUSY_S * 1000)}")
        if is_busy:
            raise StorageError("the journal could not be synced, and cannot be repaired while it is being read")
        self._is_doubtful = False

    def _reach(self, point: str) -> None:
        if self._probe is not None:
            self._probe(point)


def _apply(connection: sqlite3.Connection, write: Write) -> StorageError | None:
    try:
        write.apply(connection)
    except StorageError as error:
        return error
    return None


def _refused(write: Write, reason: str) -> Write:
    def refuse(_: SqlConnection) -> None:
        raise StorageError(reason)

    return replace(write, apply=refuse, size_bytes=0)


def _is_failed_sync(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", None) in _FAILED_SYNC


def _translate(error: Exception) -> StorageError:
    if isinstance(error, StorageError):
        return error
    if isinstance(error, sqlite3.Error):
        failure = StorageError(f"the journal could not be written: {error}")
    else:
        log.error("a write to the journal failed with an unexpected error", exc_info=error)
        failure = StorageError("the journal could not be written: see the daemon's log")
    failure.__cause__ = error
    return failure
