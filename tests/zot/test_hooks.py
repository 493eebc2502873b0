"""Guards and event handlers of an agent, and forks that keep them."""

import asyncio
import logging
import threading

import pytest

from tests.zot.test_approver import write
from zot import Agent, Allow, Deny, FinishedCall, OptionError, events, tool
from zotd.testing.script import CallPart, calls, text


async def test_a_guard_sees_every_call_in_every_mode_and_denies_it(agent, model, place):
    (place.cwd / "a").write_text("walrus")
    seen = []
    one = agent(await model(calls(CallPart("read", {"path": "a"})), write("b"), text("done")))

    @one.guard
    async def check(name, args, context):
        seen.append((name, context.id, context.preview))
        return Deny("look, and change nothing") if name == "write" else None

    result = await one.run("go")
    assert [call.is_error for call in result.calls] == [False, True]
    assert result.calls[1].text == "look, and change nothing"
    assert seen == [(call.name, call.id, "") for call in result.calls]
    assert not (place.cwd / "b").exists()


async def test_guards_change_arguments_one_after_another_and_then_the_program_decides(agent, model, place):
    asked = []

    def decide(name, args, context):
        asked.append(args)
        return Allow()

    one = agent(await model(write("a"), text("done")), can_use_tool=decide)

    @one.guard
    def first(name, args, context):
        return Allow({**args, "path": "b"})

    @one.guard
    async def second(name, args, context):
        return Allow({**args, "content": args["path"] * 2})

    result = await one.run("go")
    assert asked == [{"path": "b", "content": "bb"}]
    assert [(path.name, path.read_text()) for path in place.cwd.iterdir()] == [("b", "bb")]
    assert result.calls[0].args == {"path": "a", "content": "walrus"}


async def test_a_guard_is_asked_about_what_the_program_changed(agent, model, place):
    one = agent(await model(write("a"), text("done")), can_use_tool=lambda *_: Allow({"path": "b", "content": "x"}))

    @one.guard
    def check(name, args, context):
        return Deny("not b") if args["path"] == "b" else None

    assert (await one.run("go")).calls[0].text == "not b"
    assert list(place.cwd.iterdir()) == []


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ValueError("hm"), "the check of this call by check failed: ValueError: hm"),
        (False, "the check of this call by check failed: TypeError: it returned False, which is neither"),
    ],
)
async def test_a_guard_that_fails_denies_the_call(agent, model, place, outcome, reason):
    one = agent(await model(write("a"), text("done")))

    @one.guard
    def check(name, args, context):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert reason in (await one.run("go")).calls[0].text
    assert list(place.cwd.iterdir()) == []


async def test_a_guard_has_the_time_limit_of_decisions(agent, model, place):
    one = agent(await model(write("a"), text("done")), decide_within_s=0.01)

    @one.guard
    async def check(name, args, context):
        await asyncio.Event().wait()

    assert (await one.run("go")).calls[0].text == "check has not decided within 0.01 s"
    assert list(place.cwd.iterdir()) == []


async def test_a_guard_that_is_added_to_an_open_agent_holds_from_the_next_call_on(agent, model, place):
    async with agent(await model(write("a"), text("done"), write("b"), text("done"))) as one:
        await one.run("go")
        one.guard(lambda *_: Deny("no more"))
        assert (await one.run("go on")).calls[0].text == "no more"
    assert [path.name for path in place.cwd.iterdir()] == ["a"]


async def test_handlers_hear_the_events_of_their_kind(agent, model):
    heard = []

    @tool
    def lookup() -> str:
        return "walrus"

    one = agent(await model(calls(CallPart("lookup")), text("a", "b")), tools=[lookup])

    @one.on(FinishedCall)
    def after(call):
        heard.append((call.name, call.text, threading.current_thread() is threading.main_thread()))

    @one.on(events.TextDelta)
    async def delta(event):
        await asyncio.sleep(0)
        heard.append(event.delta)

    kinds = []
    one.on(events.Event)(lambda event: kinds.append(type(event)))
    streamed = [type(event) async for event in one.stream("go")]
    assert heard == [("lookup", "walrus", True), "a", "b"]
    assert kinds == streamed


async def test_a_handler_that_fails_is_logged_and_the_run_goes_on(agent, model, caplog):
    one = agent(await model(text("done")))

    @one.on(events.Done)
    def broken(event):
        raise ValueError("hm")

    with caplog.at_level(logging.ERROR, logger="zot"):
        assert (await one.run("go")).text == "done"
    assert "a function that was told of Done failed" in caplog.text


@pytest.mark.parametrize("kind", ["tool_result", int])
def test_a_handler_of_what_is_no_event_is_refused(kind):
    with pytest.raises(OptionError, match=r"on: expected a class of zot.events, or FinishedCall, not "):
        Agent().on(kind)


def test_what_is_no_function_is_refused():
    with pytest.raises(OptionError, match="a guard must be a function, not 5"):
        Agent().guard(5)  # type: ignore[type-var]
    with pytest.raises(OptionError, match="what is told of events must be a function, not 5"):
        Agent().on(events.Done)(5)  # type: ignore[arg-type]


async def test_a_fork_goes_on_from_the_conversation_and_leaves_the_other_alone(agent, model):
    server = await model(*(text(str(number)) for number in range(3)))
    one = agent(server)
    await one.run("first")
    two = one.fork(reasoning="low")
    await two.run("second")
    await one.run("third")
    said = [
        [part["content"] for part in request.messages if part["role"] == "assistant"] for request in server.requests
    ]
    assert str(said) == "[[], ['0'], ['0']]"
    assert (len(one.messages), len(two.messages)) == (4, 4)


async def test_forks_answer_at_once_with_the_same_guards_and_handlers(agent, model, place):
    heard: list[events.Done] = []
    one = agent(await model(text("begun")))
    one.guard(lambda *_: Deny("no"))
    one.on(events.Done)(heard.append)
    await one.run("go")
    servers = [await model(write("a"), text("done")) for _ in range(2)]  # one would answer in the order of requests
    async with asyncio.TaskGroup() as tasks:
        runs = [tasks.create_task(one.fork(base_url=each.openai_url).run("go on")) for each in servers]
    assert [run.result().calls[0].text for run in runs] == ["no", "no"]
    assert len(heard) == 3
    with pytest.raises(OptionError, match="unknown mode"):
        one.fork(mode="asking")
