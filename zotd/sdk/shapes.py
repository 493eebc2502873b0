"""Type hints as JSON Schema, and the JSON that a model sends as the values that the hints promise.

A `Shape` is what both need to know of one hint; `hints` finds the shape of a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

Schema = dict[str, object]
JSON_SCALARS = (str, int, float, bool, type(None))


SHOWN_CHARS = 80
"""How much of a wrong value an error message repeats; the model knows the rest."""


class ArgumentError(ValueError):
    """An argument that does not fit its hint; the message is for the model."""


def misfit(where: str, expected: str, value: object) -> ArgumentError:
    """The error for a value of the wrong kind."""
    shown = repr(value)
    if len(shown) > SHOWN_CHARS:
        shown = shown[: SHOWN_CHARS - 1] + "…"
    return ArgumentError(f"argument {where}: expected {expected}, got {shown}")


class Shape:
    """Anything: every JSON value fits, and is passed on as it is."""

    expected = "anything"
    """For error messages: "expected …"."""

    def schema(self) -> Schema:
        """JSON Schema of the values that fit."""
        return {}

    def convert(self, value: object, where: str) -> object:
        """The Python value for a JSON value.

        Raises:
            ArgumentError: it does not fit; `where` tells the model which argument it was.
        """
        del where
        return value


class Scalar(Shape):
    """A string, a number, a boolean or null."""

    def __init__(self, kind: str, expected: str, fits: Callable[[object], bool]) -> None:
        self.kind = kind
        self.expected = expected
        self.fits = fits

    def schema(self) -> Schema:
        return {"type": self.kind}

    def convert(self, value: object, where: str) -> object:
        # Some models write 3.0 where an integer is asked for.
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)
        if not self.fits(value):
            raise misfit(where, self.expected, value)
        return value


ANYTHING = Shape()
NULL = Scalar("null", "null", lambda value: value is None)
SCALARS: Mapping[type, Shape] = {
    str: Scalar("string", "a string", lambda value: isinstance(value, str)),
    # bool is an int in Python, not in JSON.
    int: Scalar("integer", "an integer", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: Scalar("number", "a number", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)),
    bool: Scalar("boolean", "true or false", lambda value: isinstance(value, bool)),
    type(None): NULL,
}


class Array(Shape):
    """`list[T]`, and `tuple[T, ...]`, which Python gets as a tuple."""

    expected = "an array"

    def __init__(self, item: Shape, make: Callable[[list[object]], object] = list) -> None:
        self.item = item
        self.make = make

    def schema(self) -> Schema:
        return {"type": "array", "items": self.item.schema()}

    def convert(self, value: object, where: str) -> object:
        if not isinstance(value, list):
            raise misfit(where, self.expected, value)
        return self.make([self.item.convert(item, f"{where}[{index}]") for index, item in enumerate(value)])


class FixedArray(Shape):
    """`tuple[X, Y]`."""

    def __init__(self, items: Sequence[Shape]) -> None:
        self.items = items
        self.expected = f"an array of {len(items)} values"

    def schema(self) -> Schema:
        # `items` says nothing new beside `prefixItems`, but one large vendor refuses arrays without it.
        schemas = [item.schema() for item in self.items]
        size = len(schemas)
        return {"type": "array", "prefixItems": schemas, "items": {}, "minItems": size, "maxItems": size}

    def convert(self, value: object, where: str) -> object:
        if not isinstance(value, list) or len(value) != len(self.items):
            raise misfit(where, self.expected, value)
        return tuple(self.items[index].convert(item, f"{where}[{index}]") for index, item in enumerate(value))


class Table(Shape):
    """`dict[str, T]`."""

    expected = "an object"

    def __init__(self, item: Shape) -> None:
        self.item = item

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.item.schema()}

    def convert(self, value: object, where: str) -> object:
        if not isinstance(value, dict):
            raise misfit(where, self.expected, value)
        return {key: self.item.convert(item, f"{where}.{key}") for key, item in value.items()}


class Choice(Shape):
    """`Literal` and `Enum`: one of a few JSON scalars, each standing for a Python value."""

    def __init__(self, values: Sequence[tuple[object, object]]) -> None:
        self.values = values
        self.expected = "one of " + ", ".join(repr(word) for word, _ in values)

    def schema(self) -> Schema:
        words = [word for word, _ in self.values]
        kinds = {str(SCALARS[type(word)].schema()["type"]) for word in words if type(word) in SCALARS}
        return {"type": kinds.pop(), "enum": words} if len(kinds) == 1 else {"enum": words}

    def convert(self, value: object, where: str) -> object:
        for word, meaning in self.values:
            if type(word) is type(value) and word == value:
                return meaning
        raise misfit(where, self.expected, value)


class Either(Shape):
    """`Union` and `Optional`: the first member that fits."""

    def __init__(self, members: Sequence[Shape]) -> None:
        self.members = members
        self.expected = " or ".join(dict.fromkeys(member.expected for member in members))

    def schema(self) -> Schema:
        return {"anyOf": [member.schema() for member in self.members]}

    def convert(self, value: object, where: str) -> object:
        for member in self.members:
            try:
                return member.convert(value, where)
            except ArgumentError:
                continue
        raise misfit(where, self.expected, value)


class Described(Shape):
    """`Annotated[T, "text"]`."""

    def __init__(self, shape: Shape, text: str) -> None:
        self.shape = shape
        self.text = text
        self.expected = shape.expected

    def schema(self) -> Schema:
        return {**self.shape.schema(), "description": self.text}

    def convert(self, value: object, where: str) -> object:
        return self.shape.convert(value, where)


class Field(NamedTuple):
    """One member of a record: a parameter, or a field of a TypedDict or dataclass."""

    name: str
    shape: Shape
    required: bool
    default: object = None
    """Of a field that is not required. The schema shows it if JSON has such a value; `...` stands for none to show."""

    def schema(self) -> Schema:
        """The member's schema, with its default."""
        schema = self.shape.schema()
        default = self.default.value if isinstance(self.default, Enum) else self.default
        if self.required or (default is None and not self.accepts_null()) or not is_json(default):
            return schema
        return {**schema, "default": default}

    def accepts_null(self) -> bool:
        """Whether null fits."""
        try:
            self.shape.convert(None, self.name)
        except ArgumentError:
            return False
        return True


