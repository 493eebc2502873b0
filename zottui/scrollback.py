"""Finished blocks on their way into the terminal's scrollback."""

from collections.abc import Callable, Iterable

from zottui.blocks import Block
from zottui.render import render
from zottui.theme import Theme

MOST_LINES = 400
"""Of what is printed at once, which is much only at attach: a few screens; the viewer has the rest."""


class Scrollback:
    """Renders each block after the one before it."""

    def __init__(self, print_above: Callable[[str], None]) -> None:
        """`print_above` takes lines for the terminal."""
        self._print_above = print_above
        self._last: Block | None = None

    def print(self, blocks: Iterable[Block], width: int, theme: Theme) -> None:
        """Print them as they are to look now; they stay so."""
        lines: list[str] = []
        for block in blocks:
            lines += render(block, width, theme, self._last)
            self._last = block
        if lines:
            self._print_above("\n".join(lines[-MOST_LINES:]))
