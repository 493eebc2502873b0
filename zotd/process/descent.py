"""Whether a process descends from this one, and for whom the first of its line was started.

    the process ──> its parent ──> … ──> a child of ours ──> us        `belongs` has told for whom that child runs

The kernel's parents are the only witness: variables can be dropped, groups and sessions be left. With orphans adopted
(`process.subreaper`), a process that loses its parent becomes our child, and nobody's; without (macOS), a stranger.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass

from zotd.process.census import KERNEL, Kernel

OUTSIDE = 0
"""What the kernel gives as the pid of a process outside of our pid namespace, where no descendant of ours can be."""

MAX_STEPS = 256
"""Generations that are looked at, 2 ms in all: a chain of shells may be as long as its author likes. Login, terminal,
shell and program are ten."""


@dataclass(frozen=True, slots=True)
class Descent:
    """A process descends from this one."""

    owners: Collection[str]
    """For whom the child of ours was started that it descends from. Empty: nobody can tell, for its line is broken."""


_UNKNOWN = Descent(())

_owners: dict[int, Collection[str]] = {}
"""By the pid of our child, which is nobody else's until we have reaped it."""


def belongs(pid: int, owners: Collection[str]) -> None:
    """Our child `pid` runs for these, until it is reaped.

    To be said before anything else can happen on the event loop. The collection is kept, and may change meanwhile.
    """
    _owners[pid] = owners


def forget(pid: int) -> None:
    """Our child was reaped: for whoever reaps. Harmless for one that belongs to nobody."""
    _owners.pop(pid, None)


def descent(pid: int, kernel: Kernel = KERNEL) -> Descent | None:
    """How the process that has this pid descends from us; None: not at all. Blocks for 8 us a generation.

    We are no descendant of our own, nor is a child that has stayed in our session: what `spawn` and `start_service`
    start leads another one, and no process can come back. A process that has ended counts as a descendant of unknown
    line. Without /proc nobody does.
    """
    me = os.getpid()
    us, here = kernel.status(me), kernel.status(pid)
    if pid in {OUTSIDE, me} or us is None:
        return None
    at = pid
    for _ in range(MAX_STEPS):
        if here is None:
            return _UNKNOWN
        # Parents are older than their children, so that most strangers are known by their shell, or by themselves.
        if here.started < us.started or here.session == us.session:
            return None
        if here.parent == me:
            return Descent(_owners.get(at, ()))
        above = kernel.status(here.parent)
        if above is None or above.started > here.started:
            # Has the parent ended in between, and maybe somebody else got its pid? Then there is another one now.
            again = kernel.status(at)
            if again is None or again.parent != here.parent:
                at, here = pid, kernel.status(pid)
                continue
            if above is None:
                return None  # it lives, and is hidden from us: somebody else's
        at, here = here.parent, above
    return _UNKNOWN
