"""Tables for terminals: columns line up whatever characters the cells contain."""

from collections.abc import Callable, Container, Sequence

from zotd.client.columns import width_of
from zotd.sanitize import one_line

GAP = "  "


def table(
    rows: Sequence[Sequence[str]],
    *,
    right: Container[int] = (),
    paint: Callable[[int, str], str] = lambda _, text: text,
) -> list[str]:
    """Return one line per row; each column is as wide as its widest cell. No line ends in spaces.

    Args:
        rows: cells from any source; each is made one harmless line. All rows have the same length.
        right: indexes of the columns that are aligned right, such as numbers.
        paint: adds colours to the text of a cell, given its column. Widths are measured without them.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - width_of(cell))
            text = paint(column, cell)
            padded.append(space + text if column in right else text + space)
        lines.append(GAP.join(padded).rstrip(" "))
    return lines
