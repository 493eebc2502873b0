"""How much room text takes on a terminal that wraps it itself: in the scrollback. The text is harmless, and one line.

Terminals count whole characters as a reader sees them. The live area is painted by prompt_toolkit, which counts otherwise:
`zottui.widgets.cells`.
"""

from wcwidth import iter_graphemes, wcswidth


def width_of(text: str) -> int:
    """Columns; a wide character takes two, one that marks another none."""
    return len(text) if text.isascii() else max(wcswidth(text), 0)


def clipped(text: str, width: int) -> str:
    """What fits into so many columns, with `…` at the end where something is left out."""
    if len(text) * 2 <= width or width_of(text) <= width:
        return text
    return f"{_first(text, width - 1)}…" if width > 0 else ""


def wrapped(text: str, width: int) -> list[str]:
    """Rows of at most so many columns; at least one."""
    rows: list[str] = []
    while text:
        row = _first(text, width) or text[:1]
        rows.append(row)
        text = text[len(row) :]
    return rows or [""]


def _first(text: str, width: int) -> str:
    """As much of the beginning as fits, in whole characters as a reader sees them."""
    if text[:width].isascii() and text[width : width + 1].isascii():
        return text[:width]
    used = end = 0
    for grapheme in iter_graphemes(text[: width * 8]):
        used += max(wcswidth(grapheme), 0)
        if used > width:
            break
        end += len(grapheme)
    return text[:end]
