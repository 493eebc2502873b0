"""Edits of a text in which some pieces are one thing: the cursor does not stop inside them, and they go as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[int, int]
"""Where a piece begins and ends."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """This piece of a text, from `start` to `end`, was replaced by `inserted`."""

    start: int
    end: int
    inserted: str


def edit(before: str, after: str, cursor: int) -> Replacement:
    """What was done to `before`, after which the cursor is there.

    Editing leaves the cursor behind what was inserted, or where something was deleted. That decides between edits that
    have the same result: of two placeholders beside each other either could be the one that is gone.
    """
    same_end = len(after) - cursor
    if not before.endswith(after[cursor:]) or same_end > len(before):
        same_end = _common(before[::-1], after[::-1])
    old, new = before[: len(before) - same_end], after[: len(after) - same_end]
    start = _common(old, new)
    return Replacement(start, len(old), new[start:])


def mended(before: str, made: Replacement, spans: Sequence[Span]) -> tuple[str, int] | None:
    """The text and the cursor that there should be when an edit has cut into one of `spans` of `before`.

    What lost a piece goes as a whole; what was inserted in its place stays. None: nothing was cut.
    """
    start, end = made.start, made.end
    cut = [span for span in spans if (span[0] < end and start < span[1]) or span[0] < start < span[1]]
    first = min([start, *(span[0] for span in cut)])
    last = max([end, *(span[1] for span in cut)])
    if (first, last) == (start, end):
        return None
    return before[:first] + made.inserted + before[last:], first + len(made.inserted)


def outside(position: int, came_from: int, spans: list[Span]) -> int:
    """Where the cursor goes instead of into a placeholder: across it, in the direction in which it moves."""
    for start, end in spans:
        if start < position < end:
            return end if position > came_from else start
    return position


def _common(one: str, other: str) -> int:
    """How many characters at the beginning are the same."""
    short = min(len(one), len(other))
    if one[:short] == other[:short]:  # as it is after nearly every key
        return short
    return next(index for index in range(short) if one[index] != other[index])
