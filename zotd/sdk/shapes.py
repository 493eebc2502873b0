"""JSON Schemas of type hints, and the conversion of JSON values to the hinted Python values.

A `Shape` is both for one hint; `hints` finds the shape of a hint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Callable, NamedTuple

# `...` counts as an explicit Any for mypy. The parameters of an author's function are unknown here.
Function = Callable[..., object]  # type: ignore[explicit-any]  # there is no other way to write it before Python 3.10

Schema = dict[str, object]

JSON_SCALARS = (str, int, float, bool, type(None))

SHOWN_CHARS = 80
"""Longest excerpt of a wrong value in an error message; the model knows the whole value."""


class ArgumentError(ValueError):
    """An argument that does not fit its hint; the message is for the model."""


class Shape(NamedTuple):
    """The JSON that a hint accepts, and its conversion."""

    schema: Schema
    expected: str
    """Completes the error message "expected …"."""
    convert: Callable[[object, str], object]
    """Converts a JSON value to the Python value. The text names the argument. Raises `ArgumentError`."""
    undescribed: tuple[str, ...] = ()
    """Unknown hints in it, for which the model may send anything."""


class Field(NamedTuple):
    """One member of a record: a parameter, or a field of a class."""

    name: str
    shape: Shape
    required: bool
    default: object = ...
    """Part of the schema if JSON can represent it; `...` if there is no default."""

    def schema(self) -> Schema:
        """Return the member's schema, with its default."""
        default = self.default.value if isinstance(self.default, Enum) else self.default
        return {**self.shape.schema, "default": default} if is_json(default) else self.shape.schema


class ObjectShape:
    """The members of an object: the parameters of a function, or the fields of a class."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = fields

    def schema(self) -> Schema:
        """Return the JSON Schema of the object."""
        required = [field.name for field in self.fields if field.required]
        schema: Schema = {"type": "object", "properties": {field.name: field.schema() for field in self.fields}}
        return {**schema, "required": required} if required else schema

    def undescribed(self) -> dict[str, str]:
        """Return the members that the schema does not fully describe, each with its unknown hints."""
        return {field.name: ", ".join(field.shape.undescribed) for field in self.fields if field.shape.undescribed}

    def members(self, value: Mapping[str, object], prefix: str = "") -> dict[str, object]:
        """Convert the given members; missing optional ones are left to the function's defaults.

        Raises:
            ArgumentError: a member is missing, unknown, or does not fit.
        """
        shapes = {field.name: field.shape for field in self.fields}
        # An unknown name is an error: a misspelt optional argument would otherwise be ignored silently.
        for name in value:
            if name not in shapes:
                raise ArgumentError(f"there is no argument {prefix}{name}; there are: {', '.join(shapes) or 'none'}")
        for field in self.fields:
            if field.required and field.name not in value:
                raise ArgumentError(f"argument {prefix}{field.name} is missing: expected {field.shape.expected}")
        return {name: shapes[name].convert(item, prefix + name) for name, item in value.items()}


def misfit(where: str, expected: str, value: object) -> ArgumentError:
    """Build the error for a value of the wrong type."""
    shown = repr(value)
    if len(shown) > SHOWN_CHARS:
        shown = shown[: SHOWN_CHARS - 1] + "…"
    return ArgumentError(f"argument {where}: expected {expected}, got {shown}")


def is_json(value: object) -> bool:
    """Return True if JSON represents exactly this value (no tuples, no objects)."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    return type(value) in JSON_SCALARS


def accepts_null(shape: Shape) -> bool:
    """Return True if the shape accepts null."""
    try:
        shape.convert(None, "")
    except ArgumentError:
        return False
    return True


def _scalar(kind: str, expected: str, *types: type) -> Shape:
    def convert(value: object, where: str) -> object:
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)  # some models write 3.0
        # Compared by exact type, because bool is a subclass of int in Python but not in JSON.
        if type(value) not in types:
            raise misfit(where, expected, value)
        return value

    return Shape({"type": kind}, expected, convert)


ANYTHING = Shape({}, "anything", lambda value, _: value)
NULL = _scalar("null", "null", type(None))
SCALARS: Mapping[type, Shape] = {
    str: _scalar("string", "a string", str),
    int: _scalar("integer", "an integer", int),
    float: _scalar("number", "a number", int, float),
    bool: _scalar("boolean", "true or false", bool),
    type(None): NULL,
}


def unknown(name: str) -> Shape:
    """Return the shape of an unknown hint, which accepts anything."""
    return ANYTHING._replace(undescribed=(name,))


