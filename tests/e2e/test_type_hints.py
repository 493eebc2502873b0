"""Type hints of an extension's tools, seen where they count: the model gets a schema, the function gets the type."""

from zotd.testing.script import CallPart, calls, text

HEAD = """\
import collections.abc, dataclasses, datetime, decimal, enum, pathlib, typing, uuid
import msgspec

class Size(enum.Enum):
    SMALL = "s"

@dataclasses.dataclass
class Place:
    city: str
    since: datetime.date

class Options(typing.TypedDict):
    depth: int
    roots: list[pathlib.Path]

class Point(typing.NamedTuple):
    x: int
    y: int = 0

class Box(msgspec.Struct, rename="camel"):
    outer_width: int
    label: str = "none"

@dataclasses.dataclass
class Tree:
    name: str
    children: "list[Tree]"

Id = typing.NewType("Id", uuid.UUID)
"""

STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
PATH, DATE = {"type": "string", "format": "path"}, {"type": "string", "format": "date"}


def record(required, **properties):
    return {"type": "object", "properties": properties, "required": required}


SIXTEEN = "00000000-0000-0000-0000-000000000010"
TREE = record(["name", "children"], name=STRING, children={"type": "array", "items": {"type": "object"}})
BOX = record(["outerWidth"], outerWidth=INTEGER, label={"type": "string", "default": "none"})
POINT = record(["x"], x=INTEGER, y={"type": "integer", "default": 0})

HINTS = {
    "pathlib.Path": (PATH, "notes/a.txt", "PosixPath('notes/a.txt')"),
    "set[int]": ({"type": "array", "items": INTEGER, "uniqueItems": True}, [2, 2, 1], "{1, 2}"),
    "frozenset[str]": ({"type": "array", "items": STRING, "uniqueItems": True}, ["a"], "frozenset({'a'})"),
    "datetime.date": (DATE, "2026-01-31", "datetime.date(2026, 1, 31)"),
    "datetime.datetime": (
        {"type": "string", "format": "date-time"},
        "2026-01-31T13:45:00Z",
        "datetime.datetime(2026, 1, 31, 13, 45, tzinfo=datetime.timezone.utc)",
    ),
    "datetime.time": ({"type": "string", "format": "time"}, "13:45:00", "datetime.time(13, 45)"),
    "datetime.timedelta": (
        {"type": "string", "format": "duration"},
        "-P1DT2H0.5S",
        repr(__import__("datetime").timedelta(days=-1, hours=-2, seconds=-0.5)),
    ),
    "uuid.UUID": ({"type": "string", "format": "uuid"}, SIXTEEN, f"UUID('{SIXTEEN}')"),
    "Id": ({"type": "string", "format": "uuid"}, SIXTEEN, f"UUID('{SIXTEEN}')"),
    "decimal.Decimal": ({"type": "string", "format": "decimal"}, 12.5, "Decimal('12.5')"),
    "Size": ({"type": "string", "enum": ["s"]}, "s", "<Size.SMALL: 's'>"),
    "typing.Literal[Size.SMALL, 1]": ({"enum": ["s", 1]}, "s", "<Size.SMALL: 's'>"),
    "Options": (
        record(["depth", "roots"], depth=INTEGER, roots={"type": "array", "items": PATH}),
        {"depth": 1, "roots": ["/tmp"]},
        "{'depth': 1, 'roots': [PosixPath('/tmp')]}",
    ),
    "Place": (
        record(["city", "since"], city=STRING, since=DATE),
        {"city": "Köln", "since": "1999-12-31"},
        "Place(city='Köln', since=datetime.date(1999, 12, 31))",
    ),
    "Point": (POINT, {"x": 1}, "Point(x=1, y=0)"),
    "Box": (BOX, {"outerWidth": 3}, "Box(outer_width=3, label='none')"),
    "Tree": (
        TREE,
        {"name": "a", "children": [{"name": "b", "children": []}]},
        "Tree(name='a', children=[Tree(name='b', children=[])])",
    ),
    "tuple[datetime.date, ...]": (
        {"type": "array", "items": DATE},
        ["2026-01-31"],
        "(datetime.date(2026, 1, 31),)",
    ),
    "dict[int, decimal.Decimal]": (
        {"type": "object", "additionalProperties": {"type": "string", "format": "decimal"}},
        {"7": "1.10"},
        "{7: Decimal('1.10')}",
    ),
    "collections.abc.Sequence[Size]": (
        {"type": "array", "items": {"type": "string", "enum": ["s"]}},
        ["s"],
        "[<Size.SMALL: 's'>]",
    ),
    "typing.Optional[pathlib.Path]": ({"anyOf": [PATH, NULL]}, None, "None"),
    "uuid.UUID | datetime.date": (
        {"anyOf": [{"type": "string", "format": "uuid"}, DATE]},
        "2026-01-31",
        "datetime.date(2026, 1, 31)",
    ),
    "typing.Annotated[pathlib.Path, 'where']": ({**PATH, "description": "where"}, "a", "PosixPath('a')"),
    "typing.Any": ({}, {"a": [1]}, "{'a': [1]}"),
}
"""Each hint with its schema, what a model sends, and what the function then has."""

