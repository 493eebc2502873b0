"""Keeps descriptors open across a restart, in the descriptor store of systemd.

    put ──> NOTIFY_SOCKET, with the descriptors ──> systemd ──> the next process of the unit, as LISTEN_FDS ──> inherited

systemd keeps copies by name until they are removed or the unit stops without a restart. A `put` is not acknowledged, so
the next process has to check what it inherits. Linux only.

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
"""Variable with the name of the unit, set if the unit has a store: `Environment=ZOTD_FDSTORE=%n`. systemd itself
announces the store only since version 254."""

FIRST_FD = 3
"""First descriptor that systemd passes (`SD_LISTEN_FDS_START`)."""

ASK_S = 1.0
"""Timeout of `systemctl`, which takes 10 ms: a hanging service manager must not delay the stop of the daemon."""


class DescriptorStore(Protocol):
    """Keeps descriptors for the next process."""

    def put(self, name: str, fds: Sequence[int]) -> bool:
        """Add copies under `name` (ASCII, no colon, at most 255 characters); return False if that failed."""
        ...

    def remove(self, name: str) -> None:
        """Remove all descriptors with this name."""
        ...


class SystemdStore:
    """The store of systemd, 236 or newer."""

    def __init__(self, address: str) -> None:
        """Use the notify socket at `address`, which is the value of `NOTIFY_SOCKET`."""
        self._address = address
        self._has_failed = False

    def put(self, name: str, fds: Sequence[int]) -> bool:
        """Add copies; see `DescriptorStore.put`. True means only that systemd was told: it sends no confirmation."""
        # Without FDPOLL=0 systemd would remove a pipe as soon as its other end is closed, without telling us.
        return self._tell(f"FDSTORE=1\nFDPOLL=0\nFDNAME={name}", fds)

    def remove(self, name: str) -> None:
        """Remove the descriptors with this name; see `DescriptorStore.remove`."""
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


def store_of(env: Mapping[str, str]) -> DescriptorStore | None:
    """Return the store that `env` announces, or None."""
    address = env.get("NOTIFY_SOCKET")
    return SystemdStore(address) if address and env.get(UNIT) else None


def inherited(env: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the descriptors that systemd passed to this process, by name: sockets and stored descriptors.

    Empty if `LISTEN_PID` names another process. Each caller owns the descriptors with its names. They are made
    non-inheritable.
    """
    # The variables may have been inherited from another service; then the numbers refer to other files.
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
        except OSError:  # not open: closed before, or LISTEN_FDS is wrong
            continue
        # `unknown` is what systemd calls a descriptor without a name.
        found.setdefault(names[position] if position < len(names) else "unknown", []).append(fd)
    return found


async def is_restarting(unit: str) -> bool:
    """Return whether systemd has a restart job for this user unit; False if `systemctl` fails."""
    command = ["systemctl", "--user", "list-jobs", "--plain", "--no-legend", "--no-pager"]
    with suppress(OSError, subprocess.SubprocessError):
        told = await asyncio.to_thread(
            subprocess.run, command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=ASK_S
        )
        jobs = [line.split() for line in told.stdout.decode(errors="replace").splitlines()]
        return any(job[1:3] == [unit, "restart"] for job in jobs)
    return False
