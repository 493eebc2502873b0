"""`call_tool`: what an extension asks for reaches the listener once, and the answer comes back once."""

import asyncio
import json

import pytest

from tests.exthost.conftest import ABOUT, context, run
from zotd.core.ports import Ancestor, ToolOutcome
from zotd.exthost.requests import MAX_OPEN
from zotd.wire import ext
from zotd.wire.content import Text

ASKS = """
greet(capabilities=["call_tool"])
for frame in frames():
    if frame["type"] == "event":
        for number in range(frame["step"]):
            say({"type": "call_tool", "id": f"n_{number}", "name": "read", "session_id": "s_1"})
    elif frame["type"] == "tool_call":
        call = frame
        for fields in frame["args"].get("asks", []):
            parent = {"parent_id": frame["id"]} if fields.pop("own", False) else {}
            say({"type": "call_tool", "name": "read", **parent, **fields})
    elif frame["type"] == "tool_result":
        say({"type": "notify", "message": json.dumps(frame)})
        if frame.get("name") == "last":
            say(result(call))
    elif frame["type"] == "command_invoked":
        say({"type": "call_tool", "id": "k", "name": "read", "parent_id": frame["id"]})
        answer(frame)
"""
"""Asks for what the arguments of its tool say, tells the answers as notes, and is done with the answer of `last`."""

DONE = ToolOutcome([Text("done")])


@pytest.fixture
async def asking(workshop):
    """A host with an extension that asks."""
    workshop.script("x", ASKS)
    async with workshop.host() as host:
        yield host


def told(workshop):
    """The answers that the extension got, as ids and texts."""
    found = []
    for _, _, wish in workshop.heard.wishes:
        frame = json.loads(wish.message)
        found.append((frame["id"], frame["content"][0]["text"]))
    return found


async def test_a_request_is_about_what_it_was_made_for(workshop, asking):
    shown: list[str] = []
    tool = asking.offers.tools()[0]
    async with asyncio.TaskGroup() as tasks:
        ask = {"id": "n_1", "name": "last", "args": {"path": "a"}, "own": True}
        call = tasks.create_task(tool.run({"asks": [ask]}, context("c_9", shown.append)))
        await workshop.heard.until(lambda: workshop.heard.requests)
        request = workshop.heard.requests[0]
        assert (request.extension, request.name, request.args) == ("x", "last", {"path": "a"})
        assert (request.session, request.lineage) == ("s_1", (Ancestor("x", "c_9"),))
        request.progress("half")
        request.answer(DONE)
        request.answer(ToolOutcome([Text("again")]))
    assert not call.result().is_error
    assert shown == ["half"]
    assert told(workshop) == [("n_1", "done")]


async def test_a_frame_that_is_sent_twice_asks_once(workshop, asking):
    tool = asking.offers.tools()[0]
    asks = [{"id": "n_1", "own": True}, {"id": "n_1", "own": True}, {"id": "n_2", "name": "last", "own": True}]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(tool.run({"asks": asks}, context()))
        await workshop.heard.until(lambda: len(workshop.heard.requests) == 2)
        for request in workshop.heard.requests:
            request.answer(DONE)
    async with asyncio.TaskGroup() as tasks:
        asks = [{"id": "n_1", "own": True}, {"id": "n_3", "name": "last", "own": True}]
        tasks.create_task(tool.run({"asks": asks}, context()))
        await workshop.heard.until(lambda: len(workshop.heard.requests) == 3)
        workshop.heard.requests[2].answer(DONE)
    assert told(workshop) == [("n_1", "done"), ("n_2", "done"), ("n_3", "done")]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "set parent_id to it"),
        ({"session_id": "s_1"}, "set parent_id to it"),
        ({"parent_id": "nowhere"}, "parent_id is not an open tool call or command"),
    ],
)
async def test_a_call_from_within_a_call_has_to_say_so(workshop, asking, fields, why):
    tool = asking.offers.tools()[0]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(tool.run({"asks": [{"id": "n_1", "name": "last", **fields}]}, context()))
    assert workshop.heard.requests == []
    [(_, text)] = told(workshop)
    assert why in text


async def test_arguments_that_are_too_deep_are_not_handed_on(workshop, asking):
    tool = asking.offers.tools()[0]
    args: dict[str, object] = {}
    for _ in range(65):
        args = {"a": args}
    ask = {"id": "n_1", "name": "last", "own": True}
    outcome = await tool.run({"asks": [{**ask, "args": args}]}, context())
    assert not outcome.is_error
    assert workshop.heard.requests == []
    assert told(workshop) == [("n_1", "a tool cannot be called with arguments that are nested more than 64 deep")]


