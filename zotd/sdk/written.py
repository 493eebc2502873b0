"""Shapes of types that JSON writes as text: paths, dates and times, UUIDs, decimal numbers.

Their modules are looked up in sys.modules, not imported: an author who uses such a type has imported its module, and
other extensions start faster without it.
"""

from __future__ import annotations

import re
import sys
from typing import Callable, NamedTuple

from .shapes import Function, Shape, misfit

DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?=\d|T\d)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
"""An ISO 8601 duration without years and months, which have no fixed length."""


class _Kind(NamedTuple):
    """A type of the standard library that JSON writes as text."""

    module: str
    name: str
    format: str
    """Value of `format` in JSON Schema, which models know."""
    expected: str
    parse: Callable[[Function, str], object]
    """Creates the value from its type and text; raises ValueError or ArithmeticError for invalid text."""


def _call(kind: Function, text: str) -> object:
    return kind(text)


def _from_iso(kind: Function, text: str) -> object:
    # Before Python 3.11 `fromisoformat` does not accept the Z that models often write.
    return kind.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)  # type: ignore[attr-defined]


def _duration(kind: Function, text: str) -> object:
    match = DURATION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    parts = match.groupdict()
    sign = -1 if parts.pop("sign") == "-" else 1
    return kind(**{unit: sign * float(amount) for unit, amount in parts.items() if amount})


def _decimal(kind: Function, text: str) -> object:
    value = kind(text)
    # Decimal accepts NaN and Infinity, which no author expects as an amount.
    if not value.is_finite():  # type: ignore[attr-defined]
        raise ValueError(text)
    return value


_KINDS = (
    _Kind("datetime", "datetime", "date-time", "a date and time such as 2026-01-31T13:45:00Z", _from_iso),
    _Kind("datetime", "date", "date", "a date such as 2026-01-31", _from_iso),
    _Kind("datetime", "time", "time", "a time such as 13:45:00", _from_iso),
    _Kind("datetime", "timedelta", "duration", "a duration such as P1DT2H30M", _duration),
    _Kind("uuid", "UUID", "uuid", "a UUID", _call),
    _Kind("decimal", "Decimal", "decimal", "a decimal number such as 12.50", _decimal),
)


def written(hint: type) -> Shape | None:
    """Return the shape of a type that JSON writes as text; None for other types."""
    paths = getattr(sys.modules.get("pathlib"), "PurePath", None)
    if paths is not None and issubclass(hint, paths):
        return Shape({"type": "string", "format": "path"}, "a path", _converter("a path", hint, _call))
    for kind in _KINDS:
        if getattr(sys.modules.get(kind.module), kind.name, None) is hint:
            schema: dict[str, object] = {"type": "string", "format": kind.format}
            return Shape(schema, kind.expected, _converter(kind.expected, hint, kind.parse))
    return None


def _converter(
    expected: str, kind: Function, parse: Callable[[Function, str], object]
) -> Callable[[object, str], object]:
    def convert(value: object, where: str) -> object:
        if parse is _decimal and type(value) in {int, float}:
            value = repr(value)  # models write both 12.5 and "12.5"
        if not isinstance(value, str):
            raise misfit(where, expected, value)
        try:
            return parse(kind, value)
        except (ValueError, ArithmeticError):
            raise misfit(where, expected, value) from None

    return convert