def array(item: Shape, make: Callable[[list[object]], object] = list) -> Shape:
    """Return the shape of `list[T]`, or with `make` of `tuple[T, ...]`, `set[T]` or `frozenset[T]`."""

    def convert(value: object, where: str) -> object:
        if not isinstance(value, list):
            raise misfit(where, "an array", value)
        members = [item.convert(member, f"{where}[{index}]") for index, member in enumerate(value)]
        try:
            return make(members)
        except TypeError:  # an array or an object in a set
            raise misfit(where, "an array of plain values", value) from None

    schema: Schema = {"type": "array", "items": item.schema}
    if make in {set, frozenset}:
        schema["uniqueItems"] = True
    return Shape(schema, "an array", convert, item.undescribed)


def fixed_array(items: Sequence[Shape]) -> Shape:
    """Return the shape of `tuple[X, Y]`."""
    size = len(items)
    expected = f"an array of {size} values"

    def convert(value: object, where: str) -> object:
        if not isinstance(value, list) or len(value) != size:
            raise misfit(where, expected, value)
        return tuple(item.convert(member, f"{where}[{n}]") for n, (item, member) in enumerate(zip(items, value)))

    schemas = [item.schema for item in items]
    # `items` is redundant beside `prefixItems`, but some model APIs refuse arrays without it.
    schema: Schema = {"type": "array", "prefixItems": schemas, "items": {}, "minItems": size, "maxItems": size}
    return Shape(schema, expected, convert, _undescribed(items))


def table(item: Shape, key: Shape) -> Shape:
    """Return the shape of `dict[K, T]`. JSON keys are text, which `key` converts."""

    def convert(value: object, where: str) -> object:
        if not isinstance(value, dict):
            raise misfit(where, "an object", value)
        return {
            key.convert(name, f"{where}.{name}"): item.convert(one, f"{where}.{name}") for name, one in value.items()
        }

    schema: Schema = {"type": "object", "additionalProperties": item.schema}
    return Shape(schema, "an object", convert, _undescribed([key, item]))


def whole_number_name() -> Shape:
    """Return the shape of the key in `dict[int, T]`, which JSON writes as text."""

    def convert(value: object, where: str) -> object:
        try:
            return int(str(value))
        except ValueError:
            raise misfit(where, "a whole number as its name", value) from None

    return Shape({"type": "string"}, "a whole number as its name", convert)


def choice(values: Sequence[tuple[object, object]]) -> Shape:
    """Return the shape of `Literal` or `Enum`, given pairs of a JSON scalar and the Python value."""
    expected = "one of " + ", ".join(repr(word) for word, _ in values)

    def convert(value: object, where: str) -> object:
        for word, meaning in values:
            # 1 == True in Python, but they are different choices in JSON.
            if type(word) is type(value) and word == value:
                return meaning
        raise misfit(where, expected, value)

    words = [word for word, _ in values]
    kinds = {str(SCALARS[type(word)].schema["type"]) for word in words if type(word) in SCALARS}
    return Shape({"type": kinds.pop(), "enum": words} if len(kinds) == 1 else {"enum": words}, expected, convert)


def either(members: Sequence[Shape]) -> Shape:
    """Return the shape of `Union` or `Optional`, which converts by the first member that fits."""
    expected = " or ".join(dict.fromkeys(member.expected for member in members))

    def convert(value: object, where: str) -> object:
        # In the declared order, so that `int | str` keeps numbers as numbers.
        for member in members:
            try:
                return member.convert(value, where)
            except ArgumentError:  # noqa: PERF203  a handful of members
                continue
        raise misfit(where, expected, value)

    return Shape({"anyOf": [member.schema for member in members]}, expected, convert, _undescribed(members))


def described(shape: Shape, text: str) -> Shape:
    """Return the shape of `Annotated[T, "text"]`."""
    return shape._replace(schema={**shape.schema, "description": text})


def instance(record: ObjectShape, make: Function) -> Shape:
    """Return the shape of a class with fields; `make` gets the members by name."""

    def convert(value: object, where: str) -> object:
        if not isinstance(value, dict):
            raise misfit(where, "an object", value)
        return make(**record.members(value, where + "."))

    return Shape(record.schema(), "an object", convert, _undescribed([field.shape for field in record.fields]))


def again(convert: Callable[[object, str], object]) -> Shape:
    """Return the shape of a class inside itself. Its schema would be infinite, so it only asks for an object."""
    return Shape({"type": "object"}, "an object", convert)


def _undescribed(members: Sequence[Shape]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for member in members for name in member.undescribed))
