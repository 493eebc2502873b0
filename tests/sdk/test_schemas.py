"""Schemas from type hints, and the values that hints promise for the JSON that a model sends."""

import dataclasses
import enum
from typing import Annotated, Literal, NotRequired, Optional, TypedDict, Union

import pytest

from zotd.sdk.hints import parameters
from zotd.sdk.shapes import ArgumentError


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Unwritable(enum.Enum):
    HERE = complex(1)
    THERE = complex(2)


@dataclasses.dataclass
class Place:
    city: str
    country: str = "DE"
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    name: str
    children: "list[Tree]"


class Options(TypedDict):
    depth: int
    quiet: NotRequired[bool]


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
NULL = {"type": "null"}
PLACE = {
    "type": "object",
    "properties": {
        "city": STRING,
        "country": {"type": "string", "default": "DE"},
        "tags": {"type": "array", "items": STRING},
    },
    "required": ["city"],
}


def shape_of(hint):
    def tool(value):
        pass

    tool.__annotations__ = {"value": hint}
    (field,) = parameters(tool).fields
    return field.shape


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, STRING),
        (int, INTEGER),
        (float, NUMBER),
        (bool, {"type": "boolean"}),
        (None, NULL),
        (list[int], {"type": "array", "items": INTEGER}),
        (list, {"type": "array", "items": {}}),
        (dict[str, float], {"type": "object", "additionalProperties": NUMBER}),
        (tuple[int, ...], {"type": "array", "items": INTEGER}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [INTEGER, STRING], "items": {}, "minItems": 2, "maxItems": 2},
        ),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Size, {"type": "string", "enum": ["s", "l"]}),
        (Unwritable, {"type": "string", "enum": ["HERE", "THERE"]}),
        (Optional[int], {"anyOf": [INTEGER, NULL]}),  # noqa: UP045  the old way is the point
        (int | None, {"anyOf": [INTEGER, NULL]}),
        (Union[int, str], {"anyOf": [INTEGER, STRING]}),  # noqa: UP007  the old way is the point
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Annotated[int, 5], INTEGER),
        ("list[int]", {"type": "array", "items": INTEGER}),
        (Place, PLACE),
        (list[Place], {"type": "array", "items": PLACE}),
        (
            Options,
            {"type": "object", "properties": {"depth": INTEGER, "quiet": {"type": "boolean"}}, "required": ["depth"]},
        ),
        (complex, {}),
        (complex | None, {"anyOf": [{}, NULL]}),
        ("Misspelt", {}),
        (object, {}),
    ],
)
def test_a_hint_has_its_schema(hint, schema):
    assert shape_of(hint).schema == schema


def test_a_parameter_without_a_default_is_required():
    def tool(city, days: int = 3, *, unit: str = "C", place=None):
        return city, days, unit, place

    assert parameters(tool).schema() == {
        "type": "object",
        "properties": {
            "city": {},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "default": "C"},
            "place": {"default": None},
        },
        "required": ["city"],
    }


def test_a_default_of_none_lets_null_in():
    def tool(city: str = None):  # type: ignore[assignment]  # noqa: RUF013  what authors write
        return city

    assert parameters(tool).schema()["properties"] == {"city": {"anyOf": [STRING, NULL], "default": None}}


def test_a_hint_that_cannot_be_resolved_spoils_no_other():
    def tool(one: "Misspelt", two: "int"): ...  # type: ignore[name-defined]  # noqa: F821

    assert parameters(tool).schema()["properties"] == {"one": {}, "two": INTEGER}


def test_a_class_that_contains_itself_has_an_end():
    assert shape_of(Tree).schema["properties"]["children"] == {"type": "array", "items": {"type": "object"}}


def test_a_method_is_a_function_without_self():
    class Weather:
        def report(self, city: str):
            return city

    assert parameters(Weather().report).schema()["properties"] == {"city": STRING}


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def f(*args): ...", r"f\(\) takes \*args or \*\*kwargs"),
        ("def f(**kwargs): ...", r"f\(\) takes \*args or \*\*kwargs"),
        ("def f(a, /): ...", r"f\(\) has positional-only parameters"),
        ("f = print", "is not a Python function"),
    ],
)
def test_parameters_without_a_name_are_refused(source, complaint):
    names: dict[str, object] = {}
    exec(source, names)

    with pytest.raises(TypeError, match=complaint):
        parameters(names["f"])  # type: ignore[arg-type]  # what authors may try


@pytest.mark.parametrize(
    ("hint", "given", "received"),
    [
        (int, 3.0, 3),
        (float, 3, 3),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2], (1, 2)),
        (Size, "l", Size.LARGE),
        (Unwritable, "THERE", Unwritable.THERE),
        (Place, {"city": "Köln"}, Place("Köln")),
        (list[Place], [{"city": "Köln"}], [Place("Köln")]),
        (Union[Place, str], "Köln", "Köln"),  # noqa: UP007  the old way is the point
        (Optional[Size], None, None),  # noqa: UP045  the old way is the point
        (dict[str, Size], {"shirt": "s"}, {"shirt": Size.SMALL}),
        (Options, {"depth": 2}, {"depth": 2}),
    ],
)
def test_json_becomes_what_the_hint_promises(hint, given, received):
    assert shape_of(hint).convert(given, "value") == received


@pytest.mark.parametrize(
    ("hint", "given", "message"),
    [
        (int, "many", "argument value: expected an integer, got 'many'"),
        (int, True, "argument value: expected an integer, got True"),
        (int, 2.5, "argument value: expected an integer, got 2.5"),
        (bool, 1, "argument value: expected true or false, got 1"),
        (list[int], "x", "argument value: expected an array, got 'x'"),
        (list[int], [1, "x"], "argument value[1]: expected an integer, got 'x'"),
        (tuple[int, str], [1], "argument value: expected an array of 2 values, got [1]"),
        (dict[str, int], {"a": "x"}, "argument value.a: expected an integer, got 'x'"),
        (Size, "m", "argument value: expected one of 's', 'l', got 'm'"),
        (Optional[int], "x", "argument value: expected an integer or null, got 'x'"),  # noqa: UP045  the old way is the point
        (Place, {}, "argument value.city is missing: expected a string"),
        (Place, {"city": "x", "zip": 1}, "there is no argument value.zip; there are: city, country, tags"),
        (Place, [], "argument value: expected an object, got []"),
        (str, ["x" * 100], "argument value: expected a string, got ['" + "x" * 77 + "…"),
    ],
)
def test_what_does_not_fit_is_explained_to_the_model(hint, given, message):
    with pytest.raises(ArgumentError) as caught:
        shape_of(hint).convert(given, "value")

    assert str(caught.value) == message
