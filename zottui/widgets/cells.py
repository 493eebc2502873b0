"""How many columns text takes, and how it is made to fit.

prompt_toolkit paints character by character, each as wide as wcwidth says; so it is counted here.
"""

from collections.abc import Iterator, Sequence

from prompt_toolkit.utils import get_cwidth

from zottui.sanitize import harmless
from zottui.theme import TextRole
from zottui.ui_context import Row

POINTER = "❯"  # no `>`: that begins a quotation
"""Stands before what the user types, has typed or has selected."""

CHARS_PER_CELL = 8
"""More that join into one are no character that anybody writes; what comes behind them begins another row."""

CUT = "…"
"""Stands where something is left out."""


def style(role: TextRole) -> str:
    """The style of a piece of a row."""
    return f"class:{role.value}"


def piece(role: TextRole, text: str) -> tuple[str, str]:
    """A piece of a row; `text` is ours, or was cleaned."""
    return style(role), text


def clean(text: str) -> str:
    """`text` of anybody on one line, without what could steer a terminal."""
    return harmless(text).replace("\n", " ")


def cells(text: str) -> int:
    """The columns that it takes."""
    return len(text) if text.isascii() else sum(get_cwidth(character) for character in text)


def row_cells(row: Row) -> int:
    """The columns that all pieces take."""
    return sum(cells(text) for _, text in row)


def head(text: str, width: int) -> str:
    """The longest beginning that takes at most `width` columns; what joins its last character comes along."""
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for index, character in enumerate(text):
        taken += get_cwidth(character)
        if taken > width:
            return text[:index]
    return text


def cut(text: str, width: int) -> str:
    """The beginning, with a `…` where it is cut."""
    if cells(text) <= width:
        return text
    return head(text, width - 1) + CUT if width > 0 else ""


def cut_front(text: str, width: int) -> str:
    """The end, with a `…` in front where it is cut: of paths, the part that tells them apart."""
    if cells(text) <= width:
        return text
    return CUT + head(text[::-1], width - 1)[::-1] if width > 0 else ""


def fit(row: Row, width: int) -> Row:
    """The beginning of a row, with a `…` in the style of the piece that is cut."""
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
    """`text` cut or filled up to exactly `width` columns."""
    short = cut(text, width)
    return short + " " * (width - cells(short))


def folded(text: str, width: int) -> Iterator[str]:
    """The lines of `text`, long ones in several pieces of at most `width` columns, as a terminal would show them."""
    for line in harmless(text).split("\n"):
        at = 0
        while at < len(line) or not at:
            rest = line[at : at + max(width, 1) * CHARS_PER_CELL]  # not all of it: a line may have millions of them
            part = head(rest, width) or rest[:1]  # one that is wider than all the room becomes a `…`
            yield cut(part, width)
            at += max(len(part), 1)


def flowing(parts: Sequence[Row], width: int, gap: str = "  ") -> list[Row]:
    """Short parts beside each other, on as many rows as they need; none is broken unless it is wider than a row."""
    rows: list[Row] = []
    for part in parts:
        if rows and row_cells(rows[-1]) + len(gap) + row_cells(part) <= width:
            rows[-1] += [("", gap), *part]
        else:
            rows.append(fit(part, width))
    return rows
