"""The thread that writes: takes everything that waits as one transaction (group commit), and reports in order.

    event loop    submit(write) ...............................> write.done(None | StorageError)
                       | queue (bounded)                              ^ one call_soon_threadsafe per group
    thread        take all that waits -> BEGIN, apply each, COMMIT ---+
                                         on failure: each in a transaction of its own
                  nothing waits for a while -> spare work, a slice at a time

Synchronous is FULL for a group with a durable write in it, else NORMAL. A FULL commit syncs the whole write-ahead
log, and so makes the NORMAL ones before it durable as well; SQLite itself syncs the log before each checkpoint.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from zotd.core.ports import Probe, StorageError
from zotd.store.schema import BUSY_S, transaction

QUEUE_BYTES = 64 * 1024 * 1024
"""What may wait for the disk. Sessions wait for their commits, so that only a disk that has stopped gets here; a
write over it is refused, in its turn. A single one of any size is taken when nothing else waits."""

CLOSE_S = 5.0
"""Longest wait for the queue to be written at the end. A disk that takes longer does not answer at all, and the
service manager's patience is limited; nothing unwritten was acknowledged."""

PAUSE_S = 1.0
"""How long nothing must have been written before spare work is done. Spare work is for when nobody waits: a run commits
every few milliseconds while its tools run, and a commit that meets a slice waits for that."""

RETRY_S = 5.0
"""Pause before what could not be tidied is tried again: somebody reads the database for long."""

POINTS = (BEFORE_BEGIN, BEFORE_COMMIT, COMMITTED, BEFORE_REPORT) = (
    "before begin",
    "before commit",
    "committed",
    "before report",
)
"""Where a probe is called: three times in the thread for each transaction, once on the event loop for each group."""

_FAILED_SYNC = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Write:
    """One thing to be written, whole or not at all."""

    apply: Callable[[sqlite3.Connection], object]
    """Runs in the thread, inside a transaction, perhaps again after that one failed. A StorageError from it means
    that it changed nothing; the others of its group are not affected."""
    done: Callable[[StorageError | None], None]
    """Called on the event loop."""
    durable: bool = False
    size_bytes: int = 0
    alone: bool = False
    """Outside of a transaction, and with no other write: VACUUM and checkpoints cannot be in one."""


@dataclass(frozen=True, slots=True)
class WriterCounts:
    """What the writer did since it was opened."""

    writes: int = 0
    transactions: int = 0
    synced: int = 0
    """How many of the transactions waited for the disk."""


