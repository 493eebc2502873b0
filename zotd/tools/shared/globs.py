"""Glob patterns, matched name by name.

`fnmatch` makes an expression of each name of a pattern, one that cannot run away however hostile the pattern is: a
regular expression for a whole path could, and would hold up the daemon.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence

ALTERNATIVES = 100
"""Most patterns that the braces of one glob may stand for."""

Part = Callable[[str], object] | None
"""Matches one name of a path; None stands for `**`, any number of folders."""


class BadGlobError(ValueError):
    """A glob pattern that means nothing; the message is one sentence."""


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a relative path matches: `*` `?` `[a-z]` within a name, `**` any number of folders, `{a,b}`.

    Braces that stand for too many patterns raise `BadGlobError`.
    """
    alternatives = [parts_of(plain) for plain in _without_braces(pattern)]
    return lambda path: any(matches(parts, path.split("/")) for parts in alternatives)


def parts_of(pattern: str) -> list[Part]:
    """A pattern without braces, cut at its slashes; `**` at the end is everything inside, not the folder itself."""
    names = pattern.split("/")
    if names[-1] == "**":
        names.append("*")
    return [None if name == "**" else re.compile(fnmatch.translate(name)).match for name in names]


def matches(parts: Sequence[Part], names: Sequence[str]) -> bool:
    """Whether the names of a path match the whole pattern.

    Follows all the places in the pattern that the names so far lead to at once: no backtracking.
    """
    if len(parts) == 2 and parts[0] is None and parts[1]:  # `**/name` is what most patterns are
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
    """What follows a pattern's end."""


def _passed(places: set[int], parts: Sequence[Part]) -> set[int]:
    """`places`, and those behind each `**`, which may stand for no folder at all."""
    for place in tuple(places):
        following = place
        while following < len(parts) and parts[following] is None:
            following += 1
            places.add(following)
    return places


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def _without_braces(pattern: str) -> list[str]:
    """The patterns that `{a,b}` stands for, innermost braces first; braces without a comma are ordinary."""
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
