"""What signals mean to the daemon.

| signal | the first one | the next one |
|---|---|---|
| SIGTERM, SIGINT | drain | stop now, within `HURRY_S` |
| SIGHUP | read the configuration again | the same |
| SIGHUP, started from a terminal | that was closed: drain | stop now |
"""

import asyncio
import os
import signal
from collections.abc import Callable

HURRY_S = 1.5
"""From the second signal on: whoever sends it was promised an end within 2 s."""

_STDIN = 0


def listen(*, drain: Callable[[], None], stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """Have these called on the event loop, until it is closed."""
    loop = asyncio.get_running_loop()
    has_ended = False

    def end() -> None:
        nonlocal has_ended
        if not has_ended:
            has_ended = True
            drain()
            return
        # Nobody handles SIGALRM: the kernel ends the process, also when this loop does not come round any more.
        signal.setitimer(signal.ITIMER_REAL, HURRY_S)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    loop.add_signal_handler(signal.SIGHUP, end if os.isatty(_STDIN) else reload)
