"""The name of an unnamed session: the beginning of its first prompt."""

import re
from unicodedata import combining, east_asian_width

TITLE_COLUMNS = 60
"""At most: a column of a list."""

CUT = "…"

_SENTENCE = re.compile(r".{12,}?[.!?](?=\s)")
"""The first sentence of a line, unless it is a greeting or a number of a list."""

MOST_CHARS = 1_000
"""Most characters of the first line that are examined: a prompt may be one line of megabytes."""


def title_of(prompt: str) -> str:
    """The first sentence of the first line that says something, cut between words; empty when there is none.

    At most `TITLE_COLUMNS` wide on a terminal, with `…` where it is cut.
    """
    line = next((line for line in prompt.splitlines() if line.strip()), "")
    words = " ".join(line.strip()[:MOST_CHARS].split())
    if found := _SENTENCE.match(words):
        words = found[0].rstrip(".")
    if _columns(words) <= TITLE_COLUMNS:
        return words
    kept = _head(words, TITLE_COLUMNS - len(CUT))
    begun, space, _ = kept.rpartition(" ")
    # One word that fills the line, or text without blanks, is cut where the room ends.
    whole = kept if words[len(kept)] == " " or len(begun) < len(kept) // 2 or not space else begun
    return whole.rstrip(" ,;:") + CUT


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    return 0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1


def _head(text: str, columns: int) -> str:
    taken = 0
    for at, character in enumerate(text):
        taken += _width(character)
        if taken > columns:
            return text[:at]
    return text
