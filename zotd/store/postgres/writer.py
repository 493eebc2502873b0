"""The writer thread: sends all queued commits in one transaction and reports their outcomes in order.

    event loop    submit(write) ...............................> write.done(None | StorageError)
                       | queue (bounded)                              ^ one call_soon_threadsafe per group
    thread        take all that waits -> one round trip: BEGIN, all statements, the number of the transaction
                                      -> one round trip: COMMIT
                                      connection lost meanwhile: ask the server what became of that number

Every commit is durable (`docs/decisions/0123-postgresql-by-a-thread.md`).
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

import psycopg
from msgspec import Struct
from msgspec.structs import replace

from zotd.core.ports import StorageError
from zotd.store.connection import SqlConnection
from zotd.store.postgres import schema
from zotd.store.postgres.dialect import SharedConnection
from zotd.store.writer import WriterCounts

QUEUE_BYTES = 64 * 1024 * 1024
"""Limit of queued writes. A write above it fails, in its turn; a single one of any size is accepted."""

CLOSE_S = 5.0
"""Longest time to write the queue at the end."""

PAUSE_S = 1.0
"""Idle time before spare work starts, so that a run that commits every few milliseconds does not wait for it."""

log = logging.getLogger(__name__)


class FencedError(StorageError):
    """Another daemon has opened the database since, and this one must not write to it any more."""

    def __init__(self) -> None:
        super().__init__("the journal was not written: another daemon has taken it over")


class LostConnectionError(StorageError):
    """The connection was lost, and nothing of the transaction was stored."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(f"the journal could not be written: {schema.one_line(reason)}")


class DatabaseChange(Protocol):
    """What a write does. If it does not need its rows, its statements are sent without waiting for each other."""

    def check(self) -> None:
        """Raise StorageError if the change cannot be right, whatever is stored."""
        ...

    def send(self, connection: psycopg.Connection) -> psycopg.Cursor | None:
        """Send the statements; the cursor, if any, has a row only if the change was applied.

        It may raise StorageError if it has changed nothing.
        """
        ...

    def refusal(self, connection: psycopg.Connection) -> StorageError:
        """Return why the change was not applied."""
        ...


class SharedChange(Struct, frozen=True):
    """A change written for every kind of database: `Write.apply`."""

    apply: Callable[[SqlConnection], object]

    def check(self) -> None:
        """It is checked where it is applied."""

    def send(self, connection: psycopg.Connection) -> None:
        """Apply it."""
        self.apply(SharedConnection(connection))

    def refusal(self, _: psycopg.Connection) -> StorageError:
        """Never called: `send` returns no cursor."""
        return FencedError()


class QueuedChange(Struct, frozen=True):
    """A change, and who is told of its outcome."""

    change: DatabaseChange
    done: Callable[[StorageError | None], None]
    """Called on the event loop."""
    size_bytes: int = 0
    refused: str = ""
    """Why it will not be tried; empty if it will."""


