"""Lays messages out as rows for the screen's width: on demand, with a cache for those near the cursor."""

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
"""Most rows in the cache, about 10 MB."""


@dataclass(frozen=True, slots=True)
class ScreenRow:
    """A row of the screen and its position in the message."""

    block: int
    """Index of its block in the message."""
    line: int
    """Index of its line in the block."""
    offset: int
    """Index of its first character in the line."""
    pieces: Pieces

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key of the rows of a message."""
        return self.block, self.line, self.offset


@dataclass(frozen=True)
class LaidOutMessage:
    """A message that is laid out for a width."""

    blocks: tuple[Block, ...]
    expanded: frozenset[int]
    """Indices of expanded tool calls in `blocks`."""
    rows: tuple[ScreenRow, ...]

    @cached_property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The text of each line of each block, without styles."""
        texts: list[list[str]] = [[] for _ in self.blocks]
        for (block, _), rows in groupby(self.rows, key=lambda row: (row.block, row.line)):
            texts[block].append("".join(plain(row.pieces) for row in rows))
        return tuple(map(tuple, texts))


NOTHING = LaidOutMessage((), frozenset(), ())


class RowLayout:
    """Lays messages out with a width and a theme, and knows which calls are expanded."""

    def __init__(self, theme: Theme, width: int = 80) -> None:
        """Begin with all calls collapsed to cards."""
        # prompt_toolkit cannot draw links, so addresses are shown. Lines are folded here and not by the renderer: a
        # search must find text that is broken across rows.
        self._theme = replace(theme, has_links=False, wraps_words=False)
        self._width = width
        self._expands = False
        # Calls as (seq, block) whose state is the opposite of `_expands`.
        self._others: set[tuple[int, int]] = set()
        # LRU cache by the message's seq, the number of its results, and the kind of the block above it: all three
        # change how it looks.
        self._laid: OrderedDict[tuple[int, int, type[Block] | None], LaidOutMessage] = OrderedDict()
        # Total rows in the cache.
        self._rows = 0

    def resize(self, columns: int) -> None:
        """Lay out rows of at most so many columns; another width clears the cache."""
        if columns != self._width:
            self._width = columns
            self._forget(lambda _: True)

    def laid(self, loaded: Loaded, index: int) -> LaidOutMessage:
        """Return the message at `index` with its loaded results. Result messages have no rows: their calls show them."""
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
        while self._rows > MOST_ROWS and len(self._laid) > 1:  # always keep the message that was just laid out
            self._rows -= len(self._laid.popitem(last=False)[1].rows)
        return laid

    def is_expanded(self, seq: int, block: int) -> bool:
        """Return whether a call is expanded."""
        return self._expands != ((seq, block) in self._others)

    def toggle(self, seq: int, block: int) -> None:
        """Expand or collapse a call."""
        self._others ^= {(seq, block)}
        self._forget(lambda other: other == seq)

    def toggle_all(self) -> None:
        """Expand all calls, or collapse all."""
        self._expands = not self._expands
        self._others.clear()
        self._forget(lambda _: True)

    def all_lines(self, call: ToolRan) -> list[str]:
        """Return the text of the expanded call."""
        return [plain(parsed(line)) for line in whole.whole(call, self._width, self._theme, None)]

    def _forget(self, goes: Callable[[int], bool]) -> None:
        for key in [key for key in self._laid if goes(key[0])]:
            self._rows -= len(self._laid.pop(key).rows)

    def _lay(self, seq: int, blocks: Sequence[Block], above: Block | None) -> LaidOutMessage:
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
        return LaidOutMessage(tuple(blocks), frozenset(expanded), tuple(rows))
