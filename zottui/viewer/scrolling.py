"""Scrolling in a text whose length is unknown. The position is the cursor's row and the number of rows above it.

Nothing else is stored. When the text grows at an end, is folded for another width or a part of it is expanded, the row
under the cursor stays where it is on the screen and the other rows move.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


class At(NamedTuple):
    """A row by index; valid until the text changes."""

    part: int
    row: int


@dataclass(frozen=True, order=True, slots=True)
class RowPosition:
    """A row by its position in the conversation; independent of the width and of what is loaded."""

    seq: int
    """`seq` of the message."""
    block: int = 0
    line: int = 0
    offset: int = 0


class PartRows(Protocol):
    """A text that consists of parts with rows. Parts may be empty."""

    def parts(self) -> int:
        """Return the number of parts."""
        ...

    def rows(self, part: int) -> int:
        """Return the number of rows of a part. Only called for visible parts and those that are scrolled past."""
        ...

    def place(self, at: At) -> RowPosition:
        """Return the position of a row."""
        ...

    def find(self, place: RowPosition) -> At:
        """Return the row at a position, or the nearest one before it in its part, which may be empty."""
        ...


class Scroll:
    """The cursor and the visible rows around it."""

    def __init__(self, text: PartRows) -> None:
        """Begin at the first row; set `height` before use."""
        self._text = text
        self._place = RowPosition(0)
        self._above = 0
        self.height = 1
        """Number of rows on the screen."""

    @property
    def place(self) -> RowPosition:
        """The position that the cursor was set to; its row may not exist any more."""
        return self._place

    @property
    def here(self) -> RowPosition | None:
        """The position of the row under the cursor; None if the text has no rows."""
        at = self.at()
        return None if at is None else self._text.place(at)

    def to(self, place: RowPosition, above: int | None = None) -> None:
        """Put the cursor on a position, with `above` rows above it on the screen, by default as many as now."""
        self._place = place
        self._above = self._above if above is None else above

    def at(self) -> At | None:
        """Return the row under the cursor; None if the text has no rows."""
        at = self._text.find(self._place)
        if at.part >= self._text.parts():
            return None
        if self._text.rows(at.part):
            return at
        # A part without rows, such as a result message: take the nearest row, below first.
        return self._next(at.part, 1) or self._next(at.part, -1)

    def move(self, rows: int) -> int:
        """Move the cursor down, or up if negative, and scroll at the edge; return how many rows it has moved."""
        self._settle()
        moved = self._step(rows)
        self._above = min(max(self._above + moved, 0), self.height - 1)  # at an edge the screen scrolls instead
        return moved

    def page(self, rows: int) -> None:
        """Move the cursor and the screen together."""
        self._settle()
        self._step(rows)

    def wheel(self, rows: int) -> None:
        """Scroll the screen; the cursor stays on its row until the row leaves the screen."""
        shown = self._settle()
        if not shown:
            return
        edge = shown[-1] if rows > 0 else shown[0]
        room = self._walk(edge, rows)[1]
        self._above -= room
        beyond = min(self._above, 0) or max(self._above - self.height + 1, 0)
        self._step(-beyond)
        self._above -= beyond

    def shown(self) -> list[At]:
        """Return the visible rows from the top; fewer than `height` if the text is shorter."""
        at = self.at()
        if at is None:
            return []
        room = self.height - 1
        down = self._rows(at, room - min(self._above, room))
        up = self._rows(at, len(down) - room)
        down += self._rows(down[-1] if down else at, room - len(up) - len(down))
        return [*reversed(up), at, *down]

    def is_at_end(self) -> bool:
        """Return whether the cursor is on the last row."""
        at = self.at()
        return at is None or self._walk(at, 1)[1] == 0

    # --- steps --------------------------------------------------------------------------------------------------------

    def _settle(self) -> list[At]:
        """Set `_above` to the real number of rows above the cursor, which differs near the ends of the text."""
        shown = self.shown()
        at = self.at()
        if at is not None:
            self._above = shown.index(at)
        return shown

    def _step(self, rows: int) -> int:
        at = self.at()
        if at is None:
            return 0
        there, moved = self._walk(at, rows)
        self._place = self._text.place(there)
        return moved

    def _walk(self, at: At, rows: int) -> tuple[At, int]:
        """Return the row `rows` further, or the last one in that direction, and the distance to it."""
        moved = 0
        while moved != rows:
            left = rows - moved
            room = self._text.rows(at.part) - 1 - at.row if rows > 0 else -at.row
            if abs(left) <= abs(room):
                return At(at.part, at.row + left), rows
            at, moved = At(at.part, at.row + room), moved + room
            beyond = self._next(at.part, 1 if rows > 0 else -1)
            if beyond is None:
                break
            at, moved = beyond, moved + (1 if rows > 0 else -1)
        return at, moved

    def _rows(self, at: At, rows: int) -> list[At]:
        """Return at most `rows` rows after a row, or before it if negative, the nearest first."""
        found: list[At] = []
        step = 1 if rows > 0 else -1
        while len(found) < abs(rows):
            there, moved = self._walk(at, step)
            if not moved:
                break
            found.append(there)
            at = there
        return found

    def _next(self, part: int, step: int) -> At | None:
        """Return the first row after a part, or the last one before it."""
        part += step
        while 0 <= part < self._text.parts():
            rows = self._text.rows(part)
            if rows:
                return At(part, 0 if step > 0 else rows - 1)
            part += step
        return None