class Writer:
    """Owns the thread and the connection that writes; made on the event loop that `done` is called on."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        spare: Callable[[sqlite3.Connection], bool] | None = None,
        probe: Probe | None = None,
        tidy: Callable[[sqlite3.Connection], bool] | None = None,
    ) -> None:
        """`connect` runs in the thread, and so does `spare`: a short slice of work, done when nothing waits.

        It is called after each pause inside a transaction, and as long as it returns True and still nothing waits.
        `tidy` is called when no spare work is left, outside of a transaction; when it returns True, again after
        `RETRY_S`. `probe` is called at `POINTS`.
        """
        self._connect = connect
        self._tidy = tidy
        self._spare = spare
        self._probe = probe
        self._has_spare = spare is not None
        self._spare_failure = ""
        """What spare work met last; empty: it succeeded."""
        self._loop = asyncio.get_running_loop()
        self._opened = asyncio.Event()
        self._failure: Exception | None = None
        self._ended = asyncio.Event()
        self._queue: queue.SimpleQueue[Write | None] = queue.SimpleQueue()  # bounded by _held_bytes; None ends
        self._held_bytes = 0
        self._closed = False
        # A daemon thread: a disk that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self.counts = WriterCounts()
        self._syncs: bool | None = None
        """What `PRAGMA synchronous` was last set to; None: not yet."""
        self._is_doubtful = False
        """A sync has failed, and nobody knows what of the log is on the disk."""

    async def open(self) -> None:
        """Start the thread; raises what `connect` raises."""
        self._thread.start()
        await self._opened.wait()
        if self._failure is not None:
            raise self._failure

    def submit(self, write: Write) -> None:
        """Write it after all that was submitted before. Returns at once; never raises."""
        refusal = self._refusal(write)
        if refusal is not None:
            write = replace(write, apply=_refuse(refusal), size_bytes=0)
        self._held_bytes += write.size_bytes
        if self._closed:
            self._loop.call_soon(write.done, StorageError(refusal))
        else:
            self._queue.put(write)

    async def perform(
        self, apply: Callable[[sqlite3.Connection], object], *, durable: bool = False, alone: bool = False
    ) -> None:
        """The same for a write that is awaited; raises the StorageError that it failed with."""
        written: asyncio.Future[None] = self._loop.create_future()

        def done(error: StorageError | None) -> None:
            if written.done():  # whoever waited was cancelled; what was written is written
                return
            if error is None:
                written.set_result(None)
            else:
                written.set_exception(error)

        self.submit(Write(apply, done, durable=durable, alone=alone))
        await written

    async def close(self) -> None:
        """Write what waits, close the connection, end the thread; gives up after `CLOSE_S`. May be called twice."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._ended.wait()
        except TimeoutError:
            log.warning("the journal was not closed within %s s: the disk does not answer", CLOSE_S)

    def _refusal(self, write: Write) -> str | None:
        if self._closed:
            return "the journal is closed"
        if self._held_bytes and self._held_bytes + write.size_bytes > QUEUE_BYTES:
            return f"the disk is too slow: {self._held_bytes >> 20} MiB are already waiting to be written"
        return None

    # --- in the thread ---

    def _run(self) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # noqa: BLE001  (boundary: raised again by `open`)
            self._failure = error
            self._tell(self._ended.set)
            return
        finally:
            self._tell(self._opened.set)
        while group := self._next_group(connection):
            outcomes = self._commit(connection, group)
            self._tell(partial(self._report, group, outcomes))
        try:
            connection.close()
        except sqlite3.Error:
            log.exception("the journal could not be closed")
        self._tell(self._ended.set)

    def _next_group(self, connection: sqlite3.Connection) -> list[Write]:
        """Everything that waits, at least one; empty when the writer is to end."""
        group: list[Write] = []
        write = self._next_write(connection)
        while write is not None:
            group.append(write)
            try:
                write = self._queue.get_nowait()
            except queue.Empty:
                return group
        if group:
            self._queue.put(None)  # seen behind a last group: seen again after it
        return group

    def _next_write(self, connection: sqlite3.Connection) -> Write | None:
        """What comes next; a pause before it is used for spare work."""
        pause_s = PAUSE_S
        while self._has_spare:
            try:
                return self._queue.get(timeout=pause_s)
            except queue.Empty:
                self._has_spare = self._do_spare(connection)
                pause_s = 0.0
                if not self._has_spare and self._has_to_tidy(connection):
                    self._has_spare, pause_s = True, RETRY_S
        write = self._queue.get()
        self._has_spare = self._spare is not None
        return write

    def _do_spare(self, connection: sqlite3.Connection) -> bool:
        assert self._spare is not None
        try:
            self._sync(connection, durable=False)
            with self._transaction(connection):
                has_more = self._spare(connection)
        except sqlite3.Error as error:  # it is tried again after the next commit
            if str(error) != self._spare_failure:  # a full disk is told once, and not with every commit
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
        """What became of each write of the group."""
        try:
            if len(group) == 1 or not any(write.alone for write in group):
                return self._transact(connection, group)
        except Exception as error:  # noqa: BLE001  (boundary: a failed write ends neither its group nor the thread)
            self._is_doubtful |= _is_failed_sync(error)
            if len(group) == 1:
                return [_translate(error)]
        return [outcome for write in group for outcome in self._commit(connection, [write])]

    def _transact(self, connection: sqlite3.Connection, group: Sequence[Write]) -> list[StorageError | None]:
        durable = any(write.durable for write in group)
        if self._is_doubtful:
            self._rewrite_log(connection)
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
        if durable is not self._syncs:  # a statement costs more than a small commit's own work
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._syncs = durable

    def _rewrite_log(self, connection: sqlite3.Connection) -> None:
        """Have all that is in the log written into the database itself, and begin a new log; raises when it cannot.

        A system that could not sync may have forgotten what it had to write: the next sync succeeds, and says nothing
        of that. The pages can still be read, so they are written once more, elsewhere.
        """
        self._sync(connection, durable=True)
        connection.execute("PRAGMA busy_timeout = 0")  # the others' commits are not to wait for somebody who reads
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

    def _tell(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed: nobody is left to be told
            log.debug("the event loop ended before the journal")

    # --- on the event loop ---

    def _report(self, group: Sequence[Write], outcomes: Sequence[StorageError | None]) -> None:
        self._reach(BEFORE_REPORT)
        for write, error in zip(group, outcomes, strict=True):
            self._held_bytes -= write.size_bytes
            try:
                write.done(error)
            except Exception:  # boundary: what one session makes of its commit is not the others' business
                log.exception("a session failed after its commit")


def _apply(connection: sqlite3.Connection, write: Write) -> StorageError | None:
    try:
        write.apply(connection)
    except StorageError as error:
        return error
    return None


def _refuse(reason: str) -> Callable[[sqlite3.Connection], None]:
    def apply(_: sqlite3.Connection) -> None:
        raise StorageError(reason)

    return apply


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
