"""Lengths of time as people type and read them: `90s`, `30m`, `1h30m`, `2d`."""

import re

UNITS = {"d": 24 * 3600, "h": 3600, "m": 60, "s": 1}

MAX_DIGITS = 8
"""Of a number, so that none is too large to be added up."""

_FORM = re.compile(rf"(?:[0-9]{{1,{MAX_DIGITS}}}[dhms])+")
_PART = re.compile(r"([0-9]+)([dhms])")


def read_interval(text: str) -> int | None:
    """Return the seconds of such a text; None: it is none."""
    if _FORM.fullmatch(text) is None:
        return None
    return sum(int(number) * UNITS[unit] for number, unit in _PART.findall(text))


def interval_words(seconds: int) -> str:
    """Return the shortest such text for these seconds, which are not negative."""
    words = ""
    for unit, size in UNITS.items():
        number, seconds = divmod(seconds, size)
        words += f"{number}{unit}" if number else ""
    return words or "0s"
