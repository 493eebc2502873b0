"""What sessions know of the machine and of the program that runs them, which no configuration changes."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from zotd.contributions.guards import CallGuard
from zotd.core.ports import Probe, Tool
from zotd.core.run_watch import RunWatch, unwatched
from zotd.ledger.ledger import Ledger
from zotd.process.orphan_reaper import OrphanReaper
from zotd.proxy.on_demand import ProxyOnDemand

Watch = Callable[[Ledger, Callable[[], Mapping[str, str]]], RunWatch]
"""Follows the runs of a session from now on; the function returns the environment of its client."""


class Machine(Struct, frozen=True):
    """What a planner knows of the machine."""

    home: Path
    """`$ZOT_HOME`."""
    user: Path
    """The user's home directory."""
    proxy: ProxyOnDemand
    """Connects commands in jails to hosts."""
    notify: Callable[[str], None] = lambda _: None
    """Sends this sentence to a user who is not looking; returns at once."""
    probe: Probe | None = None
    """Called at the points of each run, `runs.context.POINTS`."""
    watch: Watch = unwatched
    clock: Callable[[], float] = time.time
    """The time that sessions go by, in seconds since the epoch."""
    tools: Sequence[Tool] = ()
    """Tools of the program that embeds sessions; each session has them beside its own."""
    reaper: OrphanReaper | None = None
    """Ends what jobs leave behind; None: there can be no jobs."""
    guard: CallGuard | None = None
    """A guard of that program; asked about the calls of each session."""
    places: Mapping[str, str] = field(default_factory=dict)
    """`ZOT_HOME`, `ZOTD_SOCKET` and `ZOTD_OUTLETS` of this process, which jails have to hide whatever a client's environment
    says."""
