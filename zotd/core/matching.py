"""Fuzzy matching of paths and names against typed text; determines the order of completions.

A path is compared in lower case as `/folder/name`, a directory with a slash at its end, any other name as `/name`. A
name then begins after every slash, the first one included.
"""

from collections.abc import Iterable
from enum import IntEnum
from heapq import nsmallest

SCATTERED_MAX = 2_000
"""Number of scattered matches that are collected and ranked, first come first served. A query with this many is too
short for a useful ranking anyway."""

WORDS_MAX = 8
"""Number of places in a name that are checked for the start of a word. Bounds the cost of repetitive names."""


class Fit(IntEnum):
    """How a path contains the typed text contiguously, best first."""

    EXACT = 0
    """The text is the name, or the end of the path."""
    NAME = 1
    """The name, or the path below some directory, begins with the text."""
    WORD = 2
    """A word in the name begins with the text."""
    INSIDE = 3
    """The text occurs anywhere else."""


class PathPattern:
    """Typed text, prepared for comparing with many paths. Each comparison is linear in the length of the path."""

    def __init__(self, typed: str) -> None:
        self.text = typed.casefold()
        """The typed text, case-folded."""
        self._rooted = f"/{self.text}"
        self._backwards = self.text[::-1]

    def fit(self, path: str, folded: str) -> Fit:
        """Return how well the text matches a path that contains it; `folded` is `path.casefold()`.

        If the text is empty or ends with a slash, direct children of that directory match best.
        """
        if not self.text:  # entries of the top directory come first
            return Fit.INSIDE if "/" in folded[1:-1] else Fit.NAME
        at = folded.rfind(self._rooted)
        if at >= 0:
            rest = folded[at + len(self._rooted) :]
            if rest in {"", "/"}:
                return Fit.EXACT
            if "/" not in rest[:-1]:
                return Fit.NAME
        return Fit.WORD if self._begins_word(path, folded) else Fit.INSIDE

    def span(self, folded: str) -> int | None:
        """Return the distance from the first to the last matched character; None if they are not all there in order.

        Searches backwards, because names are at the end, and matches each character as late as possible.
        """
        at, last = len(folded), -1
        for character in self._backwards:
            at = folded.rfind(character, 0, at)
            if at < 0:
                return None
            last = max(last, at)  # keeps the position of the first match, which is the last typed character
        return last - at

    def _begins_word(self, path: str, folded: str) -> bool:
        """Whether a word of the name begins with the text: after a separator, or at the `N` of `pathName`."""
        at = folded.rfind("/", 0, -1)
        for _ in range(WORDS_MAX):
            at = folded.find(self.text, at + 1)
            if at < 0:
                break
            before = path[at - 1 : at]  # empty if folding has made the path longer
            if not before.isalnum() or (before.islower() and path[at : at + 1].isupper()):
                return True
        return False


class Ranking:
    """Collects the best of many paths. Paths that match equally well keep the order in which they were added."""

    def __init__(self, typed: str, limit: int) -> None:
        self._pattern = PathPattern(typed)
        self._limit = limit
        self._whole: dict[Fit, list[str]] = {fit: [] for fit in Fit}
        self._scattered: list[tuple[int, str]] = []
        """Paths that contain the characters in order but not contiguously, each with its span."""

    def look(self, paths: Iterable[tuple[str, str]]) -> None:
        """Compare more paths, each with its folded form. Takes less than 1 us per path."""
        pattern, text, whole, limit = self._pattern, self._pattern.text, self._whole, self._limit
        # A scattered match is never ranked before a contiguous one, so the search for them stops when enough are found.
        wants_scattered = sum(map(len, whole.values())) < limit and len(self._scattered) < SCATTERED_MAX
        for path, folded in paths:
            if text in folded:
                found = whole[pattern.fit(path, folded)]
                if len(found) < limit:
                    found.append(path)
            elif wants_scattered and (span := pattern.span(folded)) is not None:
                self._scattered.append((span, path))

    def best(self) -> list[str]:
        """Return the best paths: contiguous matches by fit, then scattered ones with the shortest span first."""
        found = [path for paths in self._whole.values() for path in paths]
        if len(found) < self._limit:
            closest = nsmallest(self._limit - len(found), self._scattered, key=lambda item: item[0])
            found += [path for _, path in closest]
        return found[: self._limit]


def ranked(typed: str, names: Iterable[str], limit: int) -> list[str]:
    """Return the matching ones of a few names, best first; equal ones keep their order."""
    ranking = Ranking(typed, limit)
    ranking.look((f"/{name}", f"/{name.casefold()}") for name in names)
    return [path[1:] for path in ranking.best()]
