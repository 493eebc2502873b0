"""Messages as rows for a width: made when they are looked at, kept while they are near."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from zottui.blocks import Block, CodeLines, ToolRan
from zottui.theme import Theme
from zottui.transcript import blocks_of
from zottui.viewer import whole
from zottui.viewer.folding import Pieces, folded, parsed, plain
from zottui.viewer.loaded import Loaded, seq_of

MOST_ROWS = 20_000
"""Kept for the messages that were shown last: 10 MB, and more than a screen even of long ones."""


@dataclass(frozen=True, slots=True)
class ScreenRow:
    """A row of the screen, and where it comes from."""

    block: int
    """Counted in its message, from 0."""
    line: int
    """Counted in its block, from 0."""
    offset: int
    """Characters of the line before it."""
    pieces: Pieces

    @property
    def order(self) -> tuple[int, int, int]:
        """Ascends from row to row of a message."""
        return self.block, self.line, self.offset


@dataclass(frozen=True)
class Laid:
    """A message for a width."""

    blocks: tuple[Block, ...]
    expanded: frozenset[int]
    """Which of them are tool calls that are shown whole."""
    rows: tuple[ScreenRow, ...]

    @cached_property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The text of each line of each block."""
        texts: list[list[str]] = [[] for _ in self.blocks]
        for (block, _), rows in groupby(self.rows, key=lambda row: (row.block, row.line)):
            texts[block].append("".join(plain(row.pieces) for row in rows))
        return tuple(map(tuple, texts))


NOTHING = Laid((), frozenset(), ())


class Laying:
    """How messages look: the width, the theme, and which calls are shown whole."""

    def __init__(self, theme: Theme, width: int = 80) -> None:
        """All calls are cards."""
        # prompt_toolkit knows no links, so the address is shown. Lines are folded here, so that a search finds words on
        # both sides of a break.
        self._theme = replace(theme, has_links=False, wraps_words=False)
        self._width = width
        self._expands = False
        self._others: set[tuple[int, int]] = set()
        """Calls, as (seq, block), that are not as `_expands` says."""
        self._laid: OrderedDict[tuple[int, int, type[Block] | None], Laid] = OrderedDict()
        """By the message, how many results its calls have, and what is above it; the one that was used last is last."""
        self._rows = 0
        """In all of them."""

    @property
    def width(self) -> int:
        """Columns of a row, at most."""
        return self._width

    @width.setter
    def width(self, columns: int) -> None:
        if columns != self._width:
            self._width = columns
            self._forget(lambda _: True)

    def laid(self, loaded: Loaded, index: int) -> Laid:
        """The message at `index`, with the results that are loaded; one that is no prompt and no reply has no rows."""
        if loaded.messages[index].role == "tool":
            return NOTHING
        messages = loaded.with_results(index)
        seq, above = seq_of(messages[0]), loaded.above(index)
        key = (seq, len(messages), None if above is None else type(above))
        laid = self._laid.get(key)
        if laid is not None:
            self._laid.move_to_end(key)
            return laid
        laid = self._laid[key] = self._lay(seq, tuple(blocks_of(messages)), above)
        self._rows += len(laid.rows)
        while self._rows > MOST_ROWS and len(self._laid) > 1:
            self._rows -= len(self._laid.popitem(last=False)[1].rows)
        return laid

    def is_expanded(self, seq: int, block: int) -> bool:
        """Whether a call is shown whole."""
        return self._expands != ((seq, block) in self._others)

    def toggle(self, seq: int, block: int) -> None:
        """Show a call whole, or as a card again."""
        self._others ^= {(seq, block)}
        self._forget(lambda other: other == seq)

    def toggle_all(self) -> None:
        """Show all calls whole, or all as cards."""
        self._expands = not self._expands
        self._others.clear()
        self._forget(lambda _: True)

    def all_lines(self, call: ToolRan) -> list[str]:
        """The text of a call that is shown whole."""
        return [plain(parsed(line)) for line in whole.whole(call, self._width, self._theme, None)]

    def _forget(self, goes: Callable[[int], bool]) -> None:
        for key in [key for key in self._laid if goes(key[0])]:
            self._rows -= len(self._laid.pop(key).rows)

    def _lay(self, seq: int, blocks: Sequence[Block], above: Block | None) -> Laid:
        rows: list[ScreenRow] = []
        expanded: set[int] = set()
        for number, block in enumerate(blocks):
            if isinstance(block, ToolRan) and self.is_expanded(seq, number):
                expanded.add(number)
                lines = whole.whole(block, self._width, self._theme, above)
            else:
                lines = whole.card(block, self._width, self._theme, above)
            for at, line in enumerate(lines):
                parts = folded(parsed(line), self._width, at_words=not isinstance(block, ToolRan | CodeLines))
                rows += [ScreenRow(number, at, part.offset, part.pieces) for part in parts]
            above = block
        return Laid(tuple(blocks), frozenset(expanded), tuple(rows))
