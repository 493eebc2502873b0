"""`run(output_type=…)`: a value instead of text."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from zot import AgentError, Image, OptionError, OutputError, RunError
from zotd.testing.script import CallPart, Refusal, calls, text

DOT = b"\x89PNG\r\n\x1a\n"


class Line(msgspec.Struct):
    """A line of an invoice."""

    what: str
    cents: Annotated[int, msgspec.Meta(ge=0)]


class Kind(Enum):
    OLD = "old"
    NEW = "new"


@dataclass
class Invoice:
    number: str
    lines: list[Line] = field(default_factory=list)


class Customer(TypedDict):
    name: str
    kind: NotRequired[Literal["old", "new"]]


class Point(NamedTuple):
    x: int
    y: int = 7


class Order(BaseModel):  # type: ignore[explicit-any]  # of pydantic's own
    item: str
    count: int = Field(gt=0)


@pydantic_dataclass
class Parcel:
    grams: int = Field(gt=0)


@pytest.mark.parametrize(
    ("wanted", "reply", "value"),
    [
        (Line, '{"what": "loom", "cents": 5}', Line("loom", 5)),
        (Invoice, '{"number": "A1", "lines": [{"what": "loom", "cents": 5}]}', Invoice("A1", [Line("loom", 5)])),
        (Customer, '{"name": "Ada"}', {"name": "Ada"}),
        (Point, '{"x": 1}', Point(1, 7)),
        (Kind, '"new"', Kind.NEW),
        (int, "3", 3),
        (list[Line], '[{"what": "loom", "cents": 5}]', [Line("loom", 5)]),
        (Order, '{"item": "loom", "count": 2}', Order(item="loom", count=2)),
        (Parcel, '{"grams": 2}', Parcel(grams=2)),
        (dict[str, Order], '{"a": {"item": "loom", "count": 2}}', {"a": Order(item="loom", count=2)}),
    ],
    ids=lambda one: getattr(one, "__name__", "") if isinstance(one, type) else "",
)
async def test_the_output_has_the_type(agent, model, wanted, reply, value):
    server = await model(text(reply))
    result = await agent(server).run("which?", output_type=wanted)
    assert result.output == value
    assert type(result.output) is type(value)
    assert result.text == reply


@pytest.mark.parametrize("wanted", [Line, Invoice, Customer, Point, Order])
async def test_the_model_gets_the_schema(agent, model, wanted):
    server = await model(text("{}"))
    with pytest.raises(OutputError):
        await agent(server).run("which?", output_type=wanted, tries=1)
    sent = str(server.requests[0].messages)
    names = wanted.__annotations__
    assert "which?" in sent
    assert "JSON Schema" in sent
    assert [name for name in names if f'"{name}":' not in sent] == []


@pytest.mark.parametrize(
    "reply",
    [
        '```json\n{"x": 1, "y": 2}\n```',
        'Here it is:\n\n```\n{"x": 1, "y": 2}\n```\nDone {really}.',
        'It is {"x": 1, "y": 2}.',
        '  {"x": 1, "y": 2}\n',
    ],
)
async def test_json_is_found_in_a_fence_and_between_words(agent, model, reply):
    result = await agent(await model(text(reply))).run("where?", output_type=Point)
    assert result.output == (1, 2)


async def test_the_model_is_asked_again_with_what_was_wrong(agent, model, place):
    (place.cwd / "a").write_text("walrus")
    server = await model(
        calls(CallPart("read", {"path": "a"})),
        text("A loom."),
        text('{"what": "loom", "cents": -1}'),
        text('{"what": "loom", "cents": 1}'),
    )
    one = agent(server)
    result = await one.run("what?", output_type=Line)
    assert result.output == Line("loom", 1)
    assert "malformed" in str(server.requests[2].messages[-1])
    assert "Expected `int` >= 0 - at `$.cents`" in str(server.requests[3].messages[-1])
    assert (result.usage.input, [call.name for call in result.calls]) == (40, ["read"])
    assert result.messages == one.messages


async def test_the_last_text_and_the_costs_are_in_the_error(agent, model):
    server = await model(text("one"), text("two"), text("three"), text("four"))
    one = agent(server)
    with pytest.raises(OutputError, match="none of 3 replies matches the output type: ") as caught:
        await one.run("what?", output_type=Order)
    assert (caught.value.text, caught.value.result.usage.input) == ("three", 30)
    assert (await one.run("and now?")).text == "four"


async def test_a_check_of_the_type_itself_is_told_to_the_model(agent, model):
    @dataclass
    class Even:
        number: int

        def __post_init__(self):
            if self.number % 2:
                raise ValueError("must be even")

    server = await model(text('{"number": 1}'), text('{"number": 2}'))
    assert (await agent(server).run("which?", output_type=Even)).output == Even(2)
    assert "must be even" in str(server.requests[1].messages[-1])


async def test_a_failure_while_asking_again_has_what_all_tries_cost(agent, model):
    server = await model(text("hm"), Refusal(400, "no such thing"))
    with pytest.raises(RunError, match="no such thing") as caught:
        await agent(server).run("what?", output_type=int)
    assert not isinstance(caught.value, OutputError)
    assert caught.value.result.usage.input == 10


async def test_images_are_sent_once(agent, model):
    server = await model(text("hm"), text("2"))
    images = [Image.from_bytes(DOT)]
    assert (await agent(server, model="gpt-5").run("how many?", images=images, output_type=int)).output == 2
    assert str(server.requests[1].messages).count("image_url") == str(server.requests[0].messages).count("image_url")


async def test_text_needs_no_schema(agent, model):
    server = await model(text("hello"))
    assert (await agent(server).run("say hello", output_type=str)).output == "hello"
    assert "Schema" not in str(server.requests[0].messages)


async def test_a_program_without_asyncio_gets_values_too(agent, model):
    one = agent(await model(text("hm"), text("2")))
    assert (await asyncio.to_thread(one.run_sync, "how many?", output_type=int)).output == 2


@pytest.mark.parametrize("wanted", [asyncio.Event, list[asyncio.Event], "Line"])
async def test_a_type_that_json_cannot_express_is_refused_before_anything_is_sent(agent, model, wanted):
    server = await model()
    with pytest.raises(OptionError, match=r"output_type: .* cannot be expressed as JSON: "):
        await agent(server).run("what?", output_type=wanted)
    assert server.requests == []


def test_pydantic_is_not_imported_for_other_types():
    program = """
import sys
from dataclasses import dataclass
from zot.output_types import OutputType

@dataclass
class Line:
    what: str

assert OutputType(list[Line]).parsed('[{"what": "loom"}]') == [Line("loom")]
print("pydantic" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


async def test_a_stream_has_the_events_of_all_tries_and_then_the_value(agent, model):
    stream = agent(await model(text("hm"), text('{"what": "tea", "cents": 3}'))).stream("what?", output_type=Line)
    with pytest.raises(AgentError, match="the stream was not read to its end"):
        _ = stream.result
    found = [type(event).__name__ async for event in stream]
    assert (found.count("AssistantMessage"), found.count("Done"), found[-1]) == (2, 2, "Done")
    assert stream.result.output == Line("tea", 3)
    assert stream.result.usage.input == 20


async def test_a_stream_of_text_has_a_result_unless_its_run_failed(agent, model):
    one = agent(await model(text("hello"), Refusal(400, "no")))
    async with one.stream("go") as stream:
        async for _ in stream:
            pass
    assert stream.result.text == "hello"
    failing = one.stream("go")
    with pytest.raises(RunError):
        async for _ in failing:
            pass
    with pytest.raises(AgentError, match="or the run has failed"):
        _ = failing.result
