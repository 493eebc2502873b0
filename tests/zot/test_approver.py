"""`Agent(can_use_tool=…)`: the program decides about tool calls."""

import asyncio
import threading
from pathlib import Path

import pytest

from tests.needs import needs
from zot import Agent, Allow, CallContext, Deny, OptionError, RunStoppedError, tool
from zotd.testing.script import CallPart, calls, text
from zotd.wire import events


def write(path, words="walrus"):
    return calls(CallPart("write", {"path": path, "content": words}))


async def test_the_program_allows_and_denies_calls_that_change_something(agent, model, place):
    asked = []

    async def decide(name, args, context):
        asked.append((name, args["path"], context))
        return Allow() if args["path"] == "a" else Deny("only a, please")

    server = await model(write("a"), write("b"), calls(CallPart("read", {"path": "a"})), text("done"))
    result = await agent(server, can_use_tool=decide).run("go")
    assert [call.is_error for call in result.calls] == [False, True, False]
    assert "only a, please" in result.calls[1].text
    assert [path.name for path in place.cwd.iterdir()] == ["a"]
    assert [(name, path) for name, path, _ in asked] == [("write", "a"), ("write", "b")]
    assert all("+walrus" in context.preview and isinstance(context, CallContext) for _, _, context in asked)
    assert asked[0][2].id == result.calls[0].id


async def test_a_plain_function_decides_in_a_thread(agent, model, place):
    threads = []

    def decide(name, args, context):
        threads.append(threading.current_thread())
        return Allow()

    await agent(await model(write("a"), text("done")), can_use_tool=decide).run("go")
    assert (place.cwd / "a").exists()
    assert threads != [threading.main_thread()]


async def test_a_call_runs_with_the_arguments_of_the_decision(agent, model, place):
    async def decide(name, args, context):
        args["path"] = "changed in place"  # has no effect
        return Allow({"path": "b", "content": "seal"})

    server = await model(write("a"), text("done"))
    result = await agent(server, can_use_tool=decide).run("go")
    assert [(path.name, path.read_text()) for path in place.cwd.iterdir()] == [("b", "seal")]
    assert result.calls[0].args == {"path": "a", "content": "walrus"}


async def test_several_calls_are_decided_about_at_once(agent, model, place):
    both = asyncio.Barrier(2)

    async def decide(name, args, context):
        await both.wait()
        return Allow()

    @tool
    def note(number: int) -> str:
        return str(number)

    server = await model(calls(CallPart("note", {"number": 1}), CallPart("note", {"number": 2})), text("done"))
    async with asyncio.timeout(30):
        result = await agent(server, tools=[note], can_use_tool=decide).run("go")
    assert sorted(call.text for call in result.calls) == ["1", "2"]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ValueError("no such customer"), "the check of this call by can_use_tool failed: ValueError: no such customer"),
        (TimeoutError("slow"), "the check of this call by can_use_tool failed: TimeoutError: slow"),
        (SystemExit("bye"), "the check of this call by can_use_tool failed: RuntimeError: it raised SystemExit bye"),
        (True, "it returned True, which is neither Allow() nor Deny(reason)"),
        (None, "can_use_tool returned None; it must return Allow() or Deny(reason)"),
        (Allow({"path": Path}), "the check of this call by can_use_tool failed: TypeError: "),
    ],
)
async def test_what_is_no_decision_denies_with_a_sentence(agent, model, place, outcome, reason):
    def decide(name, args, context):
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    result = await agent(await model(write("a"), text("done")), can_use_tool=decide).run("go")
    assert result.calls[0].is_error
    assert reason in result.calls[0].text
    assert list(place.cwd.iterdir()) == []


async def test_a_decision_that_takes_too_long_is_a_denial(agent, model, place):
    async def decide(name, args, context):
        await asyncio.Event().wait()

    server = await model(write("a"), text("done"))
    result = await agent(server, can_use_tool=decide, decide_within_s=0.01).run("go")
    assert "can_use_tool has not decided within 0.01 s" in result.calls[0].text
    assert list(place.cwd.iterdir()) == []


@pytest.mark.parametrize("way", ["abort", "cancel"])
async def test_the_end_of_a_run_cancels_the_decision(agent, model, place, way):
    asked, seen = asyncio.Event(), []

    async def decide(name, args, context):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def stopped(one):
        with pytest.raises((RunStoppedError, asyncio.CancelledError)):
            await one.run("go")

    one = agent(await model(write("a"), text("next")), can_use_tool=decide)
    async with one, asyncio.TaskGroup() as tasks:
        run = tasks.create_task(stopped(one))
        await asked.wait()
        if way == "abort":
            one.abort()
        else:
            run.cancel()
        await asyncio.wait([run])
        assert seen == ["cancelled"]
        assert (await one.run("go on")).text == "next"
    assert list(place.cwd.iterdir()) == []


async def test_in_the_mode_workspace_the_program_decides_about_what_leads_out_of_it(agent, model, place, tmp_path):
    needs("bwrap")
    asked = []

    def decide(name, args, context):
        asked.append((args["path"], context.preview))
        return Deny("stay here")

    outside = str(tmp_path / "b")
    one = agent(await model(write("a"), write(outside), text("done")), mode="workspace", can_use_tool=decide)
    assert [call.is_error for call in (await one.run("go")).calls] == [False, True]
    ((path, preview),) = asked
    assert path == outside
    assert "it would" in preview


async def test_a_program_without_asyncio_decides_too(agent, model, place):
    server = await model(write("a"), text("done"))
    one = agent(server, can_use_tool=lambda *_: Allow())
    result = await asyncio.to_thread(one.run_sync, "go")
    assert result.text == "done"
    assert (place.cwd / "a").exists()


async def test_the_stream_shows_what_was_asked_and_decided(agent, model):
    async def decide(name, args, context):
        return Deny("no")

    server = await model(write("a"), text("done"))
    found = [event async for event in agent(server, can_use_tool=decide).stream("go")]
    (asked,) = [event for event in found if isinstance(event, events.ApprovalRequested)]
    (over,) = [event for event in found if isinstance(event, events.ApprovalResolved)]
    assert (asked.tool, over.decision, over.by, over.reason) == ("write", "deny", "the program", "no")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"can_use_tool": "yes"}, "can_use_tool must be a function, not 'yes'"),
        (
            {"can_use_tool": print, "mode": "yolo"},
            'can_use_tool would not be called in the mode "yolo", which asks about nothing; leave mode out',
        ),
        ({"decide_within_s": 0}, "decide_within_s must be a number of seconds above 0, not 0"),
        ({"decide_within_s": "5"}, "decide_within_s must be a number of seconds above 0, not '5'"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, sentence):
    with pytest.raises(OptionError) as caught:
        Agent(**options)
    assert str(caught.value) == sentence
