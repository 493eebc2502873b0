"""Tables as columns, the cells of which wrap; as records where not even that fits."""

from collections.abc import Sequence
from itertools import zip_longest

from zottui.markdown.inline import Line, columns, painted, wrapped
from zottui.theme import TextRole, Theme

_GAP = "  "
"""Between two columns. There are no vertical lines: they would be copied with the text."""

_WORD_COLUMNS = 16
"""A column is not made narrower than its longest word up to this; longer words are cut."""

_NARROWEST = 6
"""Columns that a wrapped cell needs to be readable. Where the terminal has less, the table becomes records."""


def table_lines(rows: Sequence[Sequence[Line]], aligned: Sequence[str], width: int, theme: Theme) -> list[str]:
    """The lines of a table, the first row of which is its head.

    `aligned`: `left`, `center` or `right` for each column; each row has as many cells.
    """
    widths = _widths(rows, width - len(_GAP) * (len(aligned) - 1))
    if widths is None:
        return _records(rows, theme)
    head, *body = rows
    lines = [*_row(head, widths, aligned, theme, TextRole.STRONG), _rule(widths, "-" if theme.is_plain else "─", theme)]
    # Rows of several lines run into each other without a line between them.
    parts = [_row(row, widths, aligned, theme) for row in body]
    is_open = all(len(part) == 1 for part in parts)
    for number, part in enumerate(parts):
        if number and not is_open:
            lines.append(_rule(widths, "." if theme.is_plain else "┈", theme))
        lines += part
    return lines


def _widths(rows: Sequence[Sequence[Line]], room: int) -> list[int] | None:
    """Columns of each column; None: they cannot all be readable in that room."""
    cells = list(zip(*rows, strict=True))
    natural = [max(map(columns, column)) for column in cells]
    if sum(natural) <= room:
        return natural
    words = [min(_longest_word(column), _WORD_COLUMNS) for column in cells]
    widths = words if sum(words) <= room else [min(word, _NARROWEST) for word in words]
    if sum(widths) > room:
        return None
    return _shared(widths, natural, room - sum(widths))


def _longest_word(column: Sequence[Line]) -> int:
    return max(columns(row) for cell in column for row in wrapped(cell, 1))


def _shared(widths: Sequence[int], natural: Sequence[int], free: int) -> list[int]:
    """The widths with the free columns given to those that want more, in equal parts."""
    shared = list(widths)
    while free > 0:
        hungry = [i for i, width in enumerate(shared) if width < natural[i]]
        part = max(free // len(hungry), 1)
        for i in hungry[:free]:
            more = min(part, natural[i] - shared[i])
            shared[i] += more
            free -= more
    return shared


def _row(
    cells: Sequence[Line], widths: Sequence[int], aligned: Sequence[str], theme: Theme, *under: TextRole
) -> list[str]:
    wrapped_cells = [wrapped(cell, width, breaks_words=True) for cell, width in zip(cells, widths, strict=True)]
    lines: list[str] = []
    for parts in zip_longest(*wrapped_cells, fillvalue=[]):
        shown: list[str] = []
        for part, width, side in zip(parts, widths, aligned, strict=True):
            free = max(width - columns(part), 0)
            left = {"right": free, "center": free // 2}.get(side, 0)
            shown.append(" " * left + painted(part, theme, *under) + " " * (free - left))
        lines.append(_GAP.join(shown).rstrip(" "))
    return lines


def _rule(widths: Sequence[int], mark: str, theme: Theme) -> str:
    return theme.paint(TextRole.MUTED, _GAP.join(mark * max(width, 1) for width in widths))


def _records(rows: Sequence[Sequence[Line]], theme: Theme) -> list[str]:
    """`key: value` for each cell, and a blank line between two rows."""
    head, *body = rows
    keys = [painted(cell, theme, TextRole.STRONG) for cell in head]
    if not body:
        return keys
    lines: list[str] = []
    for row in body:
        values = (painted(cell, theme) for cell in row)
        lines += ["", *(f"{key}: {value}" if key else value for key, value in zip(keys, values, strict=True))]
    return lines[1:]
