"""The model of the viewer: loaded messages, their layout and the cursor.

Independent of the terminal and of the daemon.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from zottui.blocks import Block, ToolRan
from zottui.theme import Theme
from zottui.viewer.finding import Query, hits
from zottui.viewer.layout import LaidOutMessage, RowLayout, ScreenRow
from zottui.viewer.loaded import NEAR, Loaded, calls_of
from zottui.viewer.scrolling import At, RowPosition, Scroll

LAST = 2**62
"""Greater than any block, line or character index."""


@dataclass(frozen=True, slots=True)
class VisibleRow:
    """A row of the screen with its marks."""

    row: ScreenRow
    hits: list[tuple[int, int]]
    """Search matches as start and end in the row's line."""
    is_cursor: bool
    is_selected: bool
    """Whether it belongs to the block under the cursor."""


class _Text:
    """Adapts the loaded messages to `PartRows`, for `Scroll`."""

    def __init__(self, layout: RowLayout) -> None:
        self.loaded = Loaded()
        self.layout = layout

    def parts(self) -> int:
        return len(self.loaded)

    def rows(self, part: int) -> int:
        return len(self.laid(part).rows)

    def place(self, at: At) -> RowPosition:
        return RowPosition(self.loaded.seq(at.part), *self.laid(at.part).rows[at.row].order)

    def find(self, place: RowPosition) -> At:
        part = self.loaded.index(place.seq)
        if not self.loaded.has(place.seq):
            return At(part, 0)
        wanted = (place.block, place.line, place.offset)
        return At(part, max(bisect_right(self.laid(part).rows, wanted, key=lambda row: row.order) - 1, 0))

    def laid(self, part: int) -> LaidOutMessage:
        return self.layout.laid(self.loaded, part)


class Reader:
    """Shows one session: scrolls, searches, expands calls."""

    def __init__(self, theme: Theme) -> None:
        """Begin without messages; call `show`."""
        self.layout = RowLayout(theme)
        self._text = _Text(self.layout)
        self.scroll = Scroll(self._text)
        self.query: Query | None = None
        """The last search; its matches are highlighted."""

    @property
    def loaded(self) -> Loaded:
        """The loaded messages."""
        return self._text.loaded

    def show(self, loaded: Loaded) -> None:
        """Show other messages; the cursor keeps its position if it exists in them."""
        self._text.loaded = loaded

    def highlight(self, query: Query) -> None:
        """Highlight the matches of a search, instead of those of the one before."""
        self.query = query

    # --- drawing ------------------------------------------------------------------------------------------------------

    def resize(self, width: int, height: int) -> None:
        """Set the size of the screen; the row under the cursor stays in place."""
        self.layout.resize(max(width, 1))
        self.scroll.height = max(height, 1)

    def screen(self) -> Iterator[VisibleRow]:
        """Yield the visible rows from the top."""
        cursor = self.scroll.at()
        if cursor is None:
            return
        selected = self._text.place(cursor)
        for at in self.scroll.shown():
            laid = self._text.laid(at.part)
            row = laid.rows[at.row]
            is_selected = (self.loaded.seq(at.part), row.block) == (selected.seq, selected.block)
            found = self.query.spans(laid.lines[row.block][row.line]) if self.query is not None else []
            yield VisibleRow(row, found, at == cursor, is_selected)

    # --- the cursor ---------------------------------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        """`seq` of the message under the cursor; 0 if there is none."""
        at = self.scroll.at()
        return 0 if at is None else self.loaded.seq(at.part)

    @property
    def block(self) -> Block | None:
        """The block under the cursor."""
        at = self.scroll.at()
        if at is None:
            return None
        laid = self._text.laid(at.part)
        return laid.blocks[laid.rows[at.row].block]

    @property
    def is_live(self) -> bool:
        """Whether the cursor is at the end of the conversation, so that it follows new messages."""
        return not self.loaded.has_newer and self.scroll.is_at_end()

    @property
    def wants_older(self) -> bool:
        """Whether messages before the loaded ones are about to scroll into view."""
        return self.loaded.has_older and self.loaded.index(self.scroll.place.seq) < NEAR

    @property
    def wants_newer(self) -> bool:
        """Whether messages after the loaded ones are about to scroll into view."""
        return self.loaded.has_newer and self.loaded.index(self.scroll.place.seq) >= len(self.loaded) - NEAR

    def go(self, seq: int, row: ScreenRow) -> None:
        """Put the cursor on a row of a message; if it is not on the screen, scroll it to a third of the height."""
        place = RowPosition(seq, *row.order)
        shown, at = self.scroll.shown(), self._text.find(place)
        self.scroll.to(place, shown.index(at) if at in shown else self.scroll.height // 3)

    def go_to_end(self) -> None:
        """Put the cursor on the last loaded row."""
        self.scroll.to(RowPosition(self.loaded.last, LAST, LAST, LAST), self.scroll.height - 1)

    # --- calls --------------------------------------------------------------------------------------------------------

    def toggle(self) -> bool:
        """Expand or collapse the call under the cursor; False if there is none.

        In an expanded call the cursor goes to the first search match.
        """
        at = self.scroll.at()
        if at is None or not isinstance(self.block, ToolRan):
            return False
        place = self._text.place(at)
        self.layout.toggle(place.seq, place.block)
        laid = self._text.laid(at.part)
        if self.query is not None and place.block in laid.expanded:
            found = (row for row in hits(self.query, laid, self.layout) if row.block == place.block)
            first = next(found, None)
            if first is not None:
                self.go(place.seq, first)
        return True

    def calls(self) -> Iterator[RowPosition]:
        """Yield the positions of the calls that have a result, last one first."""
        for index in range(len(self.loaded) - 1, -1, -1):
            message = self.loaded.messages[index]
            calls = [None] if message.shell is not None else list(calls_of(message))
            blocks = self._text.laid(index).blocks if calls else ()
            # Each call has one `ToolRan` block, in the same order, so the two lists can be paired.
            tools = [number for number, block in enumerate(blocks) if isinstance(block, ToolRan)]
            pairs = [*zip(tools, calls, strict=True)]
            answered = (number for number, call in reversed(pairs) if call is None or self.loaded.is_answered(call))
            yield from (RowPosition(self.loaded.seq(index), number) for number in answered)
