"""Ranks names for completion by a typed part.

Only the first typed character decides the order. Further characters just filter the list, so that rows never move while
the user reads. The highlighted choice, which Enter takes, is chosen by the whole query: a better match still wins.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum

from zottui.choice import ListChoice


class Match(IntEnum):
    """How well a name matches; smaller is better."""

    EXACT = 0
    PREFIX = 1
    WORD = 2
    """A later word of the name begins with it: `ext` in `reload-ext`."""
    SUBSEQUENCE = 3
    """The name contains its characters in this order."""
    DESCRIPTION = 4
    """A word of the description begins with it."""


def match(choice: ListChoice, query: str) -> Match | None:
    """Return how well `choice` matches, ignoring case; None if not. A match of a query also matches its prefixes."""
    name, wanted = choice.name.casefold(), query.casefold()
    if name == wanted:
        return Match.EXACT
    if name.startswith(wanted):
        return Match.PREFIX
    if _begins_word(name, wanted):
        return Match.WORD
    if is_subsequence(wanted, name):
        return Match.SUBSEQUENCE
    return Match.DESCRIPTION if _begins_word(choice.what.casefold(), wanted) else None


def ranked(choices: Iterable[ListChoice], query: str) -> list[ListChoice]:
    """Return the matching choices: best first by the first character of the query, then by name."""
    first = query[:1]

    def place(choice: ListChoice) -> tuple[int, str, str]:
        found = match(choice, first) if first else Match.PREFIX
        # Rank an exact match of one character like a prefix, or the row would move when more is typed.
        return max(found or Match.PREFIX, Match.PREFIX), choice.name.casefold(), choice.name

    return sorted((choice for choice in choices if match(choice, query) is not None), key=place)


def best(choices: Sequence[ListChoice], query: str) -> int:
    """Return the index of the first best match, which Enter takes. At least one choice must match."""
    fits = [match(choice, query) for choice in choices]
    return min(range(len(choices)), key=lambda index: _or_last(fits[index]))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that a mistyped `name` probably means; None if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415  (imported only after a typing error)

    known = {known.casefold(): known for known in names}
    wanted = name.casefold()
    # An abbreviation is likelier than a typing error, and swapped letters are likelier than wrong ones.
    longer = sorted(known_name for known_name in known if wanted and known_name.startswith(wanted))
    found = longer or get_close_matches(wanted, known)
    swapped = [known_name for known_name in found if sorted(known_name) == sorted(wanted)]
    return known[(swapped or found)[0]] if found else None


def is_subsequence(wanted: str, text: str) -> bool:
    """Return whether `text` contains the characters of `wanted` in this order."""
    rest = iter(text)
    return all(character in rest for character in wanted)


def _begins_word(text: str, wanted: str) -> bool:
    """Return whether a word of `text` begins with `wanted`; words consist of letters and digits."""
    at = text.find(wanted)
    while at > 0 and text[at - 1].isalnum():
        at = text.find(wanted, at + 1)
    return at >= 0


def _or_last(found: Match | None) -> int:
    return len(Match) if found is None else found
