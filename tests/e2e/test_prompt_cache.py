"""Prompts in a vendor's cache, which keeps to Anthropic's rules: what is found there again, and what users are told if not."""

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import datetime

import pytest

from tests.e2e.conftest import House
from tests.e2e.shop import Shop
from zotd.testing.live_daemon import serving
from zotd.testing.model_server import ModelServer
from zotd.testing.prompt_cache import ManualClock, PromptCache, blocks_of
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text

LONG = "walrus " * 8_000
"""14,000 tokens, as the cache counts them."""

STEPS = 30

MINUTE = 60.0


@pytest.fixture
def clock():
    """Two minutes before midnight."""
    return ManualClock(datetime.fromisoformat("2031-01-01T23:58:00Z").timestamp())


@pytest.fixture
async def aged(tmp_path, monkeypatch, clock):
    """A daemon in this loop whose sessions go by the clock."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(serving(tmp_path, clock=clock))
        monkeypatch.setenv("HOME", place.env["HOME"])
        yield House(stack, place)


@pytest.fixture
def cache(clock):
    return PromptCache(clock)


@pytest.fixture
async def cached(cache):
    """`await cached(answer, ...)`: a scripted model with the cache."""
    async with AsyncExitStack() as stack:

        async def cached(*answers):
            return await stack.enter_async_context(ModelServer(answers, cache=cache))

        yield cached


def usage(events):
    """How many tokens each request has read from the cache, and how many it has written."""
    return [(event["cache_read"], event["cache_write"]) for event in events if event["type"] == "usage"]


def notices(events):
    return [event["text"] for event in events if event["type"] == "notice" and "cache" in event["text"]]


def digests(received):
    return [block.digest for block in blocks_of(received.body)]


def read(*, times=1):
    return [CallPart("read", {"path": "note.txt"})] * times


async def test_thirty_steps_with_parallel_calls_and_inputs_that_join_read_all_that_was_written(aged, cached):
    (aged.cwd / "note.txt").write_text("A note.")
    gate = asyncio.Event()
    answers = [calls(*read(times=1 + step * 7 % 26)) for step in range(STEPS - 1)]
    answers[10] = ScriptedReply([TextPart(["Hm."]), Gate(gate), *read(times=25)])
    server = await cached(*answers, text("Done."))
    talk = await aged.create("anthropic", server)
    await talk.ask("prompt", message=LONG)
    before = await talk.until("text_delta")
    for number in range(5):
        await talk.ask("prompt", message=f"and {number}", when_busy="steer")
    gate.set()
    events = [*before, *await talk.until("done")]
    found = usage(events)
    assert len(found) == STEPS
    assert [now for now, _ in found[1:]] == [sum(past) for past in found[:-1]]
    for past, now in zip(server.requests, server.requests[1:], strict=False):
        assert digests(now)[: len(digests(past))] == digests(past)
    assert notices(events) == []


FLEETING = '''
@ext.tool
def vanish() -> str:
    """Take the weather away."""
    ext.unregister("tool", "weather")
    return "gone"

def weather() -> str:
    """Tell the weather."""
    return "foggy"

ext.tool(weather)

@ext.tool
def return_again() -> str:
    """Bring the weather back."""
    ext.tool(weather)
    return "back"
'''


async def test_a_tool_that_goes_costs_the_conversation_once_and_one_that_returns_nothing(aged, cached):
    shop = Shop(aged)
    shop.write("fleeting", FLEETING)
    steps = [calls(CallPart("vanish")), calls(CallPart("return_again"))]
    server = await cached(*steps, text("Done."), text("Yes."))
    talk = await shop.open(server, "anthropic")
    events = await talk.run(LONG)
    names = [[tool["name"] for tool in one.body["tools"]] for one in server.requests]
    assert names[0] == names[2]
    assert [name for name in names[0] if name != "weather"] == names[1]
    (_, first), (gone, again), (returned, _) = usage(events)
    assert gone < first
    assert again > 14_000
    assert returned == first
    (notice,) = notices(events)
    assert notice.endswith("the tools changed (gone: weather)")
    assert not notices(await talk.run("more"))


async def test_a_new_tool_comes_behind_those_that_were_there(aged, cached):
    shop = Shop(aged)
    shop.write("a_first", FLEETING.replace("ext.tool(weather)\n\n", "\n", 1))
    shop.write("b_second", "@ext.tool\ndef other() -> str:\n    return 'x'\n")
    server = await cached(calls(CallPart("return_again")), text("Done."))
    talk = await shop.open(server, "anthropic")
    events = await talk.run(LONG)
    before, after = ([tool["name"] for tool in one.body["tools"]] for one in server.requests)
    assert after == [*before, "weather"]
    (_, first), (kept, _) = usage(events)
    assert 0 < kept < first  # the tools that were there


async def test_midnight_changes_nothing_in_the_cache_and_the_model_learns_the_day(aged, cached, clock):
    server = await cached(*[text("Yes.")] * 4)
    talk = await aged.create("anthropic", server)
    first = usage(await talk.run(LONG))
    clock.advance(4 * MINUTE)
    events = await talk.run("What day is it?")
    assert usage(events)[0][0] == sum(first[0])
    assert notices(events) == []
    await talk.run("And now?")
    systems = {json.dumps(one.body["system"][0]["text"]) for one in server.requests}
    assert len(systems) == 1
    said = [message["content"][0]["text"] for message in server.requests[2].messages if message["role"] == "user"]
    assert said[1:] == ["What day is it?\n\n(The date is 2031-01-02 now.)", "And now?"]


async def test_a_pause_is_told_and_from_then_on_the_cache_lives_for_an_hour(aged, cached, clock):
    server = await cached(*[text("Yes.")] * 4)
    talk = await aged.create("anthropic", server)
    (first,) = usage(await talk.run(LONG))
    clock.advance(6 * MINUTE)
    events = await talk.run("Still there?")
    (notice,) = notices(events)
    assert notice.startswith(f"{sum(first):,} tokens were read anew instead of from the vendor's cache ($")
    assert notice.endswith("more): it keeps them for five minutes, and the pause was 6 minutes")
    ((nothing, second),) = usage(events)
    assert (nothing, second > first[1]) == (0, True)
    clock.advance(50 * MINUTE)
    events = await talk.run("Hello?")
    assert usage(events)[0][0] == second
    assert notices(events) == []
    ttls = [{block.ttl for block in blocks_of(one.body) if block.ttl} for one in server.requests]
    assert ttls == [{"5m"}, {"1h"}, {"1h"}]
    row = (await talk.ask("get_state"))["usage"]
    assert row["cache_write_hour"] > second


async def test_a_vendor_that_drops_its_cache_is_told_once_in_a_run(aged, cached, cache):
    (aged.cwd / "note.txt").write_text("A note.")
    gates = [asyncio.Event(), asyncio.Event()]
    steps = [ScriptedReply([TextPart(["Hm."]), Gate(gate), *read()]) for gate in gates]
    server = await cached(*steps, text("Done."))
    talk = await aged.create("anthropic", server)
    await talk.ask("prompt", message=LONG)
    events = []
    for gate in gates:
        events += await talk.until("text_delta")
        cache.forget()
        gate.set()
    events += await talk.until("done")
    (notice,) = notices(events)
    assert notice.endswith("the vendor dropped them for an unknown reason")
    admin = await aged.connect(role="admin")
    (family,) = [
        one
        for one in (await admin.ask("daemon.metrics"))["families"]
        if one["name"] == "zotd_model_cache_missed_tokens"
    ]
    (sample,) = family["samples"]
    assert sample["labels"]["reason"] == "unknown"
    assert sample["value"] > 28_000


async def test_after_a_restart_a_miss_has_its_reason_all_the_same(tmp_path, cached, clock):
    server = await cached(text("one"), text("two"))
    async with AsyncExitStack() as stack:
        house = House(stack, await stack.enter_async_context(serving(tmp_path, clock=clock)))
        talk = await house.create("anthropic", server)
        await talk.run(LONG)
        (house.place.home / "AGENTS.md").write_text("Use tabs.")
    async with AsyncExitStack() as stack:
        house = House(stack, await stack.enter_async_context(serving(tmp_path, clock=clock)))
        talk = await house.follow(talk.id)
        await talk.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
        events = await talk.run("more")
    (notice,) = notices(events)
    assert "the system prompt changed (" in notice
    assert "AGENTS.md)" in notice


async def test_a_summary_is_not_written_and_leaves_tools_and_system_prompt_in_the_cache(aged, cached):
    server = await cached(text("one"), text("two"), text("three"), text("They counted."), text("four"))
    talk = await aged.create("anthropic", server)
    for message in (LONG, "b", "c"):
        await talk.run(message)
    await talk.ask("compact")
    await talk.until("done")
    assert [block.ttl for block in blocks_of(server.requests[3].body) if block.ttl] == []
    events = await talk.run("d")
    assert usage(events)[0][0] > 1_000
    assert notices(events) == []
    kept = [message["content"][0]["text"] for message in server.requests[4].messages]
    assert kept[1:] == ["two", "c", "three", "d\n\n(The date is 2031-01-01 now.)"]


async def test_a_rewind_reads_what_was_there_then(aged, cached):
    server = await cached(text("one"), text("two"), text("other"))
    talk = await aged.create("anthropic", server)
    (first,) = usage(await talk.run(LONG))
    seq = (await talk.ask("session.history"))["messages"][1]["seq"]
    await talk.run("and?")
    await talk.ask("session.rewind", seq=seq)
    await talk.until("rewound")
    events = await talk.run("differently")
    assert usage(events)[0][0] == sum(first)
    assert notices(events) == []


async def test_notices_can_be_switched_off_and_the_cache_too(aged, cached, clock):
    (aged.place.home / "config.toml").write_text("[cache]\nnotice = false\nttl = '5m'\n")
    admin = await aged.connect(role="admin")
    assert (await admin.ask("daemon.reload"))["applied"] == ["cache.notice", "cache.ttl"]
    server = await cached(*[text("Yes.")] * 3)
    talk = await aged.create("anthropic", server)
    await talk.run(LONG)
    clock.advance(6 * MINUTE)
    events = await talk.run("Still there?")
    assert (usage(events)[0][0], notices(events)) == (0, [])
    (aged.place.home / "config.toml").write_text("[cache]\nttl = 'off'\n")
    await admin.ask("daemon.reload")
    events = await talk.run("And now?")
    assert (usage(events), notices(events)) == ([(0, 0)], [])
    ttls = [{block.ttl for block in blocks_of(one.body) if block.ttl} for one in server.requests]
    assert ttls == [{"5m"}, {"5m"}, set()]


async def test_another_model_has_to_read_everything(aged, cached):
    server = await cached(text("one"), text("two"))
    talk = await aged.create("anthropic", server, model="claude-sonnet-4-5")
    await talk.run(LONG)
    await talk.ask("set_model", model="claude-haiku-4-5")
    (notice,) = notices(await talk.run("more"))
    assert notice.endswith("the model changed from anthropic/claude-sonnet-4-5 to anthropic/claude-haiku-4-5")
