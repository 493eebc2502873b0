"""The model is woken later: it calls `wake_later`, people see the timer and may remove it, and the note comes back once."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from tests.e2e.timed_site import NINE, Site, ended, said, timer_of
from zotd.clock import rfc3339
from zotd.core.wakes import MAX_CHAIN, MAX_PENDING
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text

NOTE = "look at the CI"

WOKEN = f"You are woken, as you wanted to be 10m after this note: {NOTE}"


def wake(after="10m"):
    return CallPart("wake_later", {"after": after, "note": NOTE})


def _again(request):
    """A model that wants to be woken with each prompt, and is content when it was told something about that."""
    return text("ok") if request.messages[-1]["role"] == "tool" else calls(wake())


@pytest.fixture
async def site(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    async with AsyncExitStack() as stack:
        yield Site(stack, tmp_path)


async def test_the_model_is_woken_with_its_note_and_the_timer_is_gone(site, model, results):
    server = await model(calls(wake()), text("later"), text("it is green"))
    talk = await site.start(server)
    await talk.ask("prompt", message="go")
    await ended(talk)
    (timer,) = (await talk.ask("timer.list"))["timers"]
    assert (timer["origin"], timer["by"], timer["times"]) == ("wake", "the model", 1)
    assert timer["due"] == rfc3339(NINE + 600)
    (result,) = results(server.requests[1])
    assert result == f"you are woken at 2026-11-27T09:10:00Z, unless the user removes it ({timer['id']})"
    site.now += 600
    await talk.ask("timer.list")
    await ended(talk)
    assert await said(talk) == ["go", WOKEN]
    assert (await talk.ask("timer.list"))["timers"] == []


async def test_a_wake_that_the_user_has_removed_does_not_come(site, model):
    talk = await site.start(await model(calls(wake()), text("later")))
    await talk.ask("prompt", message="go")
    await ended(talk)
    (timer,) = (await talk.ask("timer.list"))["timers"]
    await talk.ask("timer.remove", timer=timer["id"])
    site.now += 6000
    assert (await talk.ask("timer.list"))["timers"] == []
    assert await said(talk) == ["go"]


async def test_only_so_many_wakes_are_to_come(site, model, results):
    server = await model(calls(*[wake()] * (MAX_PENDING + 1)), text("ok"))
    talk = await site.start(server)
    await talk.ask("prompt", message="go")
    await ended(talk)
    told = results(server.requests[1])
    assert sum(one.startswith("you are woken at") for one in told) == MAX_PENDING
    assert sum("already; wait for these" in one for one in told) == 1
    assert len((await talk.ask("timer.list"))["timers"]) == MAX_PENDING


async def test_a_model_does_not_wake_itself_for_ever(site, model, results):
    talk = await site.start(server := await model(_again))
    await talk.ask("prompt", message="go")
    for _ in range(MAX_CHAIN):
        await ended(talk)
        site.now += 600
        await talk.ask("timer.list")
    await ended(talk)
    assert (await talk.ask("timer.list"))["timers"] == []
    assert "without a word of the user" in results(server.requests[-1])[-1]


@pytest.mark.parametrize("after", ["5s", "10", "tomorrow", "8d", ""])
async def test_a_time_that_cannot_be_is_told_to_the_model(site, model, results, after):
    server = await model(calls(wake(after)), text("ok"))
    talk = await site.start(server)
    await talk.ask("prompt", message="go")
    await ended(talk)
    assert results(server.requests[1])[0].endswith("is no time from 1m to 7d; 10m and 2h are")


async def test_sessions_that_are_not_stored_and_subagents_do_not_have_the_tool(site, model):
    server = await model(
        calls(CallPart("task", {"prompt": "a", "description": "a"})), text("of a"), text("ok"), text("ok")
    )
    talk = await site.start(server)
    await talk.ask("prompt", message="go")
    await ended(talk)
    brief = await site.create(ephemeral=True)
    await brief.ask("prompt", message="go")
    await ended(brief)
    has = ["wake_later" in json.dumps(request.body) for request in server.requests]
    assert has == [True, False, True, False]


async def test_a_call_that_a_crash_has_cut_begins_one_timer(tmp_path, model):
    server = await model(_again)
    dying = (sys.executable, "-m", "tests.e2e.dying_daemon", "call ended")
    async with AsyncExitStack() as stack:
        first = stack.enter_context(DaemonProcess(tmp_path, wrapper=dying))
        house = House(stack, first.place, first)
        talk = await house.create("ollama", None, base_url=server.openai_url, secrets=None, model="m")
        talk.send("prompt", message="go")
        assert await asyncio.to_thread(first.wait) != 0
        second = stack.enter_context(DaemonProcess(tmp_path, {"ZOT_RESUME": "auto"}))
        talk = await House(stack, second.place, second).follow(talk.id)
        while await talk.state() != "idle":
            pass
        (timer,) = (await talk.ask("timer.list"))["timers"]
        await timer_of(talk.client, timer["id"], state="active")
