"""Full-screen drawing in a terminal, which is restored afterwards."""

import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

ENTER = "\x1b[?1049h\x1b[?25l"
"""Switch to the alternate screen, which keeps the scrollback, and hide the cursor."""

LEAVE = "\x1b[?25h\x1b[?1049l"

UNKNOWN = (80, 24)
"""Columns and rows assumed for a terminal that reports 0."""


class FullScreen:
    """The terminal, in full-screen mode while `entered`."""

    def __init__(self) -> None:
        self.descriptor = sys.stdin.fileno()
        """File descriptor that becomes readable when a key is pressed."""
        self._before = termios.tcgetattr(self.descriptor)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Take over the terminal for the block; restores it afterwards, and while suspended by Ctrl-Z."""
        self._take()
        before = signal.signal(signal.SIGTSTP, self._suspend)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, before)
            self._give_back()

    @property
    def size(self) -> tuple[int, int]:
        """Current columns and rows; `UNKNOWN` if the terminal does not know, as over a serial line."""
        columns, rows = os.get_terminal_size(self.descriptor)
        return columns or UNKNOWN[0], rows or UNKNOWN[1]

    def show(self, lines: Sequence[str]) -> None:
        """Draw these lines and clear the rest, in one write to avoid flicker."""
        sys.stdout.write("\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in lines[:-1]) + f"{lines[-1]}\x1b[K\x1b[J")
        sys.stdout.flush()

    def key(self) -> str:
        """Read a pressed key; call it when `descriptor` is readable. "" if the terminal was closed."""
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
        os.kill(os.getpid(), signal.SIGSTOP)  # continues here after `fg`
        self._take()
