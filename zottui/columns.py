"""How much room text takes on a terminal that wraps it itself: in the scrollback. The text is harmless, and one line.

Terminals count whole characters as a reader sees them. The live area is painted by prompt_toolkit, which counts otherwise:
`zottui.widgets.cells`.
"""

from wcwidth import iter_graphemes, wcswidth, wcwidth

_NO_ROW_START = frozenset("、。，．！？；：）」』】》〉”’…")  # noqa: RUF001
"""Closing punctuation of East Asian text, which never begins a row; source: JIS X 4051, in short."""

_CHARS_PER_COLUMN = 8
"""How many characters of text are looked at for each column of a row; only stacked combining marks need more."""


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


def word_spans(text: str, width: int, *, breaks_words: bool = False) -> list[tuple[int, int]]:
    """The rows of one line, broken between words: `(start, end)` of each in `text`, without the spaces at the break.

    A word that is wider than a row gets a row of its own and is left to the terminal to wrap, so that an address can
    still be clicked and copied; `breaks_words` cuts it instead. Wide (East Asian) characters may be parted anywhere.
    """
    if text.isascii() and len(text) <= width:
        return [(0, len(text))]
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        limit = start + len(_first(text[start : start + width * _CHARS_PER_COLUMN + 1], width))
        end = len(text) if limit >= len(text) else _break(text, start, limit)
        if end is None:
            end = max(limit, start + 1) if breaks_words else _word_end(text, limit)
        spans.append((start, end))
        start = end
        while start < len(text) and text[start] == " ":
            start += 1
    return spans or [(0, 0)]


def word_wrapped(text: str, width: int) -> list[str]:
    """The rows of `word_spans` as text; at least one."""
    return [text[start:end] for start, end in word_spans(text, width)]


def _break(text: str, start: int, limit: int) -> int | None:
    """The last place up to `limit` where a row that begins at `start` may end; None: within its first word."""
    first = start
    while first < limit and text[first] == " ":  # a break within the indentation would make an empty row
        first += 1
    space = text.rfind(" ", first, limit + 1)
    if not text[first : limit + 1].isascii():
        for place in range(limit, max(space, first), -1):
            if text[place] not in _NO_ROW_START and 2 in {wcwidth(text[place - 1]), wcwidth(text[place])}:
                return place
    if space <= first:
        return None
    while text[space - 1] == " ":
        space -= 1
    return space


def _word_end(text: str, place: int) -> int:
    end = text.find(" ", place)
    return len(text) if end < 0 else end


def _first(text: str, width: int) -> str:
    """As much of the beginning as fits, in whole characters as a reader sees them."""
    if text[:width].isascii() and text[width : width + 1].isascii():
        return text[:width]
    used = end = 0
    for grapheme in iter_graphemes(text[: width * _CHARS_PER_COLUMN]):
        used += max(wcswidth(grapheme), 0)
        if used > width:
            break
        end += len(grapheme)
    return text[:end]