class ChangeWriter:
    """Owns the thread and its connection. Create it on the event loop on which `done` is to be called."""

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection],
        connection: psycopg.Connection,
        generation: int,
        spare: Callable[[SqlConnection], bool],
    ) -> None:
        """Start the thread with an open connection, which it closes.

        Args:
            connect: makes another connection if that one is lost; called in the thread.
            connection: the connection to begin with.
            generation: the one that writes; nothing is written once the database has a later one.
            spare: a short slice of background work, which is repeated while it returns True and the queue stays empty.
        """
        self._connect = connect
        self._generation = str(generation)
        self._spare = spare
        self._has_spare = True
        self._spare_failure = ""
        self._connection: psycopg.Connection = connection
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._queue: queue.SimpleQueue[QueuedChange | None] = queue.SimpleQueue()  # bounded by _held_bytes; None ends
        self._held_bytes = 0
        self._closed = False
        self.counts = WriterCounts()
        # A daemon thread: a database that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def submit(self, write: QueuedChange) -> None:
        """Queue a write behind those submitted before. Returns at once; never raises."""
        if self._closed:
            self._loop.call_soon(write.done, StorageError("the journal is closed"))
            return
        if self._held_bytes and self._held_bytes + write.size_bytes > QUEUE_BYTES:
            # Through the queue as well, so that outcomes are reported in the order of submission.
            waiting = f"the database is too slow: {self._held_bytes >> 20} MiB are already waiting to be written"
            write = replace(write, refused=waiting, size_bytes=0)
        self._held_bytes += write.size_bytes
        self._queue.put(write)

    async def perform(self, change: DatabaseChange) -> None:
        """Submit a change and wait until it is committed.

        Raises:
            StorageError: it failed.
        """
        written: asyncio.Future[StorageError | None] = self._loop.create_future()
        self.submit(QueuedChange(change, lambda error: None if written.done() else written.set_result(error)))
        error = await written
        if error is not None:
            raise error

    async def close(self) -> None:
        """Write the queue, close the connection and end the thread; give up after `CLOSE_S`. May be called twice."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._ended.wait()
        except TimeoutError:
            log.warning("the journal was not closed within %s s: the database does not answer", CLOSE_S)

    # --- in the thread ---

    def _run(self) -> None:
        while group := self._next_group():
            self._tell(partial(self._report, group, self._commit(group)))
        with suppress(psycopg.Error):
            self._connection.close()
        self._tell(self._ended.set)

    def _next_group(self) -> list[QueuedChange]:
        group: list[QueuedChange] = []
        write = self._next_write()
        while write is not None:
            group.append(write)
            try:
                write = self._queue.get_nowait()
            except queue.Empty:
                return group
        if group:
            self._queue.put(None)  # the end mark came with a last group; the next call has to see it again
        return group

    def _next_write(self) -> QueuedChange | None:
        """Wait for the next write; do spare work meanwhile."""
        pause_s = PAUSE_S
        while self._has_spare:
            try:
                return self._queue.get(timeout=pause_s)
            except queue.Empty:
                self._has_spare = self._do_spare()
                pause_s = 0.0  # idle long enough: the next slice follows at once unless a write has arrived
        write = self._queue.get()  # without spare work an idle daemon never wakes up
        self._has_spare = True
        return write

    def _do_spare(self) -> bool:
        has_more: list[bool] = []
        spare = SharedChange(lambda connection: has_more.append(self._spare(connection)))
        (failure,) = self._commit([QueuedChange(spare, lambda _: None)])
        # Once, not after every commit; a lost connection is reported by whoever wants to write.
        if failure is not None and str(failure) != self._spare_failure:
            log.warning("the journal's index is not being maintained: %s", failure)
        self._spare_failure = str(failure or "")
        return failure is None and has_more[-1]

    def _commit(self, group: Sequence[QueuedChange], *, is_repeated: bool = False) -> list[StorageError | None]:
        try:
            if self._connection.closed:
                self._connection = self._connect()
            return self._transact(group)
        except LostConnectionError as error:
            # An idle connection may have been lost long ago, which only a write finds out.
            return [error] * len(group) if is_repeated else self._commit(group, is_repeated=True)
        except Exception as error:  # noqa: BLE001  (boundary: a failed write ends neither its group nor the thread)
            if len(group) == 1 or self._connection.closed:
                return [_translate(error)] * len(group)
        # Perhaps one write is at fault. Separate transactions keep the other sessions going.
        return [outcome for write in group for outcome in self._commit([write])]

    def _transact(self, group: Sequence[QueuedChange]) -> list[StorageError | None]:
        connection = self._connection
        outcomes = [_checked(write) for write in group]
        number = None
        try:
            with connection.pipeline():
                connection.execute("BEGIN")
                # A daemon that opens the database waits for the end of this transaction, or this one sees its generation.
                connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (schema.LOCK,))
                current = connection.execute("SELECT value FROM meta WHERE key = 'generation'")
                sent = [_sent(write.change, connection, outcomes, place) for place, write in enumerate(group)]
                numbered = connection.execute("SELECT pg_current_xact_id()::text")
            if current.fetchone() != (self._generation,):
                connection.execute("ROLLBACK")
                return [FencedError() for _ in group]
            for place, cursor in enumerate(sent):
                if cursor is not None and cursor.rowcount == 0:
                    outcomes[place] = group[place].change.refusal(connection)
            (number,) = numbered.fetchone() or (None,)
            connection.execute("COMMIT")
        except Exception as error:
            if not connection.closed:
                connection.execute("ROLLBACK")
                raise
            # Only a transaction whose number is known can have been told to commit.
            if number is None or not self._has_committed(number):
                raise LostConnectionError(error) from error
        before = self.counts
        self.counts = WriterCounts(before.writes + len(group), before.transactions + 1, before.synced + 1)
        return outcomes

    def _has_committed(self, number: str) -> bool:
        """Return whether a transaction was committed whose COMMIT was not answered; connects anew.

        Raises:
            StorageError: the database cannot be reached, or has not decided yet.
        """
        self._connection = self._connect()
        query = "SELECT pg_xact_status(%s::text::xid8)"
        (status,) = self._connection.execute(query, (number,)).fetchone() or (None,)
        if status not in {"committed", "aborted"}:
            self._connection.close()  # so that the group is not tried again while the server may still commit it
            raise StorageError(
                "the connection to the journal was lost, and the server has not decided about the commit"
            )
        return bool(status == "committed")

    def _tell(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed, and with it every receiver of the report
            log.debug("the event loop ended before the journal")

    # --- on the event loop ---

    def _report(self, group: Sequence[QueuedChange], outcomes: Sequence[StorageError | None]) -> None:
        for write, error in zip(group, outcomes, strict=True):
            self._held_bytes -= write.size_bytes
            try:
                write.done(error)
            except Exception:  # boundary: an error in one session must not affect the others of the group
                log.exception("a session failed after its commit")


def _sent(
    change: DatabaseChange, connection: psycopg.Connection, outcomes: list[StorageError | None], place: int
) -> psycopg.Cursor | None:
    """Send a change that nothing refuses; note why if it refuses to be applied."""
    if outcomes[place] is not None:
        return None
    try:
        return change.send(connection)
    except StorageError as error:
        outcomes[place] = error
        return None


def _checked(write: QueuedChange) -> StorageError | None:
    if write.refused:
        return StorageError(write.refused)
    try:
        write.change.check()
    except StorageError as error:
        return error
    return None


def _translate(error: Exception) -> StorageError:
    if isinstance(error, StorageError):
        return error
    if not isinstance(error, psycopg.Error):
        log.error("a write to the journal failed with an unexpected error", exc_info=error)
        return StorageError("the journal could not be written: see the daemon's log")
    failure = StorageError(f"the journal could not be written: {schema.one_line(error)}")
    failure.__cause__ = error
    return failure
