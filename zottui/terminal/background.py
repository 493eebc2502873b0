"""Whether the terminal is light or dark.

It is asked for its background colour (OSC 11), and then for what it is (DA1), which every terminal answers: when that
answer comes without the first, the first will not come. Ask at the very start, and take the answer when the modules of the
client are imported: by then it is there.
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
"""How long after the question its answer is waited for: a terminal takes 5 ms, over ssh 100, and nobody notices 150."""

LATE_S = 1.0
"""How long after the question the program does not end without having seen the answer: the shell would read it."""

QUESTION = b"\x1b]11;?\x1b\\\x1b[c"

COLOUR = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)[^\x07\x1b]*(?:\x07|\x1b\\)")
DEVICE = re.compile(rb"\x1b\[\?[\d;]*c")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    is_dark: bool | None
    """None when the terminal has not said; `zottui.theme.choose` then looks for `COLORFGBG`."""
    typed: bytes
    """What was read beside the answer: keys, for `zottui.terminal.keyboard.Keyboard`. An answer may begin at its end."""


class Question:
    """One question to the terminal. The keyboard must be in cbreak mode (`zottui.terminal.early`)."""

    def __init__(self, env: Mapping[str, str], *, keyboard: int = KEYBOARD, screen: int = 1) -> None:
        """`keyboard`, `screen`: descriptors; a question to anything but a terminal that would understand it is not asked."""
        self._env = env
        self._keyboard = keyboard
        self._screen = screen
        self._asked_at: float | None = None

    def ask(self) -> None:
        """Send the question."""
        if understands_osc(self._env) and os.isatty(self._keyboard) and os.isatty(self._screen):
            os.write(self._screen, QUESTION)
            self._asked_at = time.monotonic()

    def answer(self) -> Answer:
        """What the terminal has answered by `ANSWER_S` after the question."""
        read = b"" if self._asked_at is None else self._read_until(self._asked_at + ANSWER_S)
        colour = COLOUR.search(read)
        is_dark = None if colour is None else _is_dark(*colour.groups())
        return Answer(is_dark, DEVICE.sub(b"", COLOUR.sub(b"", read)))

    def expect(self, is_due: bool) -> None:
        """Somebody else has asked the second question, or has got its answer."""
        self._asked_at = time.monotonic() if is_due else None

    def drain(self) -> None:
        """At the end, if that comes within `LATE_S`: wait for the answer when it has not come, and throw it away."""
        if self._asked_at is not None:
            self._read_until(self._asked_at + LATE_S)

    def _read_until(self, deadline: float) -> bytes:
        """What can be read up to the answer to the second question, or the deadline, or the end of the terminal."""
        read = b""
        # Also when the deadline is over, which it is on a slow machine: what has come by then is taken.
        while select.select([self._keyboard], [], [], max(deadline - time.monotonic(), 0))[0]:
            try:
                chunk = os.read(self._keyboard, 1024)
            except OSError:  # it has been closed
                break
            read += chunk
            if not chunk:
                break
            if DEVICE.search(read):
                self._asked_at = None
                break
        return read


def _is_dark(red: bytes, green: bytes, blue: bytes) -> bool:
    """Of a colour as terminals write it: one to four hexadecimal digits each."""
    r, g, b = (int(part, 16) / int(b"f" * len(part), 16) for part in (red, green, blue))
    return 0.299 * r + 0.587 * g + 0.114 * b < 0.5
