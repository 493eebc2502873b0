"""The output of the plain chat, with a line for long silences."""

import sys
import time
from collections.abc import Sequence

from zotd.client.interrupts import Watch

WORKING = "working…\n"

MOMENT_S = 3.0
"""Seconds of silence before `WORKING` is printed. Users of screen readers see no cursor; most answers begin sooner."""


class Output:
    """Writes to standard output and watches for silences."""

    def __init__(self, watch: Watch) -> None:
        """`watch` waits for descriptors and signals."""
        self._watch = watch
        self._is_terminal = sys.stdout.isatty()
        self._is_in_line = False
        self.silence_begins()

    def silence_begins(self) -> None:
        """Restart the clock of the silence."""
        self._since = time.monotonic()
        self._has_said = False

    def write(self, words: str) -> None:
        """Write text and flush, and restart the clock of the silence."""
        if words:
            sys.stdout.write(words)
            sys.stdout.flush()
            self._is_in_line = not words.endswith("\n")
            self.silence_begins()

    def wait_any(self, descriptors: Sequence[int]) -> set[int]:
        """Wait like `Watch.wait_any` during a run, and print `WORKING` once in each silence of `MOMENT_S`.

        Not in the middle of a line, where the inserted newline would look like the end of the reply. Nor in a pipe, whose
        reader wants only the reply.
        """
        # Wait first only as long as the silence may last, then print the line once and wait without a limit.
        if self._is_terminal and not self._is_in_line and not self._has_said:
            left_s = max(self._since + MOMENT_S - time.monotonic(), 0.0)
            if ready := self._watch.wait_any(descriptors, left_s):
                return ready
            self.write(WORKING)
            self._has_said = True
        return self._watch.wait_any(descriptors)