WRONG = {
    "datetime.date": ("tomorrow", "argument value: expected a date such as 2026-01-31, got 'tomorrow'"),
    "datetime.timedelta": ("PT", "argument value: expected a duration such as P1DT2H30M, got 'PT'"),
    "decimal.Decimal": ("NaN", "argument value: expected a decimal number such as 12.50, got 'NaN'"),
    "uuid.UUID": (7, "argument value: expected a UUID, got 7"),
    "pathlib.Path": (["a"], "argument value: expected a path, got ['a']"),
    "set": ([[1]], "argument value: expected an array of plain values, got [[1]]"),
    "dict[int, str]": ({"a": "b"}, "argument value.a: expected a whole number as its name, got 'a'"),
    "Tree": (
        {"name": "a", "children": [{"name": 1, "children": []}]},
        "argument value.children[0].name: expected a string, got 1",
    ),
}
"""Hints with what does not fit them, and what the model is told."""


def typed(hints):
    """An extension with a tool for each hint, `tool_00`, `tool_01` …, that answers with what it was given."""
    tools = [
        f"@ext.tool\ndef tool_{number:02}(value: {hint}) -> str:\n    'Shows its argument.'\n    return repr(value)\n"
        for number, hint in enumerate(hints)
    ]
    return HEAD + "\n".join(tools)


async def ask_all(shop, model, hints, values):
    """What the model is offered for each hint, and the answers to these values."""
    shop.write("typed", typed(hints))
    server = await model(
        calls(*(CallPart(f"tool_{n:02}", {"value": value}) for n, value in enumerate(values))), text("-")
    )
    talk = await shop.open(server)
    await talk.run()
    offered = {tool["function"]["name"]: tool["function"] for tool in server.requests[0].body["tools"]}
    schemas = [offered[f"tool_{n:02}"]["parameters"]["properties"]["value"] for n, _ in enumerate(hints)]
    messages = server.requests[1].messages
    answers = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    asked = [call for message in messages for call in message.get("tool_calls", [])]
    return schemas, [answers[call["id"]].removeprefix("Error: ") for call in asked]


async def test_a_type_hint_is_described_to_the_model_and_kept_for_the_function(shop, model):
    schemas, received = await ask_all(shop, model, HINTS, [sent for _, sent, _ in HINTS.values()])
    assert dict(zip(HINTS, schemas, strict=True)) == {hint: schema for hint, (schema, _, _) in HINTS.items()}
    assert dict(zip(HINTS, received, strict=True)) == {hint: value for hint, (_, _, value) in HINTS.items()}


async def test_the_model_is_told_what_does_not_fit_a_type_hint(shop, model):
    _, received = await ask_all(shop, model, WRONG, [sent for sent, _ in WRONG.values()])
    assert dict(zip(WRONG, received, strict=True)) == {hint: message for hint, (_, message) in WRONG.items()}


async def test_a_type_hint_that_cannot_be_described_is_told_by_ext_doctor(shop, model):
    shop.write(
        "typed",
        HEAD
        + "@ext.tool\ndef odd(call, place: Place, x: list[complex], y: 'Misspelt', z: object) -> str:\n    'Odd.'\n"
        + "@ext.tool\ndef fine(x: set[int], call) -> str:\n    'Fine.'\n",
    )
    talk = await shop.open(await model(text("-")))
    await talk.run()
    findings = (await talk.client.ask("ext.doctor", session=talk.id))["findings"]
    told = "the tool odd, parameter {}: the type hint {} cannot be described; the model may send anything"
    assert [(one["extension"], one["kind"]) for one in findings] == [("typed", "doubtful")] * 2
    assert [one["text"] for one in findings] == [told.format("x", "complex"), told.format("y", "Misspelt")]
