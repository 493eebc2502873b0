"""Names of extensions, and validation of registrations."""

import pytest

from zotd.core.ports import Replay
from zotd.core.registry import (
    Conflict,
    NameClaim,
    command_fault,
    exposure_of,
    full_schema,
    replay_of,
    resolve,
    tool_fault,
)
from zotd.wire.ext import RegisterCommand, RegisterTool


def claims(*pairs):
    return [NameClaim(owner, name, f"{owner}'s {name}") for owner, name in pairs]


def test_the_first_in_load_order_gets_a_name_and_others_a_qualified_one():
    names = resolve(claims(("a", "hello"), ("b", "hello"), ("b", "bye")), reserved=())
    assert list(names.winners) == ["hello", "bye"]
    assert [names.find(name).value for name in ("hello", "b:hello", "a:hello", "bye")] == [  # type: ignore[union-attr]  # None fails
        *["a's hello", "b's hello", "a's hello", "b's bye"]
    ]
    assert names.find("c:hello") is None
    assert names.conflicts == (Conflict("hello", winner="a", loser="b"),)


def test_built_in_names_win():
    names = resolve(claims(("a", "read"), ("b", "read")), reserved=["read"])
    assert names.winners == {}
    assert names.find("read") is None
    assert names.find("b:read") is not None
    assert names.conflicts == (Conflict("read", "zot", "a"), Conflict("read", "zot", "b"))


def test_names_that_people_type_ignore_case():
    names = resolve(claims(("Notes", "Hello"), ("b", "hello")), reserved=["HELP"], fold=str.casefold)
    assert names.find("HELLO") == NameClaim("Notes", "Hello", "Notes's Hello")
    assert names.find("notes:hello") == names.find("hello")
    assert names.conflicts == (Conflict("hello", "Notes", "b"),)


@pytest.mark.parametrize(
    ("tool", "fault"),
    [
        (RegisterTool("weather"), None),
        (RegisterTool("weather", schema={}), None),
        (RegisterTool("a" * 64, schema={"type": "object", "properties": {"x": True}, "required": ["x"]}), None),
        (RegisterTool("w", exposure="codemode"), None),
        (RegisterTool("a" * 65), "a name must have 1 to 64 letters, digits, _ and -"),
        (RegisterTool(""), "a name must have 1 to 64 letters, digits, _ and -"),
        (RegisterTool("a b"), "a name must have 1 to 64 letters, digits, _ and -"),
        (RegisterTool("w", exposure="secret"), 'unknown exposure "secret"'),
        (
            RegisterTool("w", schema={"type": "string"}),
            "its schema does not describe an object; arguments are always one",
        ),
        (
            RegisterTool("w", schema={"properties": ["city"]}),
            "its schema has `properties` that are not an object of schemas",
        ),
        (
            RegisterTool("w", schema={"properties": {"city": "string"}}),
            "its schema has `properties` that are not an object of schemas",
        ),
        (
            RegisterTool("w", schema={"required": "city"}),
            "its schema has a `required` that is not a list of names",
        ),
    ],
)
def test_a_tool_that_vendors_would_refuse_is_refused(tool, fault):
    assert tool_fault(tool) == fault


@pytest.mark.parametrize(
    ("name", "is_fine"),
    [
        ("hello", True),
        ("a:b", True),
        ("", False),
        ("/a", False),
        ("a b", False),
        ("a\x1b]0;", False),
        ("a\u202e", False),
    ],
)
def test_a_command_name_is_one_word(name, is_fine):
    assert (command_fault(RegisterCommand(name)) is None) == is_fine


def test_a_schema_is_completed_for_vendors():
    assert full_schema(None) == {"type": "object", "properties": {}}
    given = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    assert full_schema(given) == {"type": "object", **given}


@pytest.mark.parametrize(("word", "replay"), [("safe", Replay.SAFE), ("never", Replay.NEVER), ("always", Replay.NEVER)])
def test_an_unknown_replay_class_is_treated_as_never(word, replay):
    assert replay_of(RegisterTool("w", replay=word)) is replay


@pytest.mark.parametrize(
    ("tool", "exposure"),
    [
        (RegisterTool("w"), "direct"),
        (RegisterTool("w", deferred=True), "deferred"),
        (RegisterTool("w", exposure="direct", deferred=True), "direct"),
        (RegisterTool("w", exposure="codemode"), "deferred"),
        (RegisterTool("w", exposure="model-only"), "model-only"),
    ],
)
def test_exposure_takes_precedence_over_deferred(tool, exposure):
    assert exposure_of(tool) == exposure
