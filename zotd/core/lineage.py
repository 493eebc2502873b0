"""Which parts of a session its conversation has abandoned by rewinding (`docs/durability.md`, History).

    1 2 3 4 5 6 | 7 8 9 | 10 11          | marks a rewind: 7 goes back to 4, 10 goes back to 5
          `----'                         abandoned after the first: 5 and 6
            `----------'                 after the second: 6 to 9; 5 is part of the conversation again

Abandoned parts stay in the journal and can be the target of a later rewind, so the parts form a tree. The functions
work on record numbers and on the `seq` of events alike.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Span = tuple[int, int]
"""First and last number of a range, both inclusive."""


class RewindPoint(NamedTuple):
    """A recorded rewind of the conversation."""

    number: int
    """Number of its record."""
    to: int
    """Number of the record from which the conversation continues."""
    seq: int
    """`seq` of the event that shows it."""
    to_seq: int
    """`seq` of the last message that remains."""


def records_left(rewinds: Iterable[RewindPoint]) -> list[Span]:
    """Return the records abandoned by these rewinds, oldest first."""
    return _left([(rewind.number, rewind.to) for rewind in rewinds])


def events_left(rewinds: Iterable[RewindPoint]) -> list[Span]:
    """Return the events abandoned by these rewinds, oldest first."""
    return _left([(rewind.seq, rewind.to_seq) for rewind in rewinds])


def holds(spans: Sequence[Span], number: int) -> bool:
    """Whether one of these ranges, which must be sorted, contains the number."""
    # The first range that does not end before the number is the only one that can contain it.
    place = bisect_left(spans, number, key=lambda span: span[1])
    return place < len(spans) and spans[place][0] <= number


def _left(rewinds: Sequence[Span]) -> list[Span]:
    left: list[Span] = []
    end: int | None = None
    # Newest first, because only the newest rewind is certain to count: it may have abandoned older ones.
    for at, to in sorted(rewinds, reverse=True):
        if end is not None and at > end:
            continue  # this rewind was itself abandoned by a newer one
        if to + 1 < at:
            left.append((to + 1, at - 1))
        end = to
    return left[::-1]
