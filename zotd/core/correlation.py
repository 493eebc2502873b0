"""Requests that wait for an answer, without I/O and without a clock.

Each has an id that nothing else ever had, perhaps a deadline, and whatever its owner wants back with the answer. An
answer to a request that is not open (late, repeated, invented) is dropped and counted, never an error.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

REMEMBERED = 256
"""Closed requests whose late answers are told from invented ones: more than any extension answers late at once."""

T = TypeVar("T")


@dataclass(slots=True)
class Dropped:
    """Answers that nobody waited for."""

    late: int = 0
    """To a request that was answered, cancelled or had timed out."""
    unknown: int = 0
    """To a request that there never was, or that was closed long ago."""


class Correlation(Generic[T]):
    """The open requests of one peer."""

    def __init__(self, label: str) -> None:
        """`label` begins every id; it must be another one for each peer."""
        self.dropped = Dropped()
        self._label = label
        self._count = 0
        self._open: dict[str, T] = {}
        self._closed: dict[str, None] = {}  # ids only: a request may hold its answer of some megabytes
        self._deadlines: list[tuple[float, str]] = []  # a heap; ids that are not open any more are skipped
        self._later: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[T]:
        """What is open, oldest first."""
        return iter(self._open.values())

    @property
    def wake_at(self) -> float | None:
        """The next deadline; None when no open request has one."""
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
        """Wait longer for the request with this id, which is open and has a deadline that is earlier."""
        self._later[key] = deadline

    def open(self, request: T, deadline: float | None = None) -> str:
        """Begin to wait; the new request's id."""
        self._count += 1
        key = f"{self._label}-{self._count}"
        self._open[key] = request
        if deadline is not None:
            self._remember(deadline, key)
        return key

    def peek(self, key: str) -> T | None:
        """The open request with this id, which stays open."""
        return self._open.get(key)

    def answer(self, key: str) -> T | None:
        """Close the request with this id, for its answer is here; None: drop it, nobody waits for it."""
        request = self._close(key)
        if request is None:
            if key in self._closed:
                self.dropped.late += 1
            else:
                self.dropped.unknown += 1
        return request

    def was_open(self, key: str) -> bool:
        """Whether this is the id of a request that was closed not long ago."""
        return key in self._closed

    def cancel(self, key: str) -> bool:
        """Wait no longer; False when it was not open any more."""
        return self._close(key) is not None

    def expire(self, now: float) -> list[tuple[str, T]]:
        """Close what is overdue, the most overdue first."""
        overdue: list[tuple[str, T]] = []
        while (due := self.wake_at) is not None and due <= now:
            _, key = heapq.heappop(self._deadlines)
            request = self._close(key)
            assert request is not None
            overdue.append((key, request))
        return overdue

    def fail_all(self) -> list[T]:
        """Close everything, for the peer is gone; oldest first."""
        requests = list(self._open.values())
        for key in list(self._open):
            self._close(key)
        return requests

    def the_only(self) -> str | None:
        """The id of the only open request; None when there are none or several."""
        return next(iter(self._open)) if len(self._open) == 1 else None

    def _remember(self, deadline: float, key: str) -> None:
        if len(self._deadlines) > 2 * len(self._open) + REMEMBERED:
            # One slow call in front keeps the ids of thousands of fast ones behind it from being skipped.
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
