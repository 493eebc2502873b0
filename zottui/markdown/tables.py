"""Tables: columns where there is room, otherwise a record for each row."""

from collections.abc import Sequence

from zottui.markdown.inline import Line, columns, painted
from zottui.theme import Role, Theme

_GAP = "  "
"""Between two columns. There are no lines: they would be copied with the text."""


def table_lines(rows: Sequence[Sequence[Line]], aligned: Sequence[str], width: int, theme: Theme) -> list[str]:
    """The lines of a table, the first row of which is its head.

    `aligned`: `left`, `center` or `right` for each column; each row has as many cells.
    """
    widths = [max(columns(row[i]) for row in rows) for i in range(len(aligned))]
    if theme.is_plain or sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        return _records(rows, theme)
    head, *body = rows
    rule = _GAP.join("─" * max(one, 1) for one in widths)
    return [
        _row(head, widths, aligned, theme, Role.STRONG),
        theme.paint(Role.MUTED, rule),
        *(_row(row, widths, aligned, theme) for row in body),
    ]


def _row(cells: Sequence[Line], widths: Sequence[int], aligned: Sequence[str], theme: Theme, *under: Role) -> str:
    shown: list[str] = []
    for cell, width, side in zip(cells, widths, aligned, strict=True):
        free = width - columns(cell)
        left = {"right": free, "center": free // 2}.get(side, 0)
        shown.append(" " * left + painted(cell, theme, *under) + " " * (free - left))
    return _GAP.join(shown).rstrip(" ")


def _records(rows: Sequence[Sequence[Line]], theme: Theme) -> list[str]:
    """`key: value` for each cell, and a blank line between two rows."""
    head, *body = rows
    keys = [painted(cell, theme, Role.STRONG) for cell in head]
    if not body:
        return keys
    lines: list[str] = []
    for row in body:
        values = (painted(cell, theme) for cell in row)
        lines += ["", *(f"{key}: {value}" if key else value for key, value in zip(keys, values, strict=True))]
    return lines[1:]
