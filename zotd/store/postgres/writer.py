"""The writer thread: sends all queued commits in one transaction and reports their outcomes in order.

    a group of the queue (`store.write_queue`)
        only commits of sessions -> one round trip: BEGIN, all statements, COMMIT -> outcomes
                                    connection lost: end the server's process, look which are stored
        other writes, too        -> one round trip: BEGIN, all statements, the number of the transaction
                                 -> one round trip: COMMIT -> outcomes
                                    connection lost: ask the server what became of that number

Every commit is durable (`docs/decisions/0123-postgresql-by-a-thread.md`).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, NoReturn, Protocol

import psycopg
from msgspec import Struct
from msgspec.structs import replace

from zotd.core.ports import StorageError
from zotd.store.connection import SqlConnection
from zotd.store.postgres import schema
from zotd.store.postgres.dialect import SharedConnection
from zotd.store.postgres.lease import FencedError
from zotd.store.write_queue import WriteQueue
from zotd.store.writer import WriterCounts

END_MS = 5000
"""Longest wait for the end of a process of the server."""

Backend = tuple[int, str]
"""A process of the server that serves a connection: its number and its start, as seconds since the epoch in decimal digits."""

_REGISTERED = "SELECT FROM daemons WHERE number = %s FOR KEY SHARE"
"""Has a row if this daemon may write. Nobody can delete that before the end of the transaction, and it can be renewed."""

_TOUCH = "UPDATE meta SET value = value WHERE key = 'generation'"

_BACKEND = "SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity WHERE pid = pg_backend_pid()"

_END = """
SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity
WHERE pid = %s AND extract(epoch FROM backend_start)::text = %s AND pid <> pg_backend_pid()
"""
"""A pooler may give a new connection the process of the lost one, which has then ended its transaction."""

log = logging.getLogger(__name__)


class LostConnectionError(StorageError):
    """The connection was lost, and nothing of the transaction was stored."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(f"the journal could not be written: {schema.one_line(reason)}")


