"""Glob patterns, matched name by name.

`fnmatch` translates each name of a pattern to an expression that cannot backtrack without end, however hostile the pattern
is. A regular expression for a whole path could, and would block the daemon.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence

ALTERNATIVES = 100
"""Limit of patterns that the braces of one glob expand to."""

Part = Callable[[str], object] | None
"""Matches one name of a path; None is `**`, any number of folders."""


class BadGlobError(ValueError):
    """An invalid glob pattern; the message is one sentence."""


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Compile a glob for relative paths: `*` `?` `[a-z]` within a name, `**` for any number of folders, `{a,b}`.

    Raises:
        BadGlobError: the braces expand to too many patterns.
    """
    alternatives = [parts_of(plain) for plain in _without_braces(pattern)]
    return lambda path: any(matches(parts, path.split("/")) for parts in alternatives)


def parts_of(pattern: str) -> list[Part]:
    """Split a pattern without braces at its slashes. A final `**` matches everything inside, not the folder itself."""
    names = pattern.split("/")
    if names[-1] == "**":
        names.append("*")
    return [None if name == "**" else re.compile(fnmatch.translate(name)).match for name in names]


def matches(parts: Sequence[Part], names: Sequence[str]) -> bool:
    """Return True if the names of a path match the whole pattern.

    Tracks all possible positions in the pattern at once instead of backtracking, so the time is bounded.
    """
    if len(parts) == 2 and parts[0] is None and parts[1]:  # fast path: most patterns are `**/name`
        return bool(parts[1](names[-1]))
    places = _passed({0}, parts)
    for name in names:
        reached: set[int] = set()
        for place in places:
            part = parts[place] if place < len(parts) else _nothing
            if part is None:
                reached.add(place)
            elif part(name):
                reached.add(place + 1)
        places = _passed(reached, parts)
    return len(parts) in places


def _nothing(_: str) -> None:
    """Match nothing: the part after the end of a pattern."""


def _passed(places: set[int], parts: Sequence[Part]) -> set[int]:
    """Add the positions after each `**`, which may match no folder at all."""
    for place in tuple(places):
        following = place
        while following < len(parts) and parts[following] is None:
            following += 1
            places.add(following)
    return places


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def _without_braces(pattern: str) -> list[str]:
    """Expand `{a,b}`, innermost braces first. Braces without a comma are ordinary characters."""
    plain: list[str] = []
    waiting = [pattern]
    while waiting:
        current = waiting.pop()
        braces = _BRACES.search(current)
        if braces is None:
            plain.append(current)
        else:
            choices = braces[1].split(",")
            waiting += [current[: braces.start()] + choice + current[braces.end() :] for choice in choices]
        if len(plain) + len(waiting) > ALTERNATIVES:
            raise BadGlobError(f"the braces of {pattern} stand for more than {ALTERNATIVES} patterns; use fewer")
    return plain
