"""Sessions and timers in a database that several daemons use: each belongs to one of them, or to none."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from zotd.core.ports import StorageError
from zotd.store.claims import ClaimRules
from zotd.store.connection import Parameters, SqlConnection, Write
from zotd.store.members import FleetMember, FleetMembers
from zotd.store.ownership import NOBODY, LeaseEvents, OwnedElsewhereError, TimerElsewhereError
from zotd.store.postgres.claims import LeasedClaims
from zotd.store.postgres.database import PostgresDatabase
from zotd.store.postgres.members import HOLDER, LeasedMembers, holder

_FREE = "(owner IS NULL OR NOT EXISTS (SELECT FROM daemons WHERE number = owner))"

_TAKE = f"UPDATE sessions SET owner = ? WHERE id = ? AND {_FREE}"  # noqa: S608  (a condition of our own)

_STRAY_TIMER = "SELECT 1 FROM timers WHERE session = ? AND owner IS DISTINCT FROM ? LIMIT 1"

_TAKE_ITS_TIMERS = """
UPDATE timers SET owner = :me WHERE session = :session AND owner IS DISTINCT FROM :me
    AND EXISTS (SELECT FROM sessions WHERE id = :session AND owner = :me) RETURNING id
"""
"""The daemon that has the session is the only one that can send their prompts."""

_LOCK = "SELECT FROM sessions WHERE id = ? FOR UPDATE"

_OWNER = "SELECT owner FROM sessions WHERE id = ? FOR UPDATE"

_RELEASE = "UPDATE sessions SET owner = NULL WHERE id = ? AND owner = ?"

_ADOPT = f"""
WITH adopted AS (
    UPDATE sessions SET owner = :me WHERE state = :state AND (owner = :me OR {_FREE}) RETURNING id, updated
)
SELECT id FROM adopted ORDER BY updated DESC, id DESC
"""  # noqa: S608
"""With those that clients have opened meanwhile."""

_ADOPT_WITH_JOBS = f"""
WITH adopted AS (
    UPDATE sessions SET owner = :me WHERE jobs > 0 AND state <> 'staged' AND (owner = :me OR {_FREE}) RETURNING id
)
SELECT id FROM adopted ORDER BY id
"""  # noqa: S608

_ELSEWHERE = """
SELECT id, daemons.name FROM sessions JOIN daemons ON number = owner WHERE number <> ? AND id IN ({})
"""

_TAKE_TIMERS = f"""
UPDATE timers SET owner = :me WHERE {_FREE} AND NOT EXISTS (
    SELECT FROM sessions JOIN daemons ON number = sessions.owner WHERE id = timers.session AND number <> :me
)
"""  # noqa: S608

_OWN_TIMERS = "SELECT id FROM timers WHERE owner = ?"

_TIMER_HOLDER = "SELECT daemons.name FROM timers JOIN daemons ON number = owner WHERE id = ? AND number <> ?"

log = logging.getLogger(__name__)


class LeasedOwnership:
    """`zotd.store.ownership.Ownership` in the columns `owner`, by the lease of this daemon."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._lease = database.lease
        self._leaving = Counter[str]()
        """How many changes of a session's owner are under way, which this daemon has submitted."""
        self._leaves = 0
        """How many such changes there have been, of any session."""
        self.members: FleetMembers = LeasedMembers(database)
        self.claims: ClaimRules = LeasedClaims(database.lease)
        self.check_lease: Callable[[], None] | None = database.lease.check

    def follow(self, events: LeaseEvents) -> None:
        """Tell these of what becomes of the lease from now on."""
        self._lease.follow(events)

    async def take(self, session: str) -> None:
        """Make the session this daemon's, with its timers; raises OwnedElsewhereError."""
        # Most sessions that are refused belong to a daemon that lives: a look costs no transaction that has to be synced.
        leaves = None if self._leaving[session] else self._leaves
        row = await self._database.look(HOLDER, (session,))
        found = None if row is None else FleetMember(*row)
        number, holders, has_new_timers = self._lease.number, [found], [False]
        if found is not None and found.number != number:
            raise OwnedElsewhereError(session, found)
        # One that was handed over is this daemon's already. A person waits for it, and a transaction is synced. If the session
        # may have been given up meanwhile, what was looked up says nothing.
        if found is not None and leaves == self._leaves:
            has_all = await self._database.look(_STRAY_TIMER, (session, number)) is None
            if has_all and leaves == self._leaves:
                return

        def take(connection: SqlConnection) -> None:
            # First: the condition of the update sees the daemons that were registered before the row was locked.
            connection.execute(_LOCK, (session,)).fetchone()
            connection.execute(_TAKE, (number, session))
            holders.append(holder(connection, session))
            timers = connection.execute(_TAKE_ITS_TIMERS, {"me": number, "session": session}).fetchall()
            has_new_timers.append(bool(timers))

        await self._database.perform(take)
        if (found := holders[-1]) is not None and found.number != number:
            raise OwnedElsewhereError(session, found)
        if has_new_timers[-1]:
            self._lease.tell_of_timers()

    def release(self, session: str) -> None:
        """Let other daemons have the session after the commits that were submitted before."""

        def release(connection: SqlConnection) -> None:
            connection.execute(_RELEASE, (session, self._lease.number))

        self._submit_leave(session, release, partial(_tell_failure, session))

    def give(self, session: str) -> None:
        """Have another daemon go on with the session after the commits that were submitted before."""

        def give(connection: SqlConnection) -> None:
            self._lease.give(connection, [session])

        self._submit_leave(session, give, partial(_tell_failure, session))

    async def adopt(self, state: str) -> Sequence[str]:
        """Take all sessions in this state that no other daemon has."""
        return await self._adopt(_ADOPT, {"me": self._lease.number, "state": state})

    async def adopt_with_jobs(self) -> Sequence[str]:
        """Take all sessions with running jobs that no other daemon has."""
        return await self._adopt(_ADOPT_WITH_JOBS, {"me": self._lease.number})

    async def elsewhere(self, sessions: Sequence[str]) -> Mapping[str, str]:
        """Return which of these sessions other daemons have, with their names."""
        if not sessions:
            return {}
        query, values = _ELSEWHERE.format(", ".join("?" * len(sessions))), (self._lease.number, *sessions)
        return await self._database.read(lambda connection: dict(connection.execute(query, values).fetchall()))

    def prepare_to_end(self, gifts: Sequence[str] = (), *, without: Sequence[str] = ()) -> None:
        """Take nothing over from other daemons any more. When the journal is closed, another one goes on with the `gifts`."""
        self._lease.prepare_to_end(gifts, without)

    async def move(self, session: str, member: FleetMember, *, goes_on: bool) -> bool:
        """Have another daemon get the session and its timers; False if that one ends, or has ended.

        Cancelling the call does not cancel the move.
        """
        moved = [False]
        written: asyncio.Future[StorageError | None] = asyncio.get_running_loop().create_future()

        def move(connection: SqlConnection) -> None:
            moved.append(self._lease.move(connection, session, member.number, goes_on=goes_on))

        def tell(error: StorageError | None) -> None:
            if not written.done():  # else the caller was cancelled meanwhile
                written.set_result(error)

        self._submit_leave(session, move, tell)
        if (error := await written) is not None:
            raise error
        return moved[-1]

    async def receive(self, sessions: Sequence[str]) -> None:
        """Note that this daemon has dealt with these sessions, which it was given."""
        await self._database.perform(partial(self._lease.receive, sessions=sessions))

    def check_session(self, connection: SqlConnection, session: str) -> None:
        """Raise OwnedElsewhereError if the session does not belong to this daemon."""
        found = connection.execute(_OWNER, (session,)).fetchone()
        if found is not None and found[0] != self._lease.number:
            raise OwnedElsewhereError(session, holder(connection, session) or NOBODY)

    async def timers(self) -> Collection[str]:
        """Take the timers that no other daemon has, and whose sessions none has; return the ids of this daemon's."""
        number = self._lease.number
        await self._database.perform(lambda connection: connection.execute(_TAKE_TIMERS, {"me": number}))
        return await self._database.read(partial(_first_of_each, query=_OWN_TIMERS, values=(number,)))

    def check_timer(self, connection: SqlConnection, timer: str) -> None:
        """Raise TimerElsewhereError if the timer is another daemon's."""
        if (found := connection.execute(_TIMER_HOLDER, (timer, self._lease.number)).fetchone()) is not None:
            raise TimerElsewhereError(f"the timer {timer} belongs to the daemon {found[0]}")

    def own_timer(self, connection: SqlConnection, timer: str) -> None:
        """Make it this daemon's."""
        connection.execute("UPDATE timers SET owner = ? WHERE id = ?", (self._lease.number, timer))

    def _submit_leave(
        self, session: str, leave: Callable[[SqlConnection], None], tell: Callable[[StorageError | None], None]
    ) -> None:
        def done(error: StorageError | None) -> None:
            self._leaving[session] -= 1
            if not self._leaving[session]:
                del self._leaving[session]
            tell(error)

        self._leaving[session] += 1
        self._leaves += 1
        self._database.submit(Write(leave, done))

    async def _adopt(self, query: str, values: Mapping[str, object]) -> Sequence[str]:
        found: list[Sequence[str]] = []
        await self._database.perform(lambda connection: found.append(_first_of_each(connection, query, values)))
        return found[-1]


def _tell_failure(session: str, error: StorageError | None) -> None:
    if error is not None:  # it is free when the lease of this daemon ends
        log.warning("session %s was not given up: %s", session, error)


def _first_of_each(connection: SqlConnection, query: str, values: Parameters) -> Sequence[str]:
    return [first for (first, *_) in connection.execute(query, values).fetchall()]
