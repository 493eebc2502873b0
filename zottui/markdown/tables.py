"""Renders tables as columns with wrapped cells, or as records where the terminal is too narrow."""

from collections.abc import Sequence
from itertools import zip_longest

from zottui.markdown.inline import Line, columns, painted, wrapped
from zottui.theme import TextRole, Theme

# Between two columns. There are no vertical lines, which would be copied with the text.
_GAP = "  "

# A column is at least as wide as its longest word, up to this width; longer words are cut.
_WORD_COLUMNS = 16

# Least width of a readable column. If the terminal has less room, the table becomes records.
_NARROWEST = 6


def table_lines(rows: Sequence[Sequence[Line]], aligned: Sequence[str], width: int, theme: Theme) -> list[str]:
    """Return the lines of a table whose first row is its head.

    `aligned` is `left`, `center` or `right` for each column; each row has as many cells.
    """
    widths = _widths(rows, width - len(_GAP) * (len(aligned) - 1))
    if widths is None:
        return _records(rows, theme)
    head, *body = rows
    lines = [*_row(head, widths, aligned, theme, TextRole.STRONG), _rule(widths, "-" if theme.is_plain else "─", theme)]
    # With wrapped cells, a rule between rows is needed to see where a row ends.
    parts = [_row(row, widths, aligned, theme) for row in body]
    is_open = all(len(part) == 1 for part in parts)
    for number, part in enumerate(parts):
        if number and not is_open:
            lines.append(_rule(widths, "." if theme.is_plain else "┈", theme))
        lines += part
    return lines


def _widths(rows: Sequence[Sequence[Line]], room: int) -> list[int] | None:
    """Return the width of each column; None if they cannot all be readable."""
    cells = list(zip(*rows, strict=True))
    natural = [max(map(columns, column)) for column in cells]
    if sum(natural) <= room:
        return natural
    words = [min(_longest_word(column), _WORD_COLUMNS) for column in cells]
    # First without cutting words. Only if that does not fit, narrower columns that cut them.
    widths = words if sum(words) <= room else [min(word, _NARROWEST) for word in words]
    if sum(widths) > room:
        return None
    return _shared(widths, natural, room - sum(widths))


def _longest_word(column: Sequence[Line]) -> int:
    return max(columns(row) for cell in column for row in wrapped(cell, 1))


def _shared(widths: Sequence[int], natural: Sequence[int], free: int) -> list[int]:
    """Distribute free columns equally among the columns that need more."""
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
    """Return `key: value` for each cell, and a blank line between two rows."""
    head, *body = rows
    keys = [painted(cell, theme, TextRole.STRONG) for cell in head]
    if not body:
        return keys
    lines: list[str] = []
    for row in body:
        values = (painted(cell, theme) for cell in row)
        lines += ["", *(f"{key}: {value}" if key else value for key, value in zip(keys, values, strict=True))]
    return lines[1:]
