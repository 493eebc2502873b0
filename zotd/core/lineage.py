"""Which part of a session its conversation has left behind by rewinding (`docs/durability.md`, History).

    1 2 3 4 5 6 | 7 8 9 | 10 11          | is a rewind: at 7 to 4, at 10 to 5
          `----'                         what is left behind after the first: 5 and 6
            `----------'                 after the second: 6 to 9, and 5 counts again

A rewound part stays on record and may be rewound to again, so the parts form a tree. Numbers are those of records or
the `seq` of events alike.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Span = tuple[int, int]
"""The first and the last number of a stretch."""


class RewindPoint(NamedTuple):
    """A recorded rewind of the conversation."""

    number: int
    """Number of its record."""
    to: int
    """Number of the record from which the conversation continues."""
    seq: int
    """`seq` of the event that shows it."""
    to_seq: int
    """Of the last message that counts."""


def records_left(rewinds: Iterable[RewindPoint]) -> list[Span]:
    """The records that do not count after these rewinds, oldest first."""
    return _left([(rewind.number, rewind.to) for rewind in rewinds])


def events_left(rewinds: Iterable[RewindPoint]) -> list[Span]:
    """The events that are not part of the conversation after these rewinds, oldest first."""
    return _left([(rewind.seq, rewind.to_seq) for rewind in rewinds])


def holds(spans: Sequence[Span], number: int) -> bool:
    """Whether one of these stretches, which stand in order, has the number."""
    place = bisect_left(spans, number, key=lambda span: span[1])
    return place < len(spans) and spans[place][0] <= number


def _left(rewinds: Sequence[Span]) -> list[Span]:
    left: list[Span] = []
    end: int | None = None
    for at, to in sorted(rewinds, reverse=True):
        if end is not None and at > end:
            continue  # it was left behind itself
        if to + 1 < at:
            left.append((to + 1, at - 1))
        end = to
    return left[::-1]
