"""Measures text in columns of the live area, and cuts, pads and folds it.

prompt_toolkit paints each character by itself, as wide as wcwidth says, so this module counts the same way.
"""

from collections.abc import Iterator, Sequence

from prompt_toolkit.utils import get_cwidth

from zottui.sanitize import harmless
from zottui.theme import TextRole
from zottui.ui_context import Row

POINTER = "❯"  # not `>`, which begins a quotation
"""Mark before the user's input, prompts and the selected entry."""

CHARS_PER_CELL = 8
"""Most code points in one column. More combining characters than this are not real text, and begin another row."""

CUT = "…"
"""Mark where text is left out."""


def style(role: TextRole) -> str:
    """Return the prompt_toolkit style of a role."""
    return f"class:{role.value}"


def piece(role: TextRole, text: str) -> tuple[str, str]:
    """Return a fragment of a row. `text` must be trusted or the result of `clean`."""
    return style(role), text


def clean(text: str) -> str:
    """Sanitize untrusted text for one line."""
    return harmless(text).replace("\n", " ")


def cells(text: str) -> int:
    """Return the width of text in columns."""
    return len(text) if text.isascii() else sum(get_cwidth(character) for character in text)


def row_cells(row: Row) -> int:
    """Return the width of a row in columns."""
    return sum(cells(text) for _, text in row)


def head(text: str, width: int) -> str:
    """Return the longest prefix of at most `width` columns, with the combining characters that follow it."""
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for index, character in enumerate(text):
        taken += get_cwidth(character)
        if taken > width:
            return text[:index]
    return text


def cut(text: str, width: int) -> str:
    """Cut text at its end to `width` columns, with a `…`."""
    if cells(text) <= width:
        return text
    return head(text, width - 1) + CUT if width > 0 else ""


def cut_front(text: str, width: int) -> str:
    """Cut text at its beginning to `width` columns, with a `…`: the end of a path tells it from others."""
    if cells(text) <= width:
        return text
    return CUT + head(text[::-1], width - 1)[::-1] if width > 0 else ""


def fit(row: Row, width: int) -> Row:
    """Cut a row to `width` columns, with a `…` in the style of the fragment that is cut."""
    if row_cells(row) <= width:
        return row
    fitting: Row = []
    room = width - len(CUT)
    for look, text in row:
        if cells(text) > room:
            return [*fitting, (look, head(text, room) + CUT)] if width > 0 else []
        fitting.append((look, text))
        room -= cells(text)
    return fitting


def padded(text: str, width: int) -> str:
    """Cut or pad text to exactly `width` columns."""
    short = cut(text, width)
    return short + " " * (width - cells(short))


def folded(text: str, width: int) -> Iterator[str]:
    """Yield the sanitized lines of text, long ones in parts of at most `width` columns, as a terminal wraps them."""
    for line in harmless(text).split("\n"):
        at = 0
        while at < len(line) or not at:
            rest = line[at : at + max(width, 1) * CHARS_PER_CELL]  # a line may have millions
            part = head(rest, width) or rest[:1]  # a character wider than the whole row becomes a `…`
            yield cut(part, width)
            at += max(len(part), 1)


def flowing(parts: Sequence[Row], width: int, gap: str = "  ") -> list[Row]:
    """Place short parts next to each other on as many rows as needed; only a part wider than a row is cut."""
    rows: list[Row] = []
    for part in parts:
        if rows and row_cells(rows[-1]) + len(gap) + row_cells(part) <= width:
            rows[-1] += [("", gap), *part]
        else:
            rows.append(fit(part, width))
    return rows
