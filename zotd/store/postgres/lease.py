"""The lease of a daemon on its sessions: while it renews the lease, no other daemon takes them.

    registered with a number ──> renewed every 3 s ──> not renewed for 10 s: another daemon deletes the row, and takes the
                                       ^                          │ sessions whose runs were cut
                                       └── registered anew <──────┘ the daemon notices, and has no sessions

The server's clock decides when a lease has expired. A daemon counts from before it sends a renewal, by a clock that
cannot be set, and therefore never believes in its lease for longer than the server does.

A row of `daemons` is deleted before a session of that daemon goes to another one, so whoever may write has a row:
`docs/decisions/0126-a-lease-for-a-daemon-an-owner-for-a-session.md`.
"""

import asyncio
import logging
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import psycopg

from zotd.core.ports import StorageError
from zotd.store.connection import SqlConnection
from zotd.store.ownership import Handover, LeaseEvents
from zotd.store.postgres import schema
from zotd.store.postgres.handovers import Heirs, forward, hand_over
from zotd.store.postgres.identity import DaemonIdentity
from zotd.store.postgres.notifications import WAKE, WORK, arrived
from zotd.store.postgres.registration import EXPIRES, LEASE_S, RENEW_S, register
from zotd.store.postgres.takeover import take_over

LADDER_S = 4.0
"""Time before the end of a lease at which runs are aborted: their processes get signals for up to 3.3 s."""

CLOSE_S = 2.0
"""Longest wait for the end of the thread. If it comes later, it has nothing more to do."""

WAKE_BYTES = 4096
"""At least as many as are sent while the thread is busy."""

MAX_HEIRS = 1 << 16
"""More daemons than there ever are."""

RETRY_S = 0.5
"""Time until a renewal that has failed is tried again."""

_RENEW = f"UPDATE daemons SET expires = {EXPIRES}, address = %s, labels = %s WHERE number = %s AND home = %s"  # noqa: S608

_SUCCESSOR = "SELECT number FROM daemons WHERE home = %s"

_OWN = "SELECT id FROM sessions WHERE owner = %s AND state IN ('running', 'waiting')"

_GIVEN = "SELECT session, goes_on FROM handovers WHERE heir = %s"

_FREE_TIMERS = """
SELECT FROM timers WHERE owner IS NULL OR NOT EXISTS (SELECT FROM daemons WHERE number = owner) LIMIT 1
"""

_STOP = "UPDATE daemons SET stopping = true WHERE number = %s"

_clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

log = logging.getLogger(__name__)


class FencedError(StorageError):
    """This daemon has no sessions any more, and must not write."""

    def __init__(self, reason: str = "this daemon has lost its lease on the database") -> None:
        super().__init__(f"the journal was not written: {reason}")


