"""Parses lines with SGR sequences into styled fragments, and folds them into rows of the screen's width."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from prompt_toolkit.formatted_text import ANSI, to_formatted_text

from zotd.sanitize import SGR
from zottui.widgets.cells import CHARS_PER_CELL, head

Pieces = list[tuple[str, str]]
"""(prompt_toolkit style, text) from the left."""

_SEQUENCES = re.compile(f"({SGR.pattern})")
_RESET = re.compile(r"\x1b\[0*m")


@dataclass(frozen=True, slots=True)
class Folded:
    """One row of a folded line."""

    offset: int
    """Index of its first character in the line."""
    pieces: Pieces


def parsed(line: str) -> Pieces:
    """Parse a line that contains SGR but no other sequences."""
    if "\x1b" not in line:
        return [("", line)] if line else []
    pieces: Pieces = []
    painted = ""
    for part in _SEQUENCES.split(line):
        if not part.startswith("\x1b["):
            pieces += [(_style(painted), part)] if part else []
        elif _RESET.fullmatch(part):
            painted = ""
        else:
            painted += part
    return pieces


def plain(pieces: Sequence[tuple[str, str]]) -> str:
    """Return the text without styles."""
    return "".join(text for _, text in pieces)


def folded(pieces: Sequence[tuple[str, str]], width: int, *, at_words: bool = False) -> Iterator[Folded]:
    """Yield the rows of a line, at least one, each of at most `width` columns; a wider character gets its own row.

    Columns are counted character by character, as prompt_toolkit paints. Combining characters stay with their base.
    With `at_words`, break after the last space that fits, unless a single word fills the row.
    """
    text = plain(pieces)
    start = 0
    while True:
        fitting = head(text[start : start + width * CHARS_PER_CELL], width) or text[start : start + 1]
        end = start + len(fitting)
        if at_words and end < len(text):
            end = text.rfind(" ", start, end + 1) + 1 or end
        yield Folded(start, _between(pieces, start, end))
        if end >= len(text):
            return
        start = end


def _between(pieces: Sequence[tuple[str, str]], start: int, end: int) -> Pieces:
    """Return the fragments between two character positions."""
    part: Pieces = []
    at = 0
    for style, text in pieces:
        inner = text[max(start - at, 0) : max(end - at, 0)]
        if inner:
            part.append((style, inner))
        at += len(text)
    return part


def marked(pieces: Sequence[tuple[str, str]], spans: Sequence[tuple[int, int]], style: str) -> Pieces:
    """Return the fragments with `style` added to the characters in `spans`, which are in ascending order."""
    made: Pieces = []
    at = 0
    edges = [edge for span in spans for edge in span]
    for look, text in pieces:
        inner = [edge - at for edge in edges if at < edge < at + len(text)]
        for start, end in zip([0, *inner], [*inner, len(text)], strict=True):
            is_hit = any(first <= at + start < last for first, last in spans)
            made.append((f"{look} {style}" if is_hit else look, text[start:end]))
        at += len(text)
    return made


@lru_cache(maxsize=256)
def _style(painted: str) -> str:
    """Return the prompt_toolkit style of SGR sequences. Cached, since a theme has only a few dozen."""
    return to_formatted_text(ANSI(f"{painted}x"))[0][0]
