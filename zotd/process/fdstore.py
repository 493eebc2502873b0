"""Descriptors that outlive this process: the store of the service manager that started it.

    put ──> NOTIFY_SOCKET, with the descriptors ──> systemd ──> the next process of the unit, as LISTEN_FDS ──> inherited

systemd keeps copies under a name until they are removed, or the unit stops for good. Nobody confirms a `put`: whoever
comes back has to judge what it finds. Linux only.

Source: sd_notify(3), sd_listen_fds(3).
"""

import asyncio
import logging
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from zotd.process.notify import notify

log = logging.getLogger(__name__)

UNIT = "ZOTD_FDSTORE"
"""The variable by which a unit says that it has a store, and its own name: `Environment=ZOTD_FDSTORE=%n`. systemd tells
about the store by itself only since version 254."""

FIRST_FD = 3
"""Where `LISTEN_FDS` begins."""

ASK_S = 1.0
"""Longest wait for `systemctl`, which takes 10 ms; a stop must not wait for a manager that hangs."""


class Store(Protocol):
    """Keeps descriptors for the next process."""

    def put(self, name: str, fds: Sequence[int]) -> bool:
        """Keep copies under this name (ASCII, no colon, at most 255), besides those that it has; False: it does not."""
        ...

    def remove(self, name: str) -> None:
        """Let go of everything with this name."""
        ...


class SystemdStore:
    """The store of systemd, 236 or newer."""

    def __init__(self, address: str) -> None:
        """`address`: what `NOTIFY_SOCKET` says."""
        self._address = address
        self._has_failed = False

    def put(self, name: str, fds: Sequence[int]) -> bool:
        """See `Store`."""
        # Without FDPOLL=0 it would let go of a pipe as soon as the other end is closed, behind our back.
        return self._tell(f"FDSTORE=1\nFDPOLL=0\nFDNAME={name}", fds)

    def remove(self, name: str) -> None:
        """See `Store`."""
        self._tell(f"FDSTOREREMOVE=1\nFDNAME={name}")

    def _tell(self, message: str, fds: Sequence[int] = ()) -> bool:
        try:
            notify(self._address, message, fds)
        except OSError as error:
            if not self._has_failed:
                log.warning(
                    "extensions will not outlive this daemon, because the service manager cannot be notified: %s", error
                )
            self._has_failed = True
            return False
        return True


def store_of(env: Mapping[str, str]) -> Store | None:
    """The store that this environment tells of."""
    address = env.get("NOTIFY_SOCKET")
    return SystemdStore(address) if address and env.get(UNIT) else None


def inherited(env: Mapping[str, str]) -> dict[str, list[int]]:
    """The descriptors that the service manager has given to this process, by name: sockets, and what was stored.

    Empty when they are meant for another process. They are the callers', each one's own by its name; no child of ours
    gets them.
    """
    if env.get("LISTEN_PID") != str(os.getpid()):
        return {}
    try:
        count = int(env.get("LISTEN_FDS", ""))
    except ValueError:
        return {}
    names = env.get("LISTEN_FDNAMES", "").split(":")
    found: dict[str, list[int]] = {}
    for position, fd in enumerate(range(FIRST_FD, FIRST_FD + count)):
        try:
            os.set_inheritable(fd, False)
        except OSError:  # nothing is open there: somebody has closed it, or the count is wrong
            continue
        found.setdefault(names[position] if position < len(names) else "unknown", []).append(fd)
    return found


async def is_restarting(unit: str) -> bool:
    """Whether the manager stops this unit of the user to start it again; False when that cannot be found out."""
    command = ["systemctl", "--user", "list-jobs", "--plain", "--no-legend", "--no-pager"]
    with suppress(OSError, subprocess.SubprocessError):
        told = await asyncio.to_thread(
            subprocess.run, command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=ASK_S
        )
        jobs = [line.split() for line in told.stdout.decode(errors="replace").splitlines()]
        return any(job[1:3] == [unit, "restart"] for job in jobs)
    return False
