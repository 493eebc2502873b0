"""Arguments that the SDK for TypeScript describes and checks."""

import json

import pytest

from tests.npm.packages import INSTALL_S
from zotd.testing.ext_driver import text_of

pytestmark = pytest.mark.timeout(INSTALL_S + 60)

SOURCE = """
    const args = {
      city: arg.string("a name"),
      days: arg.optional(arg.integer(), 3),
      unit: arg.optional(arg.oneOf(["C", "F"])),
      at: arg.optional(arg.object({ x: arg.number(), y: arg.optional(arg.number(), 0) })),
      tags: arg.optional(arg.array(arg.boolean())),
      more: arg.optional(arg.anything("what you like")),
    };
    ext.tool("echo", { description: "", args }, (args) => args);
    """


@pytest.fixture
def language():
    """What checks arguments does not depend on the program that runs it."""
    return "javascript"


@pytest.fixture
def driver(start_program):
    """An extension with a tool that returns its arguments."""
    return start_program(python="", typescript=SOURCE)


def test_a_description_is_a_schema(driver):
    (tool,) = driver.registrations
    number = {"type": "number"}
    assert tool["schema"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "a name"},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "at": {"type": "object", "properties": {"x": number, "y": {**number, "default": 0}}, "required": ["x"]},
            "tags": {"type": "array", "items": {"type": "boolean"}},
            "more": {"description": "what you like"},
        },
        "required": ["city"],
    }


def test_arguments_that_fit_reach_the_function(driver):
    def echo(**args):
        return json.loads(text_of(driver.call_tool("echo", **args)))

    assert echo(city="Köln") == {"city": "Köln", "days": 3}
    assert echo(city="Köln", days=None, unit=None) == {"city": "Köln", "days": 3}
    whole = {"city": "", "days": 0, "unit": "F", "at": {"x": 1.5, "y": 2}, "tags": [True], "more": [{"a": None}]}
    assert echo(**whole) == whole
    assert echo(city="Köln", at={"x": 1})["at"] == {"x": 1, "y": 0}


def test_what_does_not_fit_is_explained_to_the_model(driver):
    def complaint(**args):
        answer = driver.call_tool("echo", **args)
        assert answer["is_error"] is True
        return text_of(answer)

    assert complaint() == "argument city is missing: expected a string"
    assert complaint(city=["x" * 100]) == 'argument city: expected a string, got ["' + "x" * 77 + "…"
    assert complaint(city="x", days=2.5) == "argument days: expected an integer, got 2.5"
    assert complaint(city="x", days=True) == "argument days: expected an integer, got true"
    assert complaint(city="x", unit="K") == 'argument unit: expected one of "C", "F", got "K"'
    assert complaint(city="x", at=[]) == "argument at: expected an object, got []"
    assert complaint(city="x", at={}) == "argument at.x is missing: expected a number"
    assert complaint(city="x", tags=[True, 1]) == "argument tags[1]: expected true or false, got 1"
    assert complaint(city="x", at={"x": 1, "z": 1}) == "there is no argument at.z; there are: x, y"
    names = "city, days, unit, at, tags, more"
    assert complaint(city="x", toString=1) == f"there is no argument toString; there are: {names}"
    assert driver.log() == ""
