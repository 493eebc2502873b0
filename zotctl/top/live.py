"""The main loop of `zotctl top`: takes samples, draws them, and reconnects if the daemon restarts."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing

from zotctl import link, output
from zotctl.top import render
from zotctl.top.sample import Observer, Sample
from zotctl.top.screen import FullScreen
from zotd.client import place
from zotd.client.blocking import Connection
from zotd.client.errors import ClientError
from zotd.client.interrupts import InterruptedBySignal, Watch

LEAVING = ("q", "Q", "\x1b", "\x04", "")
"""Keys that quit; the empty one stands for a closed terminal."""

LOST = "zotd is not running; waiting for it to start (q quits)"

WITHOUT_END = 1000
"""Line width without a terminal, in columns."""

LOOKS = 6
"""Samples that rates are computed from. Over fewer, a model that pauses to think would show a rate of 0."""


def print_looks(delay_s: float, *, as_json: bool, once: bool) -> int:
    """Print the second of two samples, because rates need both; `as_json`: a line per sample, forever unless `once`."""
    with closing(_Daemon()) as daemon:
        looks = deque([daemon.look()], LOOKS)
        while True:
            time.sleep(delay_s)
            looks.append(daemon.look())
            if as_json:
                output.print_json(render.as_json(looks))
                sys.stdout.flush()
            if once or not as_json:
                break
    if not as_json:
        width = (os.get_terminal_size().columns if sys.stdout.isatty() else 0) or WITHOUT_END
        print("\n".join(render.draw(looks, output.painted, width=width, height=None)))
    return 0


def watch(delay_s: float) -> int:
    """Redraw until the user quits; reconnects if the daemon is restarted."""
    looks = deque[Sample](maxlen=LOOKS)
    with closing(_Daemon()) as daemon:
        looks.append(daemon.look())  # before the screen is taken, so that an error is printed normally
        screen = FullScreen()
        with Watch() as keys, screen.entered():
            _draw(screen, looks)
            while not _is_over(screen, keys, delay_s):
                daemon.look_again(looks)
                _draw(screen, looks)
    return 0


def _draw(screen: FullScreen, looks: Sequence[Sample]) -> None:
    columns, rows = screen.size
    screen.show(render.draw(looks, output.painted, width=columns, height=rows) if looks else [LOST])


def _is_over(screen: FullScreen, keys: Watch, delay_s: float) -> bool:
    """Wait until the next sample is due; return True if the user quits."""
    until = time.monotonic() + delay_s
    while (left := until - time.monotonic()) > 0:
        try:
            pressed = keys.wait_any([screen.descriptor], left)
        except InterruptedBySignal as signal_:
            if signal_.number != signal.SIGTSTP:  # resumed after Ctrl-Z
                raise
            return False
        if pressed and screen.key() in LEAVING:
            return True
    return False


class _Daemon:
    """The sampled daemon; reconnects after a lost connection."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._observer: Observer | None = None

    def look(self) -> Sample:
        """Take a sample, connecting first if needed; raises `ClientError` if no daemon answers."""
        if self._connection is None or self._observer is None:
            self._connection = link.connect("zotctl", start=False)
            self._observer = Observer(self._connection, is_local=not place.of(os.environ).is_remote)
        try:
            return self._observer.look()
        except ClientError:
            self.close()
            raise

    def look_again(self, looks: deque[Sample]) -> None:
        """Append a sample; clears `looks` if the daemon does not answer."""
        try:
            looks.append(self.look())
        except ClientError:
            looks.clear()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._observer = None
