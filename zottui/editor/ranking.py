"""Which of many names somebody means who has typed a piece of one.

The order of a list is decided by the first character that is typed, and never changes while more is typed or deleted:
rows only leave and come back. What Enter takes is decided anew by every character, and highlighted where it stands.
So nothing jumps under the eye, and a better match still wins.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum

from zottui.choice import ListChoice


class Match(IntEnum):
    """How a name fits; the smaller, the better."""

    EXACT = 0
    PREFIX = 1
    WORD = 2
    """A word inside begins with it: `ext` in `reload-ext`."""
    SUBSEQUENCE = 3
    """Its characters are there in this order."""
    DESCRIPTION = 4
    """A word of the description begins with it."""


def match(choice: ListChoice, query: str) -> Match | None:
    """How `choice` fits, in whatever case; None: not at all. Whoever fits a query fits each beginning of it."""
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
    """Those that fit, best first as far as the first character tells, then by name."""
    first = query[:1]

    def place(choice: ListChoice) -> tuple[int, str, str]:
        found = match(choice, first) if first else Match.PREFIX
        # A name of one character is no better for being typed in full: it would move when more is typed.
        return max(found or Match.PREFIX, Match.PREFIX), choice.name.casefold(), choice.name

    return sorted((choice for choice in choices if match(choice, query) is not None), key=place)


def best(choices: Sequence[ListChoice], query: str) -> int:
    """The index of the one that Enter takes: the first of those that fit best. There must be one that fits."""
    fits = [match(choice, query) for choice in choices]
    return min(range(len(choices)), key=lambda index: _or_last(fits[index]))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that was probably meant by `name`, which is none of them."""
    from difflib import get_close_matches  # noqa: PLC0415  (only a typing error has to pay for it)

    known = {known.casefold(): known for known in names}
    wanted = name.casefold()
    longer = sorted(known_name for known_name in known if wanted and known_name.startswith(wanted))
    found = longer or get_close_matches(wanted, known)
    swapped = [known_name for known_name in found if sorted(known_name) == sorted(wanted)]
    return known[(swapped or found)[0]] if found else None


def is_subsequence(wanted: str, text: str) -> bool:
    """Whether the characters of `wanted` are all in `text`, in this order."""
    rest = iter(text)
    return all(character in rest for character in wanted)


def _begins_word(text: str, wanted: str) -> bool:
    """Whether some word of `text` begins with `wanted`; words are what letters and digits make."""
    at = text.find(wanted)
    while at > 0 and text[at - 1].isalnum():
        at = text.find(wanted, at + 1)
    return at >= 0


def _or_last(found: Match | None) -> int:
    return len(Match) if found is None else found
