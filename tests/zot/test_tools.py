"""Functions of the program as tools."""

import asyncio
import os
import sqlite3
import threading
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

import pytest

from zot import Agent, Call, Image, OptionError, tool
from zotd.testing.script import CallPart, calls, text
from zotd.wire import events
from zotd.wire.content import Text

DOT = b"\x89PNG\r\n\x1a\n"


async def called(agent, model, function, args, **options):
    """The one call of a run in which the model calls the function."""
    name = getattr(function, "__name__", None) or function.spec.name
    server = await model(calls(CallPart(name, args)), text("done"))
    result = await agent(server, tools=[function], **options).run("go")
    (call,) = result.calls
    return call


async def test_a_tool_closes_over_a_database(agent, model):
    db = sqlite3.connect(":memory:")
    db.execute("create table users (name text)")
    db.execute("insert into users values ('Ada')")

    async def count(name: str) -> int:
        """Count the users of a name."""
        return len(db.execute("select name from users where name = ?", [name]).fetchall())

    server = await model(calls(CallPart("count", {"name": "Ada"})), text("One."))
    result = await agent(server, tools=[count]).run("how many Adas?")
    assert [(call.name, call.text, call.is_error) for call in result.calls] == [("count", "1", False)]
    (offered,) = [one["function"] for one in server.requests[0].body["tools"] if one["function"]["name"] == "count"]
    assert offered["description"] == "Count the users of a name."
    assert offered["parameters"]["properties"] == {"name": {"type": "string"}}


async def test_a_plain_function_runs_in_a_thread_while_others_go_on(agent, model):
    both = threading.Barrier(2, timeout=30)

    @tool(name="wait_for_the_other")
    def wait(number: int, call: Call) -> str:
        """Wait."""
        both.wait()
        call.progress(f"half of {number}")
        return threading.current_thread().name

    parts = [CallPart("wait_for_the_other", {"number": number}) for number in (1, 2)]
    server = await model(calls(*parts), text("done"))
    async with agent(server, tools=[wait]) as one:
        found = [event async for event in one.stream("go")]
    results = [event.content for event in found if isinstance(event, events.ToolResultEvent)]
    assert results == [[Text("zot tool")], [Text("zot tool")]]
    assert {event.text for event in found if isinstance(event, events.ToolProgress)} == {"half of 1", "half of 2"}


async def test_a_cancelled_call_cancels_the_coroutine_and_tells_the_thread(agent, model):
    started, seen = asyncio.Event(), []
    loop, told = asyncio.get_running_loop(), threading.Event()

    async def slow() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    def busy(call: Call) -> None:
        loop.call_soon_threadsafe(started.set)
        while not call.cancelled:
            os.sched_yield()
        told.set()

    for function in (slow, busy):
        started.clear()
        server = await model(calls(CallPart(function.__name__)))
        async with asyncio.TaskGroup() as tasks:
            run = tasks.create_task(agent(server, tools=[function]).run("go"))
            await started.wait()
            run.cancel()
            await asyncio.wait([run])
    assert seen == ["cancelled"]
    assert await asyncio.to_thread(told.wait, 30)


async def test_arguments_are_converted_and_checked(agent, model):
    @dataclass
    class Person:
        name: str
        born: date

    def greet(person: Person) -> str:
        return f"{person.name}, {person.born.year}"

    assert (await called(agent, model, greet, {"person": {"name": "Ada", "born": "1815-12-10"}})).text == "Ada, 1815"
    wrong = await called(agent, model, greet, {"person": {"name": "Ada", "born": "soon"}})
    assert wrong.is_error
    assert "expected a date such as" in wrong.text


async def test_hints_of_types_that_json_writes_as_text_are_values_of_these_types(agent, model):
    class Size(Enum):
        SMALL = "s"

    given = []

    def keep(path: Path, days: set[date], key: UUID, size: Size, price: Decimal) -> None:
        given.extend([path, days, key, size, price])

    args = {"path": "a/b", "days": ["2026-01-31"], "key": "00000000-0000-0000-0000-000000000010", "size": "s"}
    await called(agent, model, keep, args | {"price": "12.50"})
    assert given == [Path("a/b"), {date(2026, 1, 31)}, UUID(int=16), Size.SMALL, Decimal("12.50")]


@pytest.mark.parametrize(
    "error", [ValueError("out of stock"), StopIteration("out of stock"), SystemExit("out of stock")]
)
async def test_an_exception_is_told_to_the_model(agent, model, error):
    def order() -> None:
        raise error

    call = await called(agent, model, order, {})
    assert call.is_error
    assert "out of stock" in call.text


async def test_a_tool_returns_images_and_json(agent, model):
    def draw() -> Image:
        return Image.from_bytes(DOT)

    def table() -> list[dict[str, int]]:
        return [{"a": 1}]

    async with agent(await model(calls(CallPart("draw"), CallPart("table")), text("done")), tools=[draw, table]) as one:
        result = await one.run("go")
    assert {call.name: call.text for call in result.calls} == {"draw": "", "table": '[{"a": 1}]'}


async def test_the_program_chooses_the_tools_that_there_are(agent, model):
    def lookup() -> None:
        """Look."""

    server = await model(text("a"), text("b"))
    await agent(server, tools=[lookup], builtin_tools=["read"]).run("go")
    await agent(server, builtin_tools=[]).run("go")
    offered = [[one["function"]["name"] for one in request.body.get("tools", [])] for request in server.requests]
    assert offered == [["read", "lookup"], []]


async def test_a_tool_that_only_reads_runs_in_every_mode(agent, model):
    @tool(read_only=True)
    def look() -> str:
        return "seen"

    def change() -> str:
        return "changed"

    for mode in ("ask", "read-only"):
        assert (await called(agent, model, look, {}, mode=mode)).text == "seen"
        denied = await called(agent, model, change, {}, mode=mode)
        assert denied.is_error
        assert "changed" not in denied.text


def test_a_decorated_function_can_still_be_called():
    @tool
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8


def test_a_function_that_cannot_be_a_tool_is_refused_when_it_is_given():
    def strange(what: threading.Thread) -> None: ...
    def loose(*args: int) -> None: ...
    def bash(command: str) -> None: ...
    def twice() -> None: ...

    with pytest.raises(
        TypeError,
        match=r"strange cannot be a tool: parameter what has the hint threading\.Thread, which JSON cannot express; "
        r"hints are str, int, .*Path, date, .*UUID, ",
    ):
        Agent(tools=[strange])
    with pytest.raises(TypeError, match=r"takes \*args"):
        Agent(tools=[loose])
    with pytest.raises(OptionError, match='a built-in tool is called "bash"'):
        Agent(tools=[bash])
    with pytest.raises(OptionError, match='another function is called "twice"'):
        Agent(tools=[twice, twice])
    assert Agent(tools=[bash], builtin_tools=["read"])
