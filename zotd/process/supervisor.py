"""Reports the state of this process to the service manager, over the datagram socket in `NOTIFY_SOCKET`.

    READY=1 ──> (STATUS=…, WATCHDOG=1)* ──> (RELOADING=1 ──> READY=1)* ──> STOPPING=1, EXTEND_TIMEOUT_USEC=…

Without a service manager every report is dropped. Source: `sd_notify(3)`. Tested with systemd 252 and newer.
"""

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from typing import Self

from zotd.process.notify import notify

FEEDS = 3
"""Watchdog messages in each watchdog interval; two of them may be late or lost."""

VARIABLES = frozenset(
    {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "ZOTD_FDSTORE"}
)
"""Variables that a service manager sets for the process that it starts and that children must not inherit."""

_US = 1_000_000

log = logging.getLogger(__name__)


def unsupervised(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` without `VARIABLES`, for children: a tool that sends `READY=1` must not send it for the daemon."""
    return {name: value for name, value in env.items() if name not in VARIABLES}


class Supervisor:
    """Connection to the service manager; used on the event loop."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """Use the socket at `address` (as in `NOTIFY_SOCKET`), if any. `watchdog_s` is the watchdog interval."""
        self._address = address
        self._watchdog_s = watchdog_s
        self._status = ""

    @classmethod
    def found(cls, env: Mapping[str, str]) -> Self:
        """Return the service manager that the environment of this process announces."""
        every_us, pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
        is_watched = every_us.isdecimal() and int(every_us) > 0 and pid in {"", str(os.getpid())}
        return cls(env.get("NOTIFY_SOCKET") or None, int(every_us) / _US if is_watched else None)

    def ready(self) -> None:
        """Report that the daemon accepts clients, after its start or after `reloading`."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """Report a status line for people; sent only if it has changed."""
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def reloading(self) -> None:
        """Report a reload of the configuration; call `ready` afterwards, even if it failed."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, within_s: float) -> None:
        """Report that the daemon stops, which may take `within_s` seconds."""
        self._send(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={int(within_s * _US)}")

    async def feed(self) -> None:
        """Feed the watchdog from the event loop until cancelled; return at once if there is no watchdog."""
        while self._address is not None and self._watchdog_s is not None:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self._watchdog_s / FEEDS)

    def _send(self, words: str) -> None:
        if self._address is None:
            return
        try:
            notify(self._address, words)
        except OSError as error:
            log.warning(
                "the service manager at %s could not be notified of %s: %s",
                self._address,
                words.partition("\n")[0],
                error,
            )
