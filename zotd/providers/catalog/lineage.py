"""Which of a vendor's models have a successor, judged by their names: price lists have no dates.

claude-opus-4-8   superseded by claude-opus-5-5: the same words, a higher version
gpt-4o            superseded when there is a gpt-6: more than one major version behind the highest with that first word
gpt-4o-2024-08-06 superseded by gpt-4o: a dated name of the same model
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

NEVER_BEFORE = 1_000
"""Larger numbers in a model's name are dates or sizes."""

MAJORS_KEPT = 2
"""Major versions of one first word that count as current."""

_DATE = re.compile(r"[-@](20\d{6}|20\d\d-\d\d-\d\d|\d{4})(?=$|[:-])")
_VARIANT = re.compile(r"-v\d+(:\d+)?$")
_ALIAS = re.compile(r"-latest$")
_TOKEN = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_SIZE = re.compile(r"\d+(?:\.\d+)?[bkm](?![a-z0-9])")


class Lineage(NamedTuple):
    """A model's name, taken apart."""

    vendor: str
    """What stands before the last slash."""
    words: frozenset[str]
    version: tuple[float, ...]
    is_dated: bool


def lineage(id_: str) -> Lineage:
    """Take a name apart; letters in front of a number, as in `v4` or `k3`, are no part of the version.

    Digits behind a point are decimals: grok-4.20 came before grok-4.3.
    """
    vendor, _, name = id_.lower().rpartition("/")
    name = _VARIANT.sub("", name)
    plain = _ALIAS.sub("", _DATE.sub("", name))
    sizes = _SIZE.findall(plain)
    tokens = _TOKEN.findall(_SIZE.sub("", plain))
    numbers = [float(token) for token in tokens if token[0].isdigit()]
    version = tuple(number for number in numbers if number < NEVER_BEFORE)
    words = frozenset(token for token in tokens if token.isalpha()) | frozenset(sizes)
    return Lineage(vendor, words, version, is_dated=bool(_DATE.search(name)))


def superseded(ids: Iterable[str]) -> set[str]:
    """Return those of a vendor's models that have a successor among them."""
    found = {id_: lineage(id_) for id_ in ids}
    newest: dict[tuple[str, frozenset[str]], tuple[tuple[float, ...], bool]] = {}
    majors: dict[tuple[str, str], int] = {}
    for id_, one in found.items():
        family = one.vendor, one.words
        newest[family] = max(newest.get(family, ((), False)), (one.version, not one.is_dated))
        if one.version:
            brand = one.vendor, _first_word(id_)
            majors[brand] = max(majors.get(brand, 0), int(one.version[0]))
    return {
        id_
        for id_, one in found.items()
        if (one.version, not one.is_dated) < newest[one.vendor, one.words]
        or (one.version and int(one.version[0]) <= majors[one.vendor, _first_word(id_)] - MAJORS_KEPT)
    }


def newest_first(id_: str) -> tuple[list[int], str]:
    """A key that puts names with higher version numbers first: `gpt-5.6`, `gpt-5`, `gpt-4o`."""
    numbers = [int(found) for found in re.findall(r"(?<![0-9a-z])[a-z]?([0-9]+)(?![0-9bkm])", id_.rpartition("/")[2])]
    version = [number for number in numbers if number < NEVER_BEFORE][:2]
    return [-number for number in version] + [0] * (2 - len(version)), id_


def _first_word(id_: str) -> str:
    found = _TOKEN.search(id_.lower().rpartition("/")[2])
    return found[0] if found else ""
