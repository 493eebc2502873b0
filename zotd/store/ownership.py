"""Which sessions and timers of a journal this daemon may write: all of them in a file, some in a database that others use, too."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct

from zotd.core.ports import StorageError
from zotd.store.claims import ClaimRules, SoleClaims
from zotd.store.connection import SqlConnection
from zotd.store.members import FleetMember, FleetMembers, NoMembers
from zotd.store.ports import JournalDatabase

_CUT = "SELECT id FROM sessions WHERE state = ? ORDER BY updated DESC, id DESC"

_WITH_JOBS = "SELECT id FROM sessions WHERE jobs > 0 AND state <> 'staged' ORDER BY id"


NOBODY = FleetMember(0, "", "that ended last")


class OwnedElsewhereError(StorageError):
    """Another daemon has the session."""

    def __init__(self, session: str, member: FleetMember) -> None:
        super().__init__(
            f"session {session} is open in the daemon {member.name}; use that one, or close the session there"
        )
        self.session = session
        self.member = member


class TimerElsewhereError(StorageError):
    """Another daemon has the timer."""


class Handover(Struct, frozen=True):
    """A session that another daemon has given to this one."""

    session: str
    goes_on: bool
    """Its run was stopped for that, or inputs wait behind it. False: this daemon only has it from now on."""


class LeaseEvents(Struct, frozen=True):
    """What the owner of sessions is told, on the event loop."""

    lost: Callable[[StorageError], None]
    """No session may be written: abort what runs. May be called several times."""
    changed: Callable[[Sequence[str]], None]
    """These sessions of a daemon that has ended belong to this one now, which may have other timers, too."""
    given: Callable[[Sequence[Handover]], None]
    """Other daemons have handed these over."""
    states: Sequence[str] = ()
    """States of the sessions that this daemon takes over when another one has ended."""


class Ownership(Protocol):
    """Sessions and timers of this daemon. Methods raise StorageError if the database cannot be used."""

    members: FleetMembers
    """The daemons of the database."""
    claims: ClaimRules
    """Who works on what waits for any of them."""
    check_lease: Callable[[], None] | None
    """See `core.ports.Journal.check_lease`."""

    def follow(self, events: LeaseEvents) -> None:
        """Tell these of what happens from now on."""
        ...

    async def take(self, session: str) -> None:
        """Make the session, with its timers, one that this daemon may write; raises OwnedElsewhereError."""
        ...

    def release(self, session: str) -> None:
        """Let other daemons have the session, after everything that was submitted before. Returns at once."""
        ...

    async def adopt(self, state: str) -> Sequence[str]:
        """Take all sessions in this state that belong to no other daemon; return their ids, newest first."""
        ...

    async def adopt_with_jobs(self) -> Sequence[str]:
        """Take all sessions that have running jobs, by what is stored, and belong to no other daemon; return their ids."""
        ...

    async def elsewhere(self, sessions: Sequence[str]) -> Mapping[str, str]:
        """Return which of these sessions other daemons have, with the names of the daemons."""
        ...

    def prepare_to_end(self, gifts: Sequence[str] = (), *, without: Sequence[str] = ()) -> None:
        """Take nothing over from other daemons any more. When the journal is closed, another one goes on with the `gifts`.

        `without`: those of an earlier call with which none is to go on.
        """
        ...

    def give(self, session: str) -> None:
        """Have another daemon go on with this session, after everything that was submitted before. Returns at once."""
        ...

    async def move(self, session: str, member: FleetMember, *, goes_on: bool) -> bool:
        """Have another daemon get this session, with its timers, after everything that was submitted before.

        Returns False, and changes nothing, if that daemon ends or has ended. `goes_on`: see `Handover`.
        """
        ...

    async def receive(self, sessions: Sequence[str]) -> None:
        """Note that this daemon has dealt with these sessions, which it was given."""
        ...

    def check_session(self, connection: SqlConnection, session: str) -> None:
        """Raise OwnedElsewhereError if the session does not belong to this daemon; inside the caller's transaction."""
        ...

    async def timers(self) -> Collection[str] | None:
        """Take the timers that belong to no other daemon; return the ids of all of this daemon. None: all."""
        ...

    def check_timer(self, connection: SqlConnection, timer: str) -> None:
        """Raise TimerElsewhereError if the timer belongs to another daemon; inside the caller's transaction."""
        ...

    def own_timer(self, connection: SqlConnection, timer: str) -> None:
        """Make a timer that has just been stored one of this daemon."""
        ...


class SoleOwnership:
    """`Ownership` of a file, which no other daemon uses."""

    def __init__(self, database: JournalDatabase) -> None:
        self._database = database
        self.members: FleetMembers = NoMembers()
        self.claims: ClaimRules = SoleClaims()
        self.check_lease: Callable[[], None] | None = None

    def follow(self, events: LeaseEvents) -> None:
        """Nothing happens."""

    async def take(self, session: str) -> None:
        """It is this daemon's."""

    def release(self, session: str) -> None:
        """No other daemon waits for it."""

    async def adopt(self, state: str) -> Sequence[str]:
        """Return the sessions in this state."""
        return await self._database.read(partial(_ids, query=_CUT, values=(state,)))

    async def adopt_with_jobs(self) -> Sequence[str]:
        """Return the sessions with running jobs."""
        return await self._database.read(partial(_ids, query=_WITH_JOBS, values=()))

    async def elsewhere(self, sessions: Sequence[str]) -> Mapping[str, str]:  # noqa: ARG002  (none is)
        """Return nothing."""
        return {}

    def prepare_to_end(self, gifts: Sequence[str] = (), *, without: Sequence[str] = ()) -> None:
        """There is no other daemon."""

    def give(self, session: str) -> None:
        """There is no other daemon."""

    async def move(self, session: str, member: FleetMember, *, goes_on: bool) -> bool:  # noqa: ARG002  (there is none)
        """Return False: there is no other daemon."""
        return False

    async def receive(self, sessions: Sequence[str]) -> None:
        """Nothing is given."""

    def check_session(self, connection: SqlConnection, session: str) -> None:
        """It is this daemon's."""

    async def timers(self) -> None:
        """All are this daemon's."""

    def check_timer(self, connection: SqlConnection, timer: str) -> None:
        """It is this daemon's."""

    def own_timer(self, connection: SqlConnection, timer: str) -> None:
        """It is already."""


def _ids(connection: SqlConnection, query: str, values: Sequence[str]) -> Sequence[str]:
    return [key for (key,) in connection.execute(query, values).fetchall()]
