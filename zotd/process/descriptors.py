"""How many descriptors the daemon may have: as many as the hard limit allows, with some kept for those who are inside.

The soft limit is 1,024 by default on Linux and 256 on macOS, for programs that call `select(2)`. Nothing here does; what we
start may, so it gets the limit back that we were started with (Linux only).
"""

import logging
import resource
import sys

MOST = 65_536
"""Some systems have no hard limit; a daemon with all its connections and extensions has far less than this."""

RESERVE = 64
"""Descriptors that a new connection must leave: for files, model servers, commands and extensions of those who are inside."""

log = logging.getLogger(__name__)

_inherited: tuple[int, int] | None = None


def raise_limit() -> None:
    """Raise the soft limit of this process to the hard one. Call it once, before anything is started."""
    global _inherited  # noqa: PLW0603  (a property of the process)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # macOS has another limit below the hard one
        log.warning("the limit of open files stays at %d: %s", soft, error)
        return
    _inherited = soft, hard


def give_back(pid: int) -> None:
    """Give a process that was just started the limit that we were started with; harmless when it has ended."""
    if _inherited is None or sys.platform != "linux":
        return
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, _inherited)
    except (OSError, ValueError):  # it has ended, or belongs to another user by now
        return


def is_short(descriptor: int) -> bool:
    """Whether less than `RESERVE` are left, as the number of the newest one shows: the lowest free one is always taken.

    A process with a very low limit has no reserve: those who come wait until a descriptor is free (`api.door`).
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and soft >= 4 * RESERVE and descriptor >= soft - RESERVE
