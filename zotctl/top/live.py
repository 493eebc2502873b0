"""The loop of `zotctl top`: looks, pictures, and a daemon that may come and go."""

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
from zotctl.top.screen import Screen
from zotd.client import place
from zotd.client.blocking import Connection
from zotd.client.errors import ClientError
from zotd.client.interrupts import InterruptedBySignal, Watch

LEAVING = ("q", "Q", "\x1b", "\x04", "")
"""Keys that end it; the last one is a terminal that is gone."""

LOST = "zotd is not running; waiting for it to start (q quits)"

WITHOUT_END = 1000
"""Columns of what is no terminal, or says that it has none: lines are cut only to have an end."""

LOOKS = 6
"""That a speed is taken from: five intervals, or a model that thinks between two sentences would seem to have stopped."""


def print_looks(delay_s: float, *, as_json: bool, once: bool) -> int:
    """Print the second of two looks, which knows a speed; `as_json`: a line for each look, without end unless `once`."""
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
    """Draw until somebody leaves; a daemon that is gone meanwhile is looked for again."""
    looks = deque[Sample](maxlen=LOOKS)
    with closing(_Daemon()) as daemon:
        looks.append(daemon.look())  # outside: without a daemon there is a sentence, and no screen
        screen = Screen()
        with Watch() as keys, screen.entered():
            _draw(screen, looks)
            while not _is_over(screen, keys, delay_s):
                daemon.look_again(looks)
                _draw(screen, looks)
    return 0


def _draw(screen: Screen, looks: Sequence[Sample]) -> None:
    columns, rows = screen.size
    screen.show(render.draw(looks, output.painted, width=columns, height=rows) if looks else [LOST])


def _is_over(screen: Screen, keys: Watch, delay_s: float) -> bool:
    """Wait until the next look is due; whether somebody leaves instead."""
    until = time.monotonic() + delay_s
    while (left := until - time.monotonic()) > 0:
        try:
            pressed = keys.wait_any([screen.descriptor], left)
        except InterruptedBySignal as signal_:
            if signal_.number != signal.SIGTSTP:  # it was away for a while, and is back
                raise
            return False
        if pressed and screen.key() in LEAVING:
            return True
    return False


class _Daemon:
    """The daemon that is looked at, found again when it was lost."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._observer: Observer | None = None

    def look(self) -> Sample:
        """Raises `ClientError` when there is none, and when this one is gone."""
        if self._connection is None or self._observer is None:
            self._connection = link.connect("zotctl", start=False)
            self._observer = Observer(self._connection, is_local=not place.of(os.environ).is_remote)
        try:
            return self._observer.look()
        except ClientError:
            self.close()
            raise

    def look_again(self, looks: deque[Sample]) -> None:
        """Put what is seen behind `looks`, which a daemon that is gone leaves empty."""
        try:
            looks.append(self.look())
        except ClientError:
            looks.clear()

    def close(self) -> None:
        """Leave it; harmless when it is gone."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._observer = None
