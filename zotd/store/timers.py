"""Timers in the journal's database, and in memory; one row each, with the session for which it is deleted."""

import logging
from collections.abc import Collection
from functools import partial
from typing import Protocol

import msgspec

from zotd.core.timers import Timer
from zotd.store.connection import SqlConnection
from zotd.store.ownership import Ownership
from zotd.store.ports import JournalDatabase
from zotd.wire.base import ENCODER

_PUT = """
INSERT INTO timers (id, session, row) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET session = excluded.session, row = excluded.row
"""

_DECODER = msgspec.json.Decoder(Timer)

log = logging.getLogger(__name__)


class TimerStore(Protocol):
    """Where timers are stored. All methods raise StorageError."""

    async def all(self) -> list[Timer]:
        """Return all timers of this daemon, in the order of their ids: oldest first."""
        ...

    async def put(self, timer: Timer) -> None:
        """Store a timer in place of the one with its id; returns when that survives a power failure."""
        ...

    async def remove(self, timer: str) -> None:
        """Remove the timer with this id, if there is one; returns as `put` does."""
        ...


class StoredTimers:
    """`TimerStore` in a database that the caller opens and closes."""

    def __init__(self, database: JournalDatabase, ownership: Ownership) -> None:
        self._database = database
        self._ownership = ownership

    async def all(self) -> list[Timer]:
        """Return all timers of this daemon, oldest first; those that belong to no other one are."""
        own = await self._ownership.timers()
        return [timer for timer in await self._database.read(_all) if own is None or timer.id in own]

    async def put(self, timer: Timer) -> None:
        """Store a timer in place of the one with its id."""
        await self._database.perform(partial(_put, ownership=self._ownership, timer=timer), durable=True)

    async def remove(self, timer: str) -> None:
        """Remove the timer with this id, if there is one."""
        await self._database.perform(partial(_remove, ownership=self._ownership, timer=timer), durable=True)


class TimersInMemory:
    """`TimerStore` that ends with the process."""

    def __init__(self) -> None:
        self._timers: dict[str, Timer] = {}

    async def all(self) -> list[Timer]:
        """Return all timers, oldest first."""
        return [self._timers[key] for key in sorted(self._timers)]

    async def put(self, timer: Timer) -> None:
        """Keep a timer in place of the one with its id."""
        self._timers[timer.id] = timer

    async def remove(self, timer: str) -> None:
        """Remove the timer with this id, if there is one."""
        self._timers.pop(timer, None)


async def sessions_with_timers(database: JournalDatabase) -> Collection[str]:
    """Return the sessions that timers prompt, also those of other daemons; raises StorageError."""
    query = "SELECT DISTINCT session FROM timers WHERE session <> ''"
    return await database.read(lambda connection: {session for (session,) in connection.execute(query).fetchall()})


def forget(connection: SqlConnection, session: str) -> None:
    """Remove the timers of a session that is deleted."""
    connection.execute("DELETE FROM timers WHERE session = ?", (session,))


def _all(connection: SqlConnection) -> list[Timer]:
    found: list[Timer] = []
    for key, row in connection.execute("SELECT id, row FROM timers ORDER BY id").fetchall():
        try:
            found.append(_DECODER.decode(row))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:  # it stays where it is, and the others fire
            log.warning("the timer %s cannot be read, and does not fire: %s", key, error)
    return found


def _put(connection: SqlConnection, ownership: Ownership, timer: Timer) -> None:
    ownership.check_timer(connection, timer.id)
    row = ENCODER.encode(timer).decode()
    connection.execute(_PUT, (timer.id, timer.session, row))
    ownership.own_timer(connection, timer.id)


def _remove(connection: SqlConnection, ownership: Ownership, timer: str) -> None:
    ownership.check_timer(connection, timer)
    connection.execute("DELETE FROM timers WHERE id = ?", (timer,))
