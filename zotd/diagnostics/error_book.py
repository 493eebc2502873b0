"""Which errors of a server are new, without I/O.

    now      what the server has said last of each file, for its text as it is
    told     what somebody was told, or what was there before anybody has changed the file

An error is known by its text and not by its line, because an edit moves those below it. So of two equal errors in a file one
is new if there was one before; the one in the changed lines is taken for it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct

MOST_ERRORS = 500
"""Errors that are kept of one file. A server that has more to say about it is not read by anybody."""

MESSAGE_CHARS = 300
"""Longest text of one error."""


def one_line(text: str) -> str:
    """Return the text as one line of at most `MESSAGE_CHARS`."""
    return " ".join(text[: 4 * MESSAGE_CHARS].split())[:MESSAGE_CHARS]


class FoundError(Struct, frozen=True):
    """An error in a file."""

    path: str
    line: int
    """From 1, as `column`."""
    column: int
    message: str
    """One line."""
    source: str
    """Program and code, such as `pyright reportCallIssue`."""

    @property
    def identity(self) -> tuple[str, str]:
        """What does not change when the lines above it do."""
        return self.message, self.source


class LineSpan(Struct, frozen=True):
    """Lines of a file, both ends included."""

    first: int
    last: int

    def has(self, line: int) -> bool:
        """Return whether the line is one of them."""
        return self.first <= line <= self.last


class ErrorBook:
    """The errors that one server has found."""

    def __init__(self) -> None:
        self._answered: dict[str, list[FoundError]] = {}
        self._published: dict[str, list[FoundError]] = {}
        self._told: dict[str, Counter[tuple[str, str]]] = {}

    def answered(self, path: str, errors: Iterable[FoundError]) -> None:
        """Note what the server has answered about a file."""
        self._answered[path] = list(errors)[:MOST_ERRORS]

    def published(self, path: str, errors: Iterable[FoundError]) -> None:
        """Note what the server has told about a file by itself; some do both, about different things."""
        self._published[path] = list(errors)[:MOST_ERRORS]

    def changed(self, path: str) -> None:
        """The file has another text, so what the server has said of it does not count any more."""
        self._answered.pop(path, None)
        self._published.pop(path, None)

    def knows(self, path: str) -> bool:
        """Return whether there is something to compare the errors of the file with."""
        return path in self._told

    def settle(self, path: str) -> None:
        """Take what there is in a file for known, if nothing was known of it."""
        self._told.setdefault(path, Counter(error.identity for error in self._now(path)))

    def forget(self, path: str) -> None:
        """The server is not asked about this file any more."""
        self.changed(path)
        self._told.pop(path, None)

    def forget_all(self) -> None:
        """The server has ended. What was told stays told."""
        self._answered.clear()
        self._published.clear()

    def take_news(self, path: str, span: LineSpan) -> list[FoundError]:
        """Return the errors that nobody was told of, those of `path` first, and take them for told.

        `span`: the lines of `path` that were changed.
        """
        found: list[FoundError] = []
        others = sorted((self._answered.keys() | self._published.keys()) - {path})
        for each in (path, *others):
            now = self._now(each)
            found += _beyond(now, self._told.get(each, Counter()), span if each == path else None)
            self._told[each] = Counter(error.identity for error in now)
        return found

    def _now(self, path: str) -> list[FoundError]:
        both = chain(self._answered.get(path, ()), self._published.get(path, ()))
        return sorted(dict.fromkeys(both), key=lambda error: (error.line, error.column))


def _beyond(now: Sequence[FoundError], told: Counter[tuple[str, str]], span: LineSpan | None) -> list[FoundError]:
    """Return the errors of which there are more than were told, in their order."""
    count = Counter(error.identity for error in now)
    wanted = {identity: number - told[identity] for identity, number in count.items() if number > told[identity]}
    chosen: set[FoundError] = set()
    for error in sorted(now, key=lambda error: span is not None and not span.has(error.line)):
        if wanted.get(error.identity, 0) > 0:
            wanted[error.identity] -= 1
            chosen.add(error)
    return [error for error in now if error in chosen]


def changed_lines(before: str, after: str) -> LineSpan:
    """Return the lines of `after` that are not as in `before`: all between the first and the last change."""
    old, new = before.split("\n"), after.split("\n")
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    tail = next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)
    return LineSpan(head + 1, max(head + 1, len(new) - tail))
