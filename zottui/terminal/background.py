"""Detects whether the terminal's background is light or dark.

The query is OSC 11 for the background colour, followed by DA1, which every terminal answers in order. A DA1 answer without
a colour before it means that there will be none. Send the query at the very start and read the answer after the imports,
by which time it has arrived.
"""

import os
import re
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass

from zottui.terminal.early import KEYBOARD
from zottui.terminal.environment import understands_osc

ANSWER_S = 0.15
"""Seconds after the query to wait for the answer: terminals take 5 ms, over ssh 100 ms; 150 ms are not noticed."""

LATE_S = 1.0
"""Seconds after the query before the program may exit without the answer, which the shell would read as input."""

QUESTION = b"\x1b]11;?\x1b\\\x1b[c"

COLOUR = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)[^\x07\x1b]*(?:\x07|\x1b\\)")
DEVICE = re.compile(rb"\x1b\[\?[\d;]*c")


@dataclass(frozen=True, slots=True)
class Answer:
    """The terminal's answer, and the input that was read with it."""

    is_dark: bool | None
    """None if the terminal has not answered; `zottui.theme.choose` then uses `COLORFGBG`."""
    typed: bytes
    """Other input that was read: keys, for `zottui.terminal.keyboard.Keyboard`. It may end in a partial answer."""


class Question:
    """One query to the terminal. The keyboard must be in cbreak mode (`zottui.terminal.early`)."""

    def __init__(self, env: Mapping[str, str], *, keyboard: int = KEYBOARD, screen: int = 1) -> None:
        """`keyboard` and `screen` are file descriptors. Nothing is sent to them unless they are a terminal with OSC."""
        self._env = env
        self._keyboard = keyboard
        self._screen = screen
        self._asked_at: float | None = None

    def ask(self) -> None:
        """Send the query."""
        if understands_osc(self._env) and os.isatty(self._keyboard) and os.isatty(self._screen):
            os.write(self._screen, QUESTION)  # unbuffered: `sys.stdout` would delay it
            self._asked_at = time.monotonic()

    def answer(self) -> Answer:
        """Return what the terminal has answered within `ANSWER_S` after the query."""
        read = b"" if self._asked_at is None else self._read_until(self._asked_at + ANSWER_S)
        colour = COLOUR.search(read)
        is_dark = None if colour is None else _is_dark(*colour.groups())
        return Answer(is_dark, DEVICE.sub(b"", COLOUR.sub(b"", read)))

    def expect(self, is_due: bool) -> None:
        """Note that `zottui.pacing` has sent another DA1 query, or has got its answer."""
        self._asked_at = time.monotonic() if is_due else None

    def drain(self) -> None:
        """At exit, read and discard a pending answer, waiting until `LATE_S` after the query."""
        if self._asked_at is not None:
            self._read_until(self._asked_at + LATE_S)

    def _read_until(self, deadline: float) -> bytes:
        """Return the input up to the DA1 answer, the deadline or the end of file."""
        read = b""
        # With a deadline that has passed, as on a slow machine, select returns at once, and input that is there is read.
        while select.select([self._keyboard], [], [], max(deadline - time.monotonic(), 0))[0]:
            try:
                chunk = os.read(self._keyboard, 1024)
            except OSError:  # the terminal is closed
                break
            read += chunk
            if not chunk:
                break
            if DEVICE.search(read):
                self._asked_at = None
                break
        return read


def _is_dark(red: bytes, green: bytes, blue: bytes) -> bool:
    """Return whether a colour is dark, by its luma; components have one to four hexadecimal digits."""
    r, g, b = (int(part, 16) / int(b"f" * len(part), 16) for part in (red, green, blue))
    return 0.299 * r + 0.587 * g + 0.114 * b < 0.5
