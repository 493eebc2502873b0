"""Tells the service manager how this process is doing, over the datagram socket that `NOTIFY_SOCKET` names.

    READY=1 ──> (STATUS=…, WATCHDOG=1)* ──> (RELOADING=1 ──> READY=1)* ──> STOPPING=1, EXTEND_TIMEOUT_USEC=…

Where no service manager has started it, every word goes nowhere. Source: `sd_notify(3)`; systemd 252 is the oldest one
that this was tried with.
"""

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from typing import Self

from zotd.process.notify import notify

FEEDS = 3
"""How often the watchdog is fed within its time: two of them may be late or lost."""

VARIABLES = frozenset(
    {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "ZOTD_FDSTORE"}
)
"""What a service manager says to the process that it starts, and to no other."""

_US = 1_000_000

log = logging.getLogger(__name__)


def unsupervised(env: Mapping[str, str]) -> dict[str, str]:
    """The environment for programs that this process starts: a tool that says `READY=1` must not say it for us."""
    return {name: value for name, value in env.items() if name not in VARIABLES}


class Supervisor:
    """The service manager; used on the event loop."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """`address`: as in `NOTIFY_SOCKET`; None: there is none. `watchdog_s`: it wants to hear from us so often."""
        self._address = address
        self._watchdog_s = watchdog_s
        self._status = ""

    @classmethod
    def found(cls, env: Mapping[str, str]) -> Self:
        """The one of whom `env`, with which this process was started, tells."""
        every_us, pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
        is_watched = every_us.isdecimal() and int(every_us) > 0 and pid in {"", str(os.getpid())}
        return cls(env.get("NOTIFY_SOCKET") or None, int(every_us) / _US if is_watched else None)

    def ready(self) -> None:
        """This process serves; or does again, after `reloading`."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """What it does now, in one line for people; sent when it has changed."""
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def reloading(self) -> None:
        """It reads its configuration again; to be followed by `ready`, whatever came of it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, within_s: float) -> None:
        """It ends, and that may take so long."""
        self._send(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={int(within_s * _US)}")

    async def feed(self) -> None:
        """Keep telling that the event loop goes round; run it in a task. Ends at once when nobody wants to know."""
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
