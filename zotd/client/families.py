"""Puts subagents below the sessions that have begun them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

INDENT = "  "
MARK = "└ "
"""Before the name of a subagent."""


def in_families(
    sessions: Sequence[T], id_of: Callable[[T], str], parent_of: Callable[[T], str | None]
) -> Iterator[tuple[T, int]]:
    """Yield each session with how many of the others are above it; subagents follow their parents.

    The order is kept otherwise. A subagent whose parent is not among them stands alone.
    """
    known = {id_of(one) for one in sessions}
    below: defaultdict[str | None, list[T]] = defaultdict(list)
    for one in sessions:
        parent = parent_of(one)
        below[parent if parent in known else None].append(one)
    left = [(one, 0) for one in reversed(below.pop(None, []))]
    while left:
        one, depth = left.pop()
        yield one, depth
        left += [(child, depth + 1) for child in reversed(below.pop(id_of(one), []))]


def indented(name: str, depth: int) -> str:
    """Return the name of a session for a list in which it is so deep."""
    return f"{INDENT * (depth - 1)}{MARK}{name}" if depth else name