class DatabaseChange(Protocol):
    """What a write does. If it does not need its rows, its statements are sent without waiting for each other."""

    @property
    def is_recognizable(self) -> bool:
        """Whether it checks itself that the daemon may write, needs no answers, and `is_stored` recognizes it afterwards."""
        ...

    def check(self) -> None:
        """Raise StorageError if the change cannot be right, whatever is stored."""
        ...

    def is_stored(self, connection: psycopg.Connection) -> bool:
        """Return whether it was applied, if it is recognizable and no later change of its kind was sent."""
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

    is_recognizable: ClassVar[bool] = False
    apply: Callable[[SqlConnection], object]

    def check(self) -> None:
        """It is checked where it is applied."""

    def is_stored(self, _: psycopg.Connection) -> bool:
        """Never called: it is not recognizable."""
        return False

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
        number: Callable[[], int],
        spare: Callable[[SqlConnection], bool],
    ) -> None:
        """Start the thread with an open connection, which it closes.

        Args:
            connect: makes another connection if that one is lost; called in the thread.
            connection: the connection to begin with.
            number: returns that of this daemon; nothing is written without a row of it in `daemons`.
            spare: a short slice of background work, which is repeated while it returns True and the queue stays empty.
        """
        self._connect = connect
        self._number = number
        self._spare = spare
        self._spare_failure = ""
        self._connection: psycopg.Connection = connection
        self._backends: list[Backend] = []  # the one of this connection, last, and those that may still be at work
        self._queue: WriteQueue[QueuedChange] = WriteQueue("the database", _refused)
        self.counts = WriterCounts()
        # A daemon thread: a database that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def submit(self, write: QueuedChange) -> None:
        """Queue a write behind those submitted before. Returns at once; never raises."""
        self._queue.submit(write)

    async def perform(self, change: DatabaseChange) -> None:
        """Submit a change and wait until it is committed.

        Raises:
            StorageError: it failed.
        """
        await self._queue.perform(lambda done: QueuedChange(change, done))

    async def close(self) -> None:
        """Write the queue, close the connection and end the thread; see `WriteQueue.close`."""
        await self._queue.close()

    # --- in the thread ---

    def _run(self) -> None:
        try:
            self._backends.append(_backend(self._connection))
        except Exception:  # noqa: BLE001  (boundary: the first write connects anew, and reports what is wrong)
            self._connection.close()
        self._queue.work(self._commit, self._idle)
        with suppress(psycopg.Error):
            self._connection.close()
        self._queue.end()

    def _idle(self) -> float | None:
        return 0.0 if self._do_spare() else None

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
                self._reconnect()
            are_recognizable = all(write.change.is_recognizable for write in group)
            return self._transact_at_once(group) if are_recognizable else self._transact(group)
        except LostConnectionError as error:
            # An idle connection may have been lost long ago, which only a write finds out.
            return [error] * len(group) if is_repeated else self._commit(group, is_repeated=True)
        except Exception as error:  # noqa: BLE001  (boundary: a failed write ends neither its group nor the thread)
            if len(group) == 1 or self._connection.closed:
                return [_translate(error)] * len(group)
        # Perhaps one write is at fault. Separate transactions keep the other sessions going.
        return [outcome for write in group for outcome in self._commit([write])]

    def _transact_at_once(self, group: Sequence[QueuedChange]) -> list[StorageError | None]:
        connection = self._connection
        outcomes = [_checked(write) for write in group]
        try:
            with connection.pipeline():
                _begin(connection)
                sent = [_sent(write.change, connection, outcomes, place) for place, write in enumerate(group)]
                connection.execute("COMMIT")
            missing = [cursor is not None and cursor.rowcount == 0 for cursor in sent]
        except Exception as error:
            if _is_rolled_back(connection):
                raise
            self._reconnect()
            stored = self._are_stored(group, outcomes)
            if not any(stored):
                raise LostConnectionError(error) from error
            missing = [outcome is None and not found for outcome, found in zip(outcomes, stored, strict=True)]
        for place, write in enumerate(group):
            if missing[place]:
                outcomes[place] = self._refusal(write.change)
        self._count(group)
        return outcomes

    def _refusal(self, change: DatabaseChange) -> StorageError:
        connection = self._connection
        try:
            return change.refusal(connection) if self._may_write(connection) else FencedError()
        except psycopg.Error as error:  # the others of the group are stored
            return _translate(error)

    def _reconnect(self) -> None:
        """Connect anew, and have the server end the processes that served lost connections.

        Nothing that was sent to them happens afterwards.

        Raises:
            StorageError: the database cannot be reached, or one of them does not end.
        """
        self._connection = connection = self._connect()
        try:
            while self._backends:
                if connection.execute(_END, (END_MS, *self._backends[0])).fetchone() == (False,):
                    self._give_up()
                self._backends.pop(0)
            self._backends.append(_backend(connection))
        except psycopg.Error as error:
            self._give_up(error)

    def _are_stored(self, group: Sequence[QueuedChange], outcomes: Sequence[StorageError | None]) -> list[bool]:
        connection = self._connection
        with connection.transaction():
            schema.lock(connection)
            # A transaction that writes ends when the standbys have it, and with it the commits that it has seen.
            connection.execute(_TOUCH)
            if not self._may_write(connection):
                raise FencedError
            return [
                outcome is None and write.change.is_stored(connection)
                for write, outcome in zip(group, outcomes, strict=True)
            ]

    def _may_write(self, connection: psycopg.Connection) -> bool:
        return connection.execute(_REGISTERED, (self._number(),)).rowcount == 1

    def _give_up(self, reason: Exception | None = None) -> NoReturn:
        self._connection.close()  # so that the group is not tried again while the server may still commit it
        undecided = "the connection to the journal was lost, and the server has not decided about the commit"
        raise StorageError(undecided) from reason

    def _count(self, group: Sequence[QueuedChange]) -> None:
        before = self.counts
        self.counts = WriterCounts(before.writes + len(group), before.transactions + 1, before.synced + 1)

    def _transact(self, group: Sequence[QueuedChange]) -> list[StorageError | None]:
        connection = self._connection
        outcomes = [_checked(write) for write in group]
        number = None
        try:
            with connection.pipeline():
                _begin(connection)
                registered = connection.execute(_REGISTERED, (self._number(),))
                sent = [_sent(write.change, connection, outcomes, place) for place, write in enumerate(group)]
                numbered = connection.execute("SELECT pg_current_xact_id()::text")
            if registered.rowcount == 0:
                connection.execute("ROLLBACK")
                return [FencedError() for _ in group]
            for place, cursor in enumerate(sent):
                if cursor is not None and cursor.rowcount == 0:
                    outcomes[place] = group[place].change.refusal(connection)
            (number,) = numbered.fetchone() or (None,)
            connection.execute("COMMIT")
        except Exception as error:
            if _is_rolled_back(connection):
                raise
            # Only a transaction whose number is known can have been told to commit.
            if number is None or not self._has_committed(number):
                raise LostConnectionError(error) from error
        self._count(group)
        return outcomes

    def _has_committed(self, number: str) -> bool:
        """Return whether a transaction was committed whose COMMIT was not answered; connects anew.

        Raises:
            StorageError: the database cannot be reached, or has not decided yet.
        """
        self._reconnect()
        query = "SELECT pg_xact_status(%s::text::xid8)"
        (status,) = self._connection.execute(query, (number,)).fetchone() or (None,)
        if status not in {"committed", "aborted"}:
            self._give_up()
        return bool(status == "committed")


def _begin(connection: psycopg.Connection) -> None:
    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")  # as `schema.connect` has it for other transactions
    # A daemon that changes the schema waits for the end of this transaction, or the next statement sees what it has changed.
    schema.lock(connection)


def _is_rolled_back(connection: psycopg.Connection) -> bool:
    """Roll back after an error; False if the connection is lost, and perhaps COMMIT was done."""
    try:
        if not connection.closed:
            connection.execute("ROLLBACK")
            return True
    except psycopg.Error:
        connection.close()
    return False


def _backend(connection: psycopg.Connection) -> Backend:
    # Not the driver's number, which is that of a pooler if there is one.
    found: Backend | None = connection.execute(_BACKEND).fetchone()
    if found is None or found[1] is None:
        connection.close()
        raise StorageError("the database does not show the process that serves the journal: connect as its role")
    return found


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


def _refused(write: QueuedChange, reason: str) -> QueuedChange:
    return replace(write, refused=reason, size_bytes=0)


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