class Lease:
    """Renews the lease in a thread with a connection of its own, which no commit delays."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection], identity: DaemonIdentity, number: int, sent: float
    ) -> None:
        """Start to renew the lease of a daemon that `register` has registered; on the event loop.

        `sent`: what `now` returned before the registration was sent.
        """
        self.number = number
        """Of this daemon, and of no other one; another one after the lease was lost."""
        self._connect = connect
        self._identity = identity
        self._connection: psycopg.Connection | None = None
        self._closing = threading.Event()
        self._wakeup, self._wakeup_write = socket.socketpair()
        self._wakeup_write.setblocking(False)
        self._trouble = ""
        self._address, self._labels = "", "[]"
        self._renew_s = RENEW_S
        self._gifts: list[str] = []
        self._seed = secrets.randbelow(MAX_HEIRS)  # all sessions go to the same heir, so that no family is split
        self._is_stopping = False
        self._tried = 0  # a number with which this daemon has perhaps registered
        self._ends = sent + LEASE_S
        self._losses = self._losses_told = 0  # counted by the thread, and on the event loop
        self._is_unsure = False  # whether something may have been taken over without its being told
        self._told: set[Handover] = set()  # handovers that are being received
        self._is_told = False  # another daemon has said that there is something for this one
        self._loop = asyncio.get_running_loop()
        self._events: LeaseEvents | None = None
        self._told_of_work: Callable[[], None] = lambda: None
        self._alarm: asyncio.TimerHandle | None = None
        self._set_alarm(sent + LEASE_S)
        # A daemon thread: a server that does not answer must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="journal-lease", daemon=True)
        self._thread.start()

    def follow(self, events: LeaseEvents) -> None:
        """Tell these of what becomes of the lease. Only from then on is anything taken over from other daemons."""
        self._events = events
        self.wake()

    def listen(self, told: Callable[[], None]) -> None:
        """Call this on the event loop when a daemon sends the notification `WORK`. It may be lost."""
        self._told_of_work = told

    @property
    def home(self) -> str:
        """Identifies the home of this daemon."""
        return self._identity.home

    def announce(self, address: str) -> None:
        """Store this address with the next renewal, which is now, and with all that follow."""
        self._address = address
        self.wake()

    def offer(self, labels: str) -> None:
        """Store these labels, a list in JSON, like the address."""
        self._labels = labels
        self.wake()

    async def close(self) -> None:
        """Renew it no more; it is valid until it expires, or `leave`. Idempotent."""
        self._closing.set()
        self.wake()
        if self._alarm is not None:
            self._alarm.cancel()
        await asyncio.to_thread(self._thread.join, CLOSE_S)

    def wake(self) -> None:
        """Renew it now, and look for what others have left."""
        with suppress(OSError):  # the thread has ended, or has been woken often
            self._wakeup_write.send(b"x")

    def prepare_to_end(self, gifts: Sequence[str], without: Sequence[str]) -> None:
        """Take nothing over from other daemons any more, and be no heir. `leave` gives the `gifts` to another daemon.

        `without`: what it does not give any more.
        """
        self._is_stopping = True
        self._gifts = [one for one in [*self._gifts, *gifts] if one not in without]
        self.wake()

    def receive(self, connection: SqlConnection, sessions: Sequence[str]) -> None:
        """Note that this daemon has dealt with these sessions, which it was given."""
        values = {"me": self.number, "sessions": list(sessions)}
        connection.execute("DELETE FROM handovers WHERE heir = :me AND session = ANY(:sessions)", values)

    def check(self) -> None:
        """Raise FencedError if others may have the sessions of this daemon, or soon may; on the event loop.

        Unlike `LeaseEvents.lost`, it does not depend on the order in which the event loop does what is due after the process
        was stopped for a while.
        """
        if self._losses != self._losses_told or now() > self._ends - LADDER_S:
            raise FencedError

    def give(self, connection: SqlConnection, sessions: Sequence[str]) -> int:
        """Give these sessions of this daemon to another one; return its number, 0 if there is none."""
        others = Heirs(connection, self.number, self._labels).best
        if not others:
            return 0
        heir: int = others[self._seed % len(others)]
        hand_over(connection, sessions, self.number, heir, goes_on=True)
        return heir

    def move(self, connection: SqlConnection, session: str, heir: int, *, goes_on: bool) -> bool:
        """Give this session of this daemon to that one; False if it could not take it."""
        is_there = heir in Heirs(connection, self.number, self._labels).all
        return is_there and hand_over(connection, [session], self.number, heir, goes_on=goes_on)

    def leave(self, connection: SqlConnection) -> None:
        """Let others have the sessions and timers at once."""
        if heir := self.give(connection, self._gifts):
            forward(connection, self.number, heir)
        connection.execute("DELETE FROM daemons WHERE number = ?", (self.number,))

    # --- on the event loop ---

    def tell_of_timers(self) -> None:
        """This daemon has other timers than before."""
        if self._events is not None:
            self._events.changed(())

    def _set_alarm(self, ends: float) -> None:
        if self._closing.is_set():
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_later(max(ends - LADDER_S - now(), 0.0), self._end)

    def _end(self) -> None:
        # It was not renewed for 6 s.
        self._was_lost("the database has not renewed the lease of this daemon")

    def _lost_again(self, reason: str) -> None:
        self._was_lost(reason)
        self._losses_told += 1

    def _was_lost(self, reason: str) -> None:
        if self._events is not None:
            self._events.lost(FencedError(reason))

    # --- in the thread ---

    def _run(self) -> None:
        with suppress(psycopg.Error, StorageError):  # the first renewal says what is wrong
            self._connected()  # to be told at once when another daemon hands something over
        wait_s = self._renew_s
        while True:
            try:
                if self._is_closing_after(wait_s) or not self._renew():
                    break
                wait_s, self._trouble = self._renew_s, ""
            except Exception as error:  # noqa: BLE001  (boundary: the next attempt begins with another connection)
                self._drop()
                wait_s, self._is_unsure = RETRY_S, True
                if not self._trouble:  # once, and not for each attempt
                    log.warning("the lease of this daemon was not renewed: %s", schema.one_line(error))
                self._trouble = str(error)
        self._drop()
        self._wakeup.close()
        self._wakeup_write.close()

    def _is_closing_after(self, wait_s: float) -> bool:
        """Wait until the time is over, another daemon has something for this one, or it is closed; whether it is."""
        connection = None if self._connection is None or self._connection.closed else self._connection
        poll, ends = select.poll(), now() + wait_s  # takes descriptors of any number
        poll.register(self._wakeup, select.POLLIN)
        if connection is not None:
            poll.register(connection, select.POLLIN)
        while ready := {descriptor for descriptor, _ in poll.poll(max(ends - now(), 0.0) * 1000)}:
            if self._wakeup.fileno() in ready:
                self._wakeup.recv(WAKE_BYTES)
                break
            # A renewal is a write that is synced, which other notifications are no reason for.
            if connection is None or WAKE in (channels := arrived(connection)) or not channels:
                self._is_told = True
                break
            self._tell_of_work()
        return self._closing.is_set()

    def _renew(self) -> bool:
        """Renew the lease, or register anew if it was lost; False if another daemon of this home has registered."""
        connection, sent, home = self._connected(), now(), self._identity.home
        if sent > self._ends:  # the clock of the event loop may have stood still, as the machine has
            self._lose("the lease of this daemon has expired")
        elif self._is_told and self._events is not None and not self._is_stopping:
            self._look_at_gifts(connection, self._events)  # people wait for them, and the renewal is synced
        self._is_told = False
        if connection.execute(_RENEW, (self._address, self._labels, self.number, home)).rowcount == 1:
            self._have_until(sent + LEASE_S)
        elif self._closing.is_set():
            return False
        else:
            self._lose("the lease of this daemon has expired, and its sessions are free for others")
            found = connection.execute(_SUCCESSOR, (home,)).fetchone()
            if found is not None and found[0] != self._tried:
                log.error("another daemon of this home uses the database; this one cannot write to it any more")
                return False
            sent = now()
            if found is None:
                with connection.transaction():
                    schema.lock(connection)
                    schema.check(connection)
                    self._tried = register(connection, self._identity, self._address)
            self.number = self._tried
            log.warning("the lease of this daemon had expired; it continues as daemon %d", self.number)
            self._have_until(sent + LEASE_S)
            self._is_unsure = True
        if self._is_stopping:
            connection.execute(_STOP, (self.number,))
        elif self._events is not None:
            with suppress(psycopg.errors.LockNotAvailable):  # at the next renewal
                self._look_at_others(connection, self._events)
        return True

    def _have_until(self, ends: float) -> None:
        self._ends = ends
        self._tell(partial(self._set_alarm, ends))

    def _lose(self, reason: str) -> None:
        self._losses += 1
        self._tell(partial(self._lost_again, reason))

    def _look_at_others(self, connection: psycopg.Connection, events: LeaseEvents) -> None:
        """Delete the rows of daemons whose leases have expired, and take over what they were working on or were given."""
        was_unsure, self._is_unsure = self._is_unsure, True
        ended, taken = take_over(connection, self.number, self._labels, events.states)
        for number, name in ended:
            log.warning("the lease of daemon %d (%s) has expired", number, name)
        if was_unsure:  # an answer was lost, or this daemon was away
            taken = [session for (session,) in connection.execute(_OWN, (self.number,)).fetchall()]
        has_timers = connection.execute(_FREE_TIMERS).fetchone() is not None
        if ended or was_unsure or has_timers:
            self._tell(partial(events.changed, taken))
            self._tell_of_work()  # what a daemon ran that has ended
        self._look_at_gifts(connection, events)
        self._is_unsure = False

    def _look_at_gifts(self, connection: psycopg.Connection, events: LeaseEvents) -> None:
        """Tell of the sessions that others have handed over."""
        given = {Handover(*found) for found in connection.execute(_GIVEN, (self.number,)).fetchall()}
        if new := given - self._told:
            self._tell(partial(events.given, sorted(new, key=lambda one: one.session)))
            self._tell_of_work()
        self._told = given

    def _tell(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(callback)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
            self._connection.add_notify_handler(self._notified)
            self._connection.execute(f"LISTEN {WAKE}; LISTEN {WORK}".encode())
            # A renewal that waits for longer comes too late.
            self._connection.execute(f"SET statement_timeout = '{LEASE_S:g}s'")
        return self._connection

    def _notified(self, notification: psycopg.Notify) -> None:
        """A notification came while a statement was under way."""
        if notification.channel == WORK:
            self._tell_of_work()
        else:
            self._is_told = True
            self.wake()

    def _tell_of_work(self) -> None:
        self._tell(self._told_of_work)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()


def now() -> float:
    """Return seconds of a clock that cannot be set, and that goes on while the machine sleeps if the system has one."""
    return time.clock_gettime(_clock)
