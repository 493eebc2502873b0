"""How well a path or a name fits what somebody has typed of it so far: the order of what completion offers.

A path is compared as `/folder/name`, that of a directory with a slash at its end, in lower case; so is a name that is
none, as `/name`. Where a name begins is then where a slash stands.
"""

from collections.abc import Iterable
from enum import IntEnum
from heapq import nsmallest

SCATTERED_MAX = 2_000
"""Paths that have the characters, but not in one piece, of which the best are chosen; the first ones that come. When so
many have them, whoever types has to type more anyway."""

WORDS_MAX = 8
"""Places in one name that are looked at; a name of a thousand equal letters must not cost more than others."""


class Fit(IntEnum):
    """How a path has what was typed in one piece, best first."""

    EXACT = 0
    """As its name, or as the end of the path."""
    NAME = 1
    """Its name, or the path below some directory, begins so."""
    WORD = 2
    """A word in the name begins so."""
    INSIDE = 3
    """Somewhere."""


class PathPattern:
    """What was typed, to be compared with one path after the other; each comparison is linear in the path's length."""

    def __init__(self, typed: str) -> None:
        self.text = typed.casefold()
        """As it stands in the folded paths that have it in one piece."""
        self._rooted = f"/{self.text}"
        self._backwards = self.text[::-1]

    def fit(self, path: str, folded: str) -> Fit:
        """How well it fits a path that has it in one piece; `folded` is `path.casefold()`.

        What ends with a slash, and what is empty, fits best what is in that directory.
        """
        if not self.text:
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
        """How far its characters reach in a path; None: it does not have them in their order.

        They are looked for from the end, where names are, and each as late as possible.
        """
        at, last = len(folded), -1
        for character in self._backwards:
            at = folded.rfind(character, 0, at)
            if at < 0:
                return None
            last = max(last, at)  # the first one that is found
        return last - at

    def _begins_word(self, path: str, folded: str) -> bool:
        """Whether a word of the name begins so: after what is no letter or digit, or as the `N` of `pathName` does."""
        at = folded.rfind("/", 0, -1)
        for _ in range(WORDS_MAX):
            at = folded.find(self.text, at + 1)
            if at < 0:
                break
            before = path[at - 1 : at]  # none, when folding has made the path longer
            if not before.isalnum() or (before.islower() and path[at : at + 1].isupper()):
                return True
        return False


class Ranking:
    """The best of many paths, which come in the order that those have which fit equally well."""

    def __init__(self, typed: str, limit: int) -> None:
        self._pattern = PathPattern(typed)
        self._limit = limit
        self._whole: dict[Fit, list[str]] = {fit: [] for fit in Fit}
        self._scattered: list[tuple[int, str]] = []
        """Paths that have the characters in their order, each with how far these reach."""

    def look(self, paths: Iterable[tuple[str, str]]) -> None:
        """Compare the next paths, each with its folded form; below 1 us for each."""
        pattern, text, whole, limit = self._pattern, self._pattern.text, self._whole, self._limit
        wants_scattered = sum(map(len, whole.values())) < limit and len(self._scattered) < SCATTERED_MAX
        for path, folded in paths:
            if text in folded:
                found = whole[pattern.fit(path, folded)]
                if len(found) < limit:
                    found.append(path)
            elif wants_scattered and (span := pattern.span(folded)) is not None:
                self._scattered.append((span, path))

    def best(self) -> list[str]:
        """Of what was looked at: the better ones first, and of those that are scattered the ones closer together."""
        found = [path for paths in self._whole.values() for path in paths]
        if len(found) < self._limit:
            closest = nsmallest(self._limit - len(found), self._scattered, key=lambda item: item[0])
            found += [path for _, path in closest]
        return found[: self._limit]


def ranked(typed: str, names: Iterable[str], limit: int) -> list[str]:
    """Those of a few names that fit, best first, and in their order where they fit equally well."""
    ranking = Ranking(typed, limit)
    ranking.look((f"/{name}", f"/{name.casefold()}") for name in names)
    return [path[1:] for path in ranking.best()]
