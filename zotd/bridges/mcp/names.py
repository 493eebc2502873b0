"""Names under which the host knows what a server offers."""

import hashlib
from collections.abc import Callable, Iterable, Mapping

NAME_CHARS = 64
"""Longest name of a tool that every vendor accepts, and of a command that the host accepts."""


def distinct(
    names: Iterable[str], usable: Callable[[str], str], *, fold: Callable[[str], str] = str
) -> Mapping[str, str]:
    """Map the server's own names to different ones that `usable` makes of them. `fold` tells which ones are alike.

    A name that is too long is cut. Such a name, and one that is already taken, ends in a digest of the server's own name, so
    that it is the same after a restart: transcripts and people refer to it.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for own in names:
        name = usable(own)
        if len(name) > NAME_CHARS or fold(name) in taken:
            digest = hashlib.sha256(own.encode()).hexdigest()[:6]
            name = f"{name[: NAME_CHARS - 7]}_{digest}"
        found[own] = name
        taken.add(fold(name))
    return found
