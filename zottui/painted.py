"""A row of the live area as it was painted, and where its columns are when the terminal has wrapped it again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaintedRow:
    """A row as it was painted."""

    runs: tuple[tuple[str, str], ...]
    """(style, text) pieces, from the left."""
    widths: bytes
    """The columns of each character, without blanks at the end: what the terminal counts when it wraps the row again."""

    def fold(self, columns: int) -> tuple[int, list[int]]:
        """In a terminal of that width: how many rows it takes, and the row (from 0) of each of its columns."""
        row, x, rows = 0, 0, []
        for width in self.widths:
            if x + width > columns:
                row, x = row + 1, 0
            x += width
            rows += [row] * width
        return row + 1, rows


EMPTY = PaintedRow((), b"")
