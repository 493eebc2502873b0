"""Signal handlers of the daemon.

| signal | first | second |
|---|---|---|
| SIGTERM, SIGINT | drain | stop within `HURRY_S` |
| SIGHUP | reload the configuration | reload again |
| SIGHUP, if stdin is a terminal (it was closed) | drain | stop within `HURRY_S` |
"""

import asyncio
import os
import signal
from collections.abc import Callable

HURRY_S = 1.5
"""Time from the second signal to a forced exit, in seconds; the documented limit is 2 s."""

_STDIN = 0


def listen(*, drain: Callable[[], None], stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """Install the handlers on the running event loop, until it is closed."""
    loop = asyncio.get_running_loop()
    has_ended = False

    def end() -> None:
        nonlocal has_ended
        if not has_ended:
            has_ended = True
            drain()
            return
        # SIGALRM has no handler, so the kernel ends the process even if the event loop hangs.
        signal.setitimer(signal.ITIMER_REAL, HURRY_S)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    loop.add_signal_handler(signal.SIGHUP, end if os.isatty(_STDIN) else reload)
