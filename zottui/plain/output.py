"""What the plain chat writes, and its word for a silence."""

import sys
import time
from collections.abc import Sequence

from zotd.client.interrupts import Watch

WORKING = "working…\n"

MOMENT_S = 3.0
"""After so long a silence whoever cannot see a cursor wonders; most answers begin sooner."""


class Output:
    """Standard output."""

    def __init__(self, watch: Watch) -> None:
        """`watch` is what waits."""
        self._watch = watch
        self._is_terminal = sys.stdout.isatty()
        self._is_in_line = False
        self.silence_begins()

    def silence_begins(self) -> None:
        """From now on it counts how long nothing is written."""
        self._since = time.monotonic()
        self._has_said = False

    def write(self, words: str) -> None:
        """Write them at once."""
        if words:
            sys.stdout.write(words)
            sys.stdout.flush()
            self._is_in_line = not words.endswith("\n")
            self.silence_begins()

    def wait_any(self, descriptors: Sequence[int]) -> set[int]:
        """As of `Watch`, while something is at work: each silence of `MOMENT_S` is told once, on a terminal.

        Not within a line: its end would look like the end of what is being said. Nor in a pipe, whose reader waits for
        the answer alone.
        """
        if self._is_terminal and not self._is_in_line and not self._has_said:
            left_s = max(self._since + MOMENT_S - time.monotonic(), 0.0)
            if ready := self._watch.wait_any(descriptors, left_s):
                return ready
            self.write(WORKING)
            self._has_said = True
        return self._watch.wait_any(descriptors)
