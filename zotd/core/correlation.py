"""Pending requests to a peer and their deadlines. No I/O and no clock.

Each request has an id that is never reused, optionally a deadline, and a value that the owner gets back with the
answer. An answer to a request that is not pending (late, repeated, invented) is dropped and counted, never an error.
"""

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

from msgspec import Struct

REMEMBERED = 256
"""Number of closed requests remembered, to tell late answers from invented ones; no extension answers more of them
late at once."""

T = TypeVar("T")


class Dropped(Struct):
    """Number of answers for which no request was pending."""

    late: int = 0
    """The request had been answered, cancelled or timed out."""
    unknown: int = 0
    """The request never existed, or was closed long ago."""


class Correlation(Generic[T]):
    """The pending requests of one peer."""

    def __init__(self, label: str) -> None:
        """`label` is the prefix of every id; it must differ between peers."""
        self.dropped = Dropped()
        self._label = label
        self._count = 0
        self._open: dict[str, T] = {}
        # Only ids, because a request may hold megabytes. A dict, because it keeps the order for eviction.
        self._closed: dict[str, None] = {}
        self._deadlines: list[tuple[float, str]] = []  # a heap; ids that are no longer open are skipped
        # Postponed deadlines, by id. The heap keeps the old time; `wake_at` moves the entry when it reaches the front,
        # because finding an entry inside a heap takes linear time.
        self._later: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[T]:
        """Iterate over the pending requests, oldest first."""
        return iter(self._open.values())

    @property
    def wake_at(self) -> float | None:
        """The next deadline; None if no pending request has one."""
        # Drop closed requests and move postponed ones until the front of the heap is a current deadline.
        while self._deadlines:
            due, key = self._deadlines[0]
            later = self._later.pop(key, due)
            if key in self._open and later <= due:
                return due
            heapq.heappop(self._deadlines)
            if key in self._open:
                heapq.heappush(self._deadlines, (later, key))
        return None

    def postpone(self, key: str, deadline: float) -> None:
        """Move the deadline of a pending request to a later time."""
        self._later[key] = deadline

    def open(self, request: T, deadline: float | None = None) -> str:
        """Add a pending request and return its id."""
        self._count += 1
        key = f"{self._label}-{self._count}"
        self._open[key] = request
        if deadline is not None:
            self._remember(deadline, key)
        return key

    def peek(self, key: str) -> T | None:
        """Return the pending request with this id, or None; it stays pending."""
        return self._open.get(key)

    def answer(self, key: str) -> T | None:
        """Close the request with this id because its answer arrived; None if it is not pending: drop the answer."""
        request = self._close(key)
        if request is None:
            if key in self._closed:
                self.dropped.late += 1
            else:
                self.dropped.unknown += 1
        return request

    def was_open(self, key: str) -> bool:
        """Whether this is the id of a recently closed request."""
        return key in self._closed

    def cancel(self, key: str) -> bool:
        """Close a request without an answer; False if it was not pending."""
        return self._close(key) is not None

    def expire(self, now: float) -> list[tuple[str, T]]:
        """Close the requests whose deadline has passed and return them, most overdue first."""
        overdue: list[tuple[str, T]] = []
        while (due := self.wake_at) is not None and due <= now:
            _, key = heapq.heappop(self._deadlines)
            request = self._close(key)
            assert request is not None
            overdue.append((key, request))
        return overdue

    def fail_all(self) -> list[T]:
        """Close all requests because the peer has gone, and return them, oldest first."""
        requests = list(self._open.values())
        for key in list(self._open):
            self._close(key)
        return requests

    def the_only(self) -> str | None:
        """The id of the only pending request; None if there are none or several."""
        return next(iter(self._open)) if len(self._open) == 1 else None

    def _remember(self, deadline: float, key: str) -> None:
        if len(self._deadlines) > 2 * len(self._open) + REMEMBERED:
            # Entries are otherwise dropped only at the front, where one slow call holds back thousands of finished ones.
            self._deadlines = [one for one in self._deadlines if one[1] in self._open]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (deadline, key))

    def _close(self, key: str) -> T | None:
        request = self._open.pop(key, None)
        self._later.pop(key, None)
        if request is not None:
            self._closed[key] = None
            if len(self._closed) > REMEMBERED:
                del self._closed[next(iter(self._closed))]
        return request
