"""A terminal that is drawn anew again and again, and left as it was found."""

import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

ENTER = "\x1b[?1049h\x1b[?25l"
"""The alternate screen, so that the scrollback stays; no cursor."""

LEAVE = "\x1b[?25h\x1b[?1049l"

UNKNOWN = (80, 24)
"""Columns and rows of a terminal that says it has none."""


class Screen:
    """The whole terminal, while `entered`."""

    def __init__(self) -> None:
        self.descriptor = sys.stdin.fileno()
        """Can be read when a key was pressed."""
        self._before = termios.tcgetattr(self.descriptor)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have the terminal; whatever ends the block, it is given back. Ctrl-Z gives it back for a while."""
        self._take()
        before = signal.signal(signal.SIGTSTP, self._suspend)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, before)
            self._give_back()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows, now; `UNKNOWN` ones of a terminal that has none, as over a serial line."""
        columns, rows = os.get_terminal_size(self.descriptor)
        return columns or UNKNOWN[0], rows or UNKNOWN[1]

    def show(self, lines: Sequence[str]) -> None:
        """Draw these lines, and nothing else; in one write, so that nothing flickers."""
        sys.stdout.write("\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in lines[:-1]) + f"{lines[-1]}\x1b[K\x1b[J")
        sys.stdout.flush()

    def key(self) -> str:
        """A key that was pressed; call it when the terminal can be read. Empty when it is gone."""
        return os.read(self.descriptor, 64).decode(errors="replace")

    def _take(self) -> None:
        tty.setcbreak(self.descriptor)
        sys.stdout.write(ENTER)
        sys.stdout.flush()

    def _give_back(self) -> None:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._before)

    def _suspend(self, _: int, __: FrameType | None) -> None:
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)  # goes on here when the shell brings it back
        self._take()
