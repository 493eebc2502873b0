"""`Runtime`: an agent inside another program."""

import asyncio
import os
from contextlib import aclosing

import pytest

from zotd.embed.session_runtime import BusyError, Runtime
from zotd.testing.script import CallPart, Gate, Hang, ScriptedReply, TextPart, calls, text
from zotd.wire import events
from zotd.wire.content import Text
from zotd.wire.errors import CommandError


async def all_of(iterator):
    return [event async for event in iterator]


async def test_a_prompt_yields_its_events_and_ends_with_done(opened, model, vendor, place):
    (place.cwd / "a").write_text("walrus")
    server = await model(calls(CallPart("read", {"path": "a"})), text("It says ", "walrus."))
    async with Runtime.open(**opened(vendor, server)) as runtime:
        found = await all_of(runtime.prompt("what does a say?"))
        assert isinstance(found[0], events.UserMessage)
        assert isinstance(found[-1], events.Done)
        assert "".join(event.delta for event in found if isinstance(event, events.TextDelta)) == "It says walrus."
        assert [message.role for message in runtime.messages] == ["user", "assistant", "tool", "assistant"]
        assert (runtime.usage.input, runtime.usage.output) == (20, 10)
        assert runtime.state == "idle"


async def test_a_runtime_is_busy_during_a_prompt(opened, model):
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["a"]), Gate(gate)]), text("later"))
    async with Runtime.open(**opened("openai", server)) as runtime:
        async with aclosing(runtime.prompt("go")) as running:
            await anext(running)
            for other in (runtime.prompt("too early"), runtime.compact()):
                with pytest.raises(BusyError):
                    await anext(other)
            with pytest.raises(CommandError):
                await runtime.set_model("gpt-5")
            gate.set()
            await all_of(running)
        assert isinstance((await all_of(runtime.prompt("now")))[-1], events.Done)


async def test_an_aborted_prompt_ends_with_done(opened, model, vendor):
    server = await model(ScriptedReply([TextPart(["a"]), Hang()]), text("later"))
    async with Runtime.open(**opened(vendor, server)) as runtime:
        found = []
        async for event in runtime.prompt("go"):
            found.append(event)
            if isinstance(event, events.TextDelta):
                runtime.abort()
        assert [event.stop for event in found if isinstance(event, events.TurnEnd)] == ["aborted"]
        assert isinstance((await all_of(runtime.prompt("go on")))[-1], events.Done)


async def test_leaving_the_loop_early_aborts_and_allows_the_next_prompt(opened, model, place):
    os.mkfifo(place.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo started; cat go"})), text("later"))
    async with Runtime.open(**opened("openai", server)) as runtime:
        async with aclosing(runtime.prompt("go")) as running:
            async for event in running:
                if isinstance(event, events.ToolProgress):
                    break
        assert runtime.state == "idle"
        assert isinstance((await all_of(runtime.prompt("go on")))[-1], events.Done)


async def test_closing_a_runtime_during_a_run_leaves_nothing_behind(opened, model, place):
    os.mkfifo(place.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo started; cat go"})))
    async with Runtime.open(**opened("openai", server)) as runtime:
        running = runtime.prompt("go")
        async for event in running:
            if isinstance(event, events.ToolProgress):
                break
    await running.aclose()


async def test_compact_and_list_models(opened, model):
    server = await model(text("one"), text("Summary."))
    async with Runtime.open(**opened("openai", server, model="gpt-4o")) as runtime:
        await all_of(runtime.prompt("a"))
        found = await all_of(runtime.compact("keep it short"))
        assert [type(event) for event in found] == [events.CompactDone, events.Done]
        assert "Summary." in str(runtime.messages[0])
        assert "gpt-5" in [known.id for known in runtime.models]
        await runtime.set_model("gpt-5")
    assert "keep it short" in str(server.requests[1].messages)


async def test_several_runtimes_share_nothing(opened, model, vendor):
    one, other = await model(text("one")), await model(text("other"))
    async with Runtime.open(**opened(vendor, one)) as first, Runtime.open(**opened(vendor, other)) as second:
        async with asyncio.TaskGroup() as tasks:
            runs = [tasks.create_task(all_of(runtime.prompt("go"))) for runtime in (first, second)]
        assert [isinstance(run.result()[-1], events.Done) for run in runs] == [True, True]
        said = [runtime.messages[-1].content for runtime in (first, second)]
    assert said == [[Text("one")], [Text("other")]]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"cwd": "/no/such"}, "not a directory"),
        ({"provider": "nobody"}, "unknown provider"),
        ({"tools": ["fly"], "no_ext": True}, "unknown tool"),
        ({"base_url": None, "api_key": None}, "no key"),
    ],
)
async def test_invalid_options_are_reported_in_one_sentence(opened, model, more, word):
    with pytest.raises(CommandError, match=word):
        async with Runtime.open(**opened("openai", await model(), **more)):
            pass


async def test_an_error_inside_the_block_is_raised_unchanged(opened, model):
    with pytest.raises(ZeroDivisionError):
        async with Runtime.open(**opened("openai", await model())):
            raise ZeroDivisionError


async def test_a_runtime_counts_nothing_and_follows_its_runs_when_traces_are_wanted(opened, model, place):
    async with Runtime.open(**opened("openai", await model())) as runtime:
        assert runtime.session.ledger.watchers == []
    arguments = opened("openai", await model())
    traced = {"ZOT_TELEMETRY_TRACES": "true", "ZOT_TELEMETRY_ENDPOINT": "http://127.0.0.1:9"}
    async with Runtime.open(arguments["options"], env={**place.env, **traced}) as runtime:
        assert runtime.session.ledger.watchers != []
        assert runtime.session.watch.makes_traces
