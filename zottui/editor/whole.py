"""Edits of a text with spans that are units: the cursor cannot enter them, and they are deleted as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[int, int]
"""Start and end index of a unit."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """An edit: the text from `start` to `end` was replaced by `inserted`."""

    start: int
    end: int
    inserted: str


def edit(before: str, after: str, cursor: int) -> Replacement:
    """Return the edit that turned `before` into `after`, with the cursor at `cursor` afterwards.

    An edit leaves the cursor after the inserted text, or where text was deleted. This decides between edits with the same
    result: of two equal placeholders next to each other, either could be the deleted one.
    """
    same_end = len(after) - cursor
    if not before.endswith(after[cursor:]) or same_end > len(before):
        same_end = _common(before[::-1], after[::-1])
    old, new = before[: len(before) - same_end], after[: len(after) - same_end]
    start = _common(old, new)
    return Replacement(start, len(old), new[start:])


def mended(before: str, made: Replacement, spans: Sequence[Span]) -> tuple[str, int] | None:
    """Return the corrected text and cursor if an edit has cut into one of `spans` of `before`; None if not.

    A span that was cut is removed as a whole; the inserted text stays.
    """
    start, end = made.start, made.end
    cut = [span for span in spans if (span[0] < end and start < span[1]) or span[0] < start < span[1]]
    first = min([start, *(span[0] for span in cut)])
    last = max([end, *(span[1] for span in cut)])
    if (first, last) == (start, end):
        return None
    return before[:first] + made.inserted + before[last:], first + len(made.inserted)


def outside(position: int, came_from: int, spans: list[Span]) -> int:
    """Return where to put the cursor instead of into a span: past it, in the direction of the movement."""
    for start, end in spans:
        if start < position < end:
            return end if position > came_from else start
    return position


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    short = min(len(one), len(other))
    if one[:short] == other[:short]:  # the usual case, and much faster than the loop below
        return short
    return next(index for index in range(short) if one[index] != other[index])
