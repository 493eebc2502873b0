"""Breaks text into rows for the scrollback, which the terminal itself wraps. The text is harmless, and one line.

Widths are those of `zotd.client.columns`. The live area is painted by prompt_toolkit, which counts otherwise:
`zottui.widgets.cells`.
"""

from wcwidth import wcwidth

from zotd.client.columns import CHARS_PER_COLUMN, fitting

_NO_ROW_START = frozenset("、。，．！？；：）」』】》〉”’…")  # noqa: RUF001
"""Closing punctuation of East Asian text, which never begins a row; source: JIS X 4051, in short."""


def wrapped(text: str, width: int) -> list[str]:
    """Rows of at most so many columns; at least one."""
    rows: list[str] = []
    while text:
        row = fitting(text, width) or text[:1]
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
        limit = start + len(fitting(text[start : start + width * CHARS_PER_COLUMN + 1], width))
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
