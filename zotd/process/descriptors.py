"""Raises the limit of open descriptors to the hard limit, and keeps a reserve for clients that are connected.

The soft limit is low by default (1,024 on Linux, 256 on macOS) for programs that call `select(2)`. The daemon does not;
its children may, so they get the original limit back (Linux only).
"""

import logging
import resource
import sys

MOST = 65_536
"""Limit where the system has no hard one; more than a daemon with all its connections and extensions uses."""

RESERVE = 64
"""Descriptors that must stay free when a connection is accepted: existing sessions need them for files, model servers,
commands and extensions."""

log = logging.getLogger(__name__)

inherited: tuple[int, int] | None = None
"""The limit before `raise_limit`; None if it has not changed, so that children have nothing to get back."""


def raise_limit() -> None:
    """Raise the soft limit of this process to the hard limit. Call it once, before starting any child."""
    global inherited  # noqa: PLW0603  (a property of the process)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # macOS has another limit below the hard one
        log.warning("the limit of open files stays at %d: %s", soft, error)
        return
    inherited = soft, hard


def give_back(pid: int) -> None:
    """Restore the original limit for a child that was just started; does nothing if it has ended."""
    if inherited is None or sys.platform != "linux":
        return
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, inherited)
    except (OSError, ValueError):  # it has ended, or belongs to another user by now
        return


def is_short(descriptor: int) -> bool:
    """Return whether fewer than `RESERVE` descriptors are free, given the one opened last.

    The kernel always assigns the lowest free number, so a high number means that few are left. With a limit below
    4 * `RESERVE` there is no reserve: new connections wait until a descriptor is free (`api.door`).
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and soft >= 4 * RESERVE and descriptor >= soft - RESERVE
