"""A cursor in a text that is too long to be known: a row of it, and how many rows are shown above.

Nothing else is kept. So a text that grows at either end, is folded anew or has a part opened moves around the row under the
cursor, which stays where it is on the screen.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


class At(NamedTuple):
    """A row, as long as the text stays as it is."""

    part: int
    row: int


@dataclass(frozen=True, order=True, slots=True)
class RowPosition:
    """A row, however the text is folded and whatever is loaded."""

    seq: int
    """The message's."""
    block: int = 0
    line: int = 0
    offset: int = 0


class PartRows(Protocol):
    """Parts with rows; some have none."""

    def parts(self) -> int:
        """How many there are."""
        ...

    def rows(self, part: int) -> int:
        """How many rows a part has; asked for those that are shown, and those on the way to them."""
        ...

    def place(self, at: At) -> RowPosition:
        """Where that row stands."""
        ...

    def find(self, place: RowPosition) -> At:
        """The row of that place, or the nearest before it in its part; its part may have no rows."""
        ...


class Scroll:
    """The cursor and the screen around it."""

    def __init__(self, text: PartRows) -> None:
        """At the first row; `height` is to be set."""
        self._text = text
        self._place = RowPosition(0)
        self._above = 0
        self.height = 1
        """Rows of the screen."""

    @property
    def place(self) -> RowPosition:
        """Where the cursor was put."""
        return self._place

    @property
    def here(self) -> RowPosition | None:
        """The row under the cursor as it is now; None: the text has no rows."""
        at = self.at()
        return None if at is None else self._text.place(at)

    def to(self, place: RowPosition, above: int | None = None) -> None:
        """Go there; `above`: rows above it on the screen, by default as many as now."""
        self._place = place
        self._above = self._above if above is None else above

    def at(self) -> At | None:
        """The row of the cursor; None: the text has no rows."""
        at = self._text.find(self._place)
        if at.part >= self._text.parts():
            return None
        if self._text.rows(at.part):
            return at
        return self._next(at.part, 1) or self._next(at.part, -1)

    def move(self, rows: int) -> int:
        """Move the cursor down (up: below 0), and the screen when it comes to the edge; how many rows it has moved."""
        self._settle()
        moved = self._step(rows)
        self._above = min(max(self._above + moved, 0), self.height - 1)
        return moved

    def page(self, rows: int) -> None:
        """Move the cursor and the screen together, as far as there is text."""
        self._settle()
        self._step(rows)

    def wheel(self, rows: int) -> None:
        """Move the screen; the cursor stays on its row until that leaves the screen."""
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
        """The rows of the screen, from the top; fewer than `height` when the text has no more."""
        at = self.at()
        if at is None:
            return []
        room = self.height - 1
        down = self._rows(at, room - min(self._above, room))
        up = self._rows(at, len(down) - room)
        down += self._rows(down[-1] if down else at, room - len(up) - len(down))
        return [*reversed(up), at, *down]

    def is_at_end(self) -> bool:
        """Whether the cursor stands on the last row."""
        at = self.at()
        return at is None or self._walk(at, 1)[1] == 0

    # --- steps --------------------------------------------------------------------------------------------------------

    def _settle(self) -> list[At]:
        """Remember how many rows are above: fewer than there should be at the beginning of the text, more at its end."""
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
        """The row that is so many rows further, or the last one on the way, and how far it is."""
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
        """At most so many rows behind a row (below 0: before it), the nearest first."""
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
        """The first row behind a part, or the last one before it."""
        part += step
        while 0 <= part < self._text.parts():
            rows = self._text.rows(part)
            if rows:
                return At(part, 0 if step > 0 else rows - 1)
            part += step
        return None