class Record(Shape):
    """A TypedDict, a dataclass, or the parameters of a function."""

    expected = "an object"

    def __init__(self, fields: Sequence[Field], make: Callable[..., object] = dict) -> None:
        self.fields = fields
        self.make = make

    def schema(self) -> Schema:
        required = [field.name for field in self.fields if field.required]
        schema: Schema = {"type": "object", "properties": {field.name: field.schema() for field in self.fields}}
        return {**schema, "required": required} if required else schema

    def convert(self, value: object, where: str) -> object:
        if not isinstance(value, dict):
            raise misfit(where, self.expected, value)
        return self.make(**self.members(value, where + "."))

    def members(self, value: Mapping[str, object], prefix: str = "") -> dict[str, object]:
        """The given members, converted.

        Raises:
            ArgumentError: a member is missing, unknown, or does not fit.
        """
        shapes = {field.name: field.shape for field in self.fields}
        known = ", ".join(shapes) or "none"
        for name in value:
            if name not in shapes:
                raise ArgumentError(f"there is no argument {prefix + name}; there are: {known}")
        for field in self.fields:
            if field.required and field.name not in value:
                raise ArgumentError(f"argument {prefix + field.name} is missing: expected {field.shape.expected}")
        return {name: shapes[name].convert(item, prefix + name) for name, item in value.items()}


def is_json(value: object) -> bool:
    """Whether JSON has this very value (no tuples, no objects)."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    return type(value) in JSON_SCALARS
