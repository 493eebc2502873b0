"""How many terminal columns text takes, by the Unicode tables of `wcwidth`.

Text must be one line without control characters or escape sequences (`zotd.sanitize.one_line`). Counts whole grapheme
clusters, as terminals do that lay out text themselves; `zottui.widgets.cells` counts as prompt_toolkit does.
"""

CHARS_PER_COLUMN = 8
"""Characters examined for each column. Only stacked combining marks need more, and their rest is cut off."""

# wcwidth is imported by the functions that need it: its tables cost milliseconds, and most text is ASCII.


def width_of(text: str) -> int:
    """Return the width of `text` in columns: 2 for a wide character such as 漢, 0 for a combining mark."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # noqa: PLC0415

    return max(wcswidth(text), 0)


def fitting(text: str, width: int) -> str:
    """Return the longest beginning of `text` that takes at most `width` columns, in whole grapheme clusters."""
    if text[: width + 1].isascii():
        return text[:width]
    from wcwidth import iter_graphemes, wcswidth  # noqa: PLC0415

    used = end = 0
    for grapheme in iter_graphemes(text[: width * CHARS_PER_COLUMN]):
        used += max(wcswidth(grapheme), 0)
        if used > width:
            break
        end += len(grapheme)
    return text[:end]


def clipped(text: str, width: int) -> str:
    """Return `text`, or if it takes more than `width` columns its beginning and `…`."""
    if len(text) * 2 <= width or width_of(text) <= width:
        return text
    return f"{fitting(text, width - 1)}…" if width > 0 else ""
