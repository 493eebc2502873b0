"""A painted row of the live area, and where its columns are after the terminal has rewrapped it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaintedRow:
    """A row of the live area as it is on the screen."""

    runs: tuple[tuple[str, str], ...]
    """(style, text) from the left."""
    widths: bytes
    """Columns of each character without trailing blanks, which terminals ignore when they rewrap."""

    def fold(self, columns: int) -> tuple[int, list[int]]:
        """Return how many rows it takes at that width, and the row (from 0) of each of its columns."""
        row, x, rows = 0, 0, []
        for width in self.widths:
            if x + width > columns:
                row, x = row + 1, 0
            x += width
            rows += [row] * width
        return row + 1, rows


EMPTY = PaintedRow((), b"")
