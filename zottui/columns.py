"""Breaks a sanitized line into rows for the scrollback.

Widths are those of `zotd.client.columns`, which terminals use. The live area uses `zottui.widgets.cells`: prompt_toolkit
paints it and counts each character by itself.
"""

from wcwidth import wcwidth

from zotd.client.columns import CHARS_PER_COLUMN, fitting

# Closing punctuation of East Asian text that must not begin a row (a short form of JIS X 4051).
_NO_ROW_START = frozenset("、。，．！？；：）」』】》〉”’…")  # noqa: RUF001


def wrapped(text: str, width: int) -> list[str]:
    """Break text into rows of at most `width` columns, anywhere; returns at least one row."""
    rows: list[str] = []
    while text:
        row = fitting(text, width) or text[:1]
        rows.append(row)
        text = text[len(row) :]
    return rows or [""]


def word_spans(text: str, width: int, *, breaks_words: bool = False) -> list[tuple[int, int]]:
    """Break one line between words and return `(start, end)` of each row in `text`, without the spaces at the breaks.

    A word wider than a row gets its own row and the terminal wraps it, so that a URL can still be clicked and copied;
    `breaks_words` cuts it instead. A row may break before or after any wide (East Asian) character.
    """
    if text.isascii() and len(text) <= width:  # the usual line: measuring it character by character would be slow
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
    """Return the rows of `word_spans` as text; at least one."""
    return [text[start:end] for start, end in word_spans(text, width)]


def _break(text: str, start: int, limit: int) -> int | None:
    """Return the last position up to `limit` where a row that begins at `start` may end; None if there is none."""
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