async def test_a_call_may_be_about_another_session_in_which_nothing_is_open(workshop, asking):
    tool = asking.offers.tools()[0]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(tool.run({"asks": [{"id": "n_1", "name": "last", "session_id": "s_2"}]}, context()))
        await workshop.heard.until(lambda: workshop.heard.requests)
        assert (workshop.heard.requests[0].session, workshop.heard.requests[0].lineage) == ("s_2", ())
        workshop.heard.requests[0].answer(DONE)


async def test_a_command_may_ask(workshop, asking):
    await asking.offers.invoke("x", "", about=ABOUT, client=None)
    await workshop.heard.until(lambda: workshop.heard.requests)
    assert (workshop.heard.requests[0].session, workshop.heard.requests[0].lineage) == ("s_1", ())


async def test_what_asks_for_too_much_at_once_is_told_so(workshop, asking):
    asking.send("x", ext.Event(event="turn_start", step=MAX_OPEN + 1))
    await workshop.heard.until(lambda: workshop.heard.wishes)
    assert len(workshop.heard.requests) == MAX_OPEN
    assert told(workshop) == [
        (f"n_{MAX_OPEN}", f"{MAX_OPEN} tool calls are open already; wait for the answer to one of them")
    ]


async def test_a_request_ends_with_the_call_that_it_was_made_for(workshop, asking):
    tool = asking.offers.tools()[0]
    async with asyncio.TaskGroup() as tasks:
        call = tasks.create_task(tool.run({"asks": [{"id": "n_1", "own": True}]}, context()))
        await workshop.heard.until(lambda: workshop.heard.requests)
        call.cancel()
    async with asyncio.timeout(60):
        await workshop.heard.requests[0].given_up


async def test_a_request_ends_when_its_extension_wants_it_to(workshop):
    source = """
greet(capabilities=["call_tool"])
for frame in frames():
    if frame["type"] == "event":
        say({"type": "call_tool", "id": "n", "name": "read", "session_id": "s_1"})
        say({"type": "call_tool_cancel", "id": "nobody's"})
        say({"type": "call_tool_cancel", "id": "n"})
    else:
        say({"type": "notify", "message": json.dumps(frame)})
"""
    workshop.script("x", source)
    async with workshop.host() as host:
        host.send("x", ext.Event(event="turn_start", step=1))
        await workshop.heard.until(lambda: workshop.heard.requests)
        async with asyncio.timeout(60):
            await workshop.heard.requests[0].given_up
        workshop.heard.requests[0].answer(DONE)
        await workshop.heard.until(lambda: workshop.heard.wishes)
    assert told(workshop) == [("n", "done")]


async def test_a_request_ends_with_its_process_and_is_not_answered(workshop):
    source = """
greet(capabilities=["call_tool"])
for frame in frames():
    if frame["type"] == "event":
        say({"type": "call_tool", "id": "n", "name": "read", "session_id": "s_1"})
"""
    workshop.script("x", source)
    async with workshop.host() as host:
        host.send("x", ext.Event(event="turn_start", step=1))
        await workshop.heard.until(lambda: workshop.heard.requests)
    assert workshop.heard.requests[0].given_up.done()
    workshop.heard.requests[0].answer(DONE)


@pytest.mark.parametrize("announced", [True, False])
async def test_who_may_call_tools_is_said_in_the_beginning(workshop, announced):
    source = f"""
hello(capabilities={["call_tool"] if announced else []})
capabilities = json.loads(sys.stdin.readline())["capabilities"]
say({{"type": "ready"}})
for frame in frames():
    if frame["type"] == "event":
        say({{"type": "call_tool", "id": "n", "name": "read", "session_id": "s_1"}})
    elif frame["type"] == "tool_result":
        say({{"type": "notify", "message": frame["content"][0]["text"]}})
    else:
        say(result(frame, content=[{{"type": "text", "text": " ".join(capabilities)}}]))
"""
    workshop.script("x", source)
    async with workshop.host() as host:
        assert await run(host, "x") == (False, "call_tool" if announced else "(no content)")
        host.send("x", ext.Event(event="turn_start", step=1))
        await workshop.heard.until(lambda: workshop.heard.requests or workshop.heard.wishes)
    if not announced:
        assert "announce the capability call_tool in hello" in workshop.heard.wishes[0][2].message
        assert "without announcing call_tool" in workshop.heard.complaints[0][1]
