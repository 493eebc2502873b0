"""Values instead of text: the schema that a model is given, and the check of what it replied."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar, cast, get_type_hints

import msgspec

from zot.errors import OptionError

T = TypeVar("T")

ERROR_CHARS = 2_000
"""Longest description of what is wrong with a reply, as the model is told it."""

_FENCED = re.compile(r"```[A-Za-z]*\s*\n(.*?)```", re.DOTALL)


class OutputMismatchError(Exception):
    """A reply is not JSON, or not of the wanted type. The message says what is wrong, and where."""


class OutputType(Generic[T]):
    """A type that the last reply of a run has to match, as JSON."""

    def __init__(self, wanted: type[T]) -> None:
        """`wanted` is what msgspec or, once the program has imported it, pydantic can describe.

        Raises:
            OptionError: neither of them can.
        """
        try:
            self._schema, self._decode = _described(wanted)
        except Exception as error:  # what a foreign library raises for a type that it cannot describe
            name = getattr(wanted, "__name__", repr(wanted))
            raise OptionError(f"output_type: {name} cannot be expressed as JSON: {error}") from error

    def asked(self, prompt: str) -> str:
        """Return the prompt with the request for a value of this type."""
        schema = json.dumps(self._schema, ensure_ascii=False)
        return (
            f"{prompt}\n\nWhen you have the answer, end with a reply that is one JSON value and nothing else, without a code"
            f" fence. It must match this JSON Schema:\n{schema}"
        )

    def corrected(self, error: OutputMismatchError) -> str:
        """Return the prompt after a reply that does not match."""
        return (
            f"Your reply does not match the JSON Schema: {error}\nReply again with one JSON value that matches it, and"
            " nothing else."
        )

    def parsed(self, text: str) -> T:
        """Return the value in a reply; it may be in a code fence, or between words.

        Raises:
            OutputMismatchError: there is none of this type.
        """
        try:
            return cast("T", self._decode(_json_in(text)))
        except ValueError as error:  # the base of the errors of both libraries
            raise OutputMismatchError(_sentence(error)) from error


class _TypeAdapter(Protocol):
    """What is used of `pydantic.TypeAdapter`."""

    def json_schema(self) -> Mapping[str, object]: ...
    def validate_json(self, data: str, /) -> object: ...


Description = tuple[Mapping[str, object], Callable[[str], object]]
"""The schema of a type, and what makes a value of it from JSON; raises ValueError."""


def _described(wanted: object) -> Description:
    if _is_pydantic(wanted):
        return _by_pydantic(wanted)
    if isinstance(wanted, type) and issubclass(wanted, tuple) and hasattr(wanted, "_fields"):
        return _named_tuple(wanted)
    try:
        return msgspec.json.schema(wanted), msgspec.json.Decoder[object](wanted).decode
    except TypeError:
        if "pydantic" not in sys.modules:
            raise
        return _by_pydantic(wanted)  # such as a list of models


def _is_pydantic(wanted: object) -> bool:
    """Whether it is a model or a dataclass of pydantic, which msgspec would take for a plain class."""
    return hasattr(wanted, "__pydantic_core_schema__") or hasattr(wanted, "__pydantic_validator__")


def _by_pydantic(wanted: object) -> Description:
    # Not imported, only used: a type of pydantic can only come from a program that has imported it.
    adapter = cast("Callable[[object], _TypeAdapter]", sys.modules["pydantic"].TypeAdapter)(wanted)
    return adapter.json_schema(), adapter.validate_json


def _named_tuple(wanted: type) -> Description:
    """Describe a NamedTuple as an object: in an array, the model would not see the names."""
    defaults: Mapping[str, object] = getattr(wanted, "_field_defaults", {})
    fields = [
        (name, hint, defaults[name]) if name in defaults else (name, hint)
        for name, hint in get_type_hints(wanted).items()
    ]
    struct = msgspec.defstruct(wanted.__name__, fields)
    decoder = msgspec.json.Decoder(struct)

    def decode(text: str) -> object:
        return wanted(**msgspec.structs.asdict(decoder.decode(text)))

    return msgspec.json.schema(struct), decode


def _json_in(text: str) -> str:
    """Return the part of a reply that is JSON: all of it, the last code fence, or what the outermost brackets enclose."""
    text = text.strip()
    if _is_json(text):
        return text
    candidates = [found.strip() for found in reversed(_FENCED.findall(text))]
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        candidates += [text[start : end + 1]] if 0 <= start < end else []
    return next((found for found in candidates if _is_json(found)), text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _sentence(error: ValueError) -> str:
    """Return the message without links to the documentation of a library."""
    lines = [line for line in str(error).splitlines() if not line.strip().startswith("For further information")]
    return "\n".join(lines)[:ERROR_CHARS]
