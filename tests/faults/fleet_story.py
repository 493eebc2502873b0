"""What is done to a fleet of two daemons, and what was counted meanwhile."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

KILL, PAUSE, CUT, SPLIT, SERVER, PROMOTE, DRAIN = (
    "kill -9 of a daemon",
    "pause of a daemon",
    "partition",
    "partition between daemons",
    "kill -9 of the server",
    "promotion of a standby",
    "drain",
)
"""What happens to the daemon that works: it is killed; stopped until its lease is over; cut off from the database until its
lease is over; cut off from the other daemon for a while; its database is killed, and starts again; its
database is killed for good, and another server goes on with what it has; it hands over its sessions and ends."""

SOCKETS, NETWORKS, STANDBY = "sockets", "networks", "standby"
"""Where daemons are: each has a socket of its own for the database; each has a network; the database has a standby."""


@dataclass(frozen=True, slots=True)
class Story:
    """What is done to one database."""

    seed: str
    resume: str
    """How sessions go on, one of `homes.RESUME`."""
    blows: Sequence[str]
    ground: str
    """One of `SOCKETS`, `NETWORKS` and `STANDBY`."""


@dataclass
class Blows:
    """What was done, and how long it took the other daemon to take over."""

    count: Counter[str] = field(default_factory=Counter)
    in_run: int = 0
    """Of all, how many met a run."""
    moves: int = 0
    """Of sessions to the other daemon that were done before the next blow."""
    failovers_s: list[float] = field(default_factory=list)
    """After kills: until the sessions were the other daemon's."""
    handovers_s: list[float] = field(default_factory=list)
    """From the end of a step in a daemon that was drained to the next step in the other one, for each session."""

    def add(self, other: "Blows") -> None:
        """Sum up."""
        self.count.update(other.count)
        self.in_run += other.in_run
        self.moves += other.moves
        self.failovers_s += other.failovers_s
        self.handovers_s += other.handovers_s
