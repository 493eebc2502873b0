"""The main loop of `zotctl top` and `zotctl fleet top`: takes samples, draws them, and reconnects if the daemon restarts."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from zotctl import link, output
from zotctl.top.render import Paint
from zotctl.top.screen import FullScreen
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError
from zotd.client.interrupts import InterruptedBySignal, Watch

LEAVING = ("q", "Q", "\x1b", "\x04", "")
"""Keys that quit; the empty one stands for a closed terminal."""

LOST = "zotd is not running; waiting for it to start (q quits)"

WITHOUT_END = 1000
"""Line width without a terminal, in columns."""

LOOKS = 6
"""Samples that rates are computed from. Over fewer, a model that pauses to think would show a rate of 0."""


T = TypeVar("T")

T_contra = TypeVar("T_contra", contravariant=True)


class Draw(Protocol[T_contra]):
    """Draws the newest of some samples."""

    def __call__(self, looks: Sequence[T_contra], paint: Paint, *, width: int, height: int | None) -> list[str]:
        """Return at most `height` lines (None: no limit) of at most `width` columns."""
        ...


@dataclass(frozen=True, slots=True)
class View(Generic[T]):
    """What is shown."""

    observe: Callable[[Connection], Callable[[], T]]
    """Returns what takes a sample by a connection, and raises `ClientError` if the daemon does not answer."""
    draw: Draw[T]
    as_json: Callable[[Sequence[T]], Json]


def print_looks(view: View[T], delay_s: float, *, as_json: bool, once: bool) -> int:
    """Print the second of two samples, because rates need both; `as_json`: a line per sample, forever unless `once`."""
    with closing(_Daemon(view)) as daemon:
        looks = deque([daemon.look()], LOOKS)
        while True:
            time.sleep(delay_s)
            looks.append(daemon.look())
            if as_json:
                output.print_json(view.as_json(looks))
                sys.stdout.flush()
            if once or not as_json:
                break
    if not as_json:
        width = (os.get_terminal_size().columns if sys.stdout.isatty() else 0) or WITHOUT_END
        print("\n".join(view.draw(looks, output.painted, width=width, height=None)))
    return 0


def watch(view: View[T], delay_s: float) -> int:
    """Redraw until the user quits; reconnects if the daemon is restarted."""
    looks = deque[T](maxlen=LOOKS)
    with closing(_Daemon(view)) as daemon:
        looks.append(daemon.look())  # before the screen is taken, so that an error is printed normally
        screen = FullScreen()
        with Watch() as keys, screen.entered():
            _draw(view, screen, looks)
            while not _is_over(screen, keys, delay_s):
                daemon.look_again(looks)
                _draw(view, screen, looks)
    return 0


def _draw(view: View[T], screen: FullScreen, looks: Sequence[T]) -> None:
    columns, rows = screen.size
    screen.show(view.draw(looks, output.painted, width=columns, height=rows) if looks else [LOST])


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


class _Daemon(Generic[T]):
    """The sampled daemon; reconnects after a lost connection."""

    def __init__(self, view: View[T]) -> None:
        self._view = view
        self._connection: Connection | None = None
        self._look: Callable[[], T] | None = None

    def look(self) -> T:
        """Take a sample, connecting first if needed; raises `ClientError` if no daemon answers."""
        if self._connection is None or self._look is None:
            self._connection = link.connect("zotctl", start=False)
            self._look = self._view.observe(self._connection)
        try:
            return self._look()
        except ClientError:
            self.close()
            raise

    def look_again(self, looks: deque[T]) -> None:
        """Append a sample; clears `looks` if the daemon does not answer."""
        try:
            looks.append(self.look())
        except ClientError:
            looks.clear()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._look = None
