"""The daemons that use one database, as each of them sees the others: none for a journal in a file."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

MemberState = Literal["running", "stopping", "expired"]


PLACE = "place:"
"""How the label begins that names the directories which a daemon has (`fleet.place`)."""


class FleetMember(Struct, frozen=True):
    """One of these daemons."""

    number: int
    """Is that of no other daemon, also after this one has ended."""
    home: str
    """Identifies its home; the same after a restart."""
    name: str
    """Its machine and its home, for people."""
    address: str = ""
    """URL of its WebSocket door for the others; empty: they cannot reach it."""


class MemberLoad(Struct, frozen=True):
    """A daemon, and the sessions that it has."""

    member: FleetMember
    state: MemberState
    """`expired`: its lease was not renewed in time; another daemon takes its sessions over."""
    is_this: bool
    sessions: int
    """Those that no other daemon can open."""
    running: int
    """Of these, those that run or wait for a decision."""
    labels: Sequence[str] = ()
    """`fleet.labels` of the daemon, and that of its place."""
    prompts: int = 0
    """Prompts of batches that it runs."""
    lease_s: float = 0.0
    """Time until its lease expires, in seconds; below 0: it has expired so long ago."""


class FleetMembers(Protocol):
    """The members. Methods raise StorageError if the database cannot be used."""

    @property
    def home(self) -> str:
        """`FleetMember.home` of this daemon; empty if no other one uses the journal."""
        ...

    def announce(self, address: str) -> None:
        """Tell the others where they reach this daemon. Returns at once; it is stored within a moment, and kept stored."""
        ...

    def offer(self, labels: Sequence[str]) -> None:
        """Tell the others which labels this daemon has, like `announce`."""
        ...

    async def loads(self) -> Sequence[MemberLoad]:
        """Return all daemons, this one included, oldest first. Counts all sessions."""
        ...

    async def lease_s(self) -> float | None:
        """Return for how many seconds no other daemon takes the sessions of this one: 0 if they may; None if there is none."""
        ...


class NoMembers:
    """`FleetMembers` of a file, which no other daemon uses."""

    home = ""
    """There is none to tell apart."""

    def announce(self, address: str) -> None:
        """No other daemon needs it."""

    def offer(self, labels: Sequence[str]) -> None:
        """No other daemon needs them."""

    async def loads(self) -> Sequence[MemberLoad]:
        """Return nothing."""
        return ()

    async def lease_s(self) -> None:
        """There is no lease."""


def heirs(loads: Sequence[MemberLoad]) -> Sequence[str]:
    """Return the names of the other daemons that could go on with sessions of this one."""
    return sorted(load.member.name for load in loads if load.state == "running" and not load.is_this)
