"""Prints finished blocks into the terminal's scrollback."""

from collections.abc import Callable, Iterable

from zottui.blocks import Block
from zottui.render import render
from zottui.theme import Theme

MOST_LINES = 400
"""Most lines printed at once, a few screens. Only an attach prints more; the viewer has the rest."""


class Scrollback:
    """Renders blocks and remembers the last one, which decides about blank lines."""

    def __init__(self, print_above: Callable[[str], None]) -> None:
        """`print_above` gets lines for the terminal."""
        self._print_above = print_above
        self._last: Block | None = None

    def print(self, blocks: Iterable[Block], width: int, theme: Theme) -> None:
        """Print blocks in this width and theme; they cannot change any more."""
        lines: list[str] = []
        for block in blocks:
            # The block before decides about a blank line, also across calls of `print`.
            lines += render(block, width, theme, self._last)
            self._last = block
        if lines:
            # One call for all: each one schedules a frame, and the newest lines are the ones to keep.
            self._print_above("\n".join(lines[-MOST_LINES:]))
