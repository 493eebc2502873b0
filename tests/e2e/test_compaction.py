"""Summaries: on command, at 85 % of the window, and when the vendor says that the transcript is too long."""

import pytest

from zotd.core.transcript import SUMMARY_HEAD
from zotd.testing.script import CallPart, Hang, Refusal, ScriptedReply, calls, text
from zotd.wire.content import Tokens

FULL = Tokens(input=190_000, output=10)
"""More than 85 % of any window of 200,000 tokens."""

TOO_LONG = {
    "anthropic": Refusal(400, "prompt is too long: 201234 tokens > 200000 maximum"),
    "openai": Refusal(400, "This model's maximum context length is 128000 tokens.", kind="context_length_exceeded"),
}

SMALL = {"anthropic": "claude-haiku-4-5", "openai": "gpt-4o"}
"""Models with a window that `FULL` fills."""


async def test_a_compaction_replaces_what_the_model_sees_and_not_what_people_see(house, model, vendor, look):
    server = await model(text("one"), text("two"), text("three"), text("They counted."), text("four"))
    talk = await house.create(vendor, server)
    for message in ("a", "b", "c"):
        await talk.run(message)
    await talk.ask("compact", instructions="keep the numbers")
    events = await talk.until("done")
    assert look.kinds(events) == ["compact_done", "done"]
    assert events[0]["summary"] == "They counted."
    assert "keep the numbers" in str(server.requests[3].messages)
    await talk.run("d")
    seen = await talk.texts()
    assert seen[0] == ("user", [SUMMARY_HEAD + "They counted."])
    assert seen[-2:] == [("user", ["d"]), ("assistant", ["four"])]
    history = (await talk.ask("session.history"))["messages"]
    assert [look.words(message["content"])[0] for message in history] == [
        *("a", "one", "b", "two", "c", "three", "d", "four")
    ]


async def test_a_compaction_that_fails_changes_nothing(house, model, vendor, look):
    server = await model(text("one"), Refusal(400, "no"), text("two"))
    talk = await house.create(vendor, server)
    await talk.run("a")
    before = await talk.texts()
    await talk.ask("compact")
    assert look.kinds(await talk.until("done")) == ["error", "done"]
    assert await talk.texts() == before
    assert look.kinds(await talk.run("b"))[-1] == "done"


async def test_a_compaction_that_is_aborted_changes_nothing(house, model, vendor, look):
    server = await model(text("one"), ScriptedReply([Hang()]), text("two"))
    talk = await house.create(vendor, server)
    await talk.run("a")
    before = await talk.texts()
    await talk.ask("compact")
    await server.received(2)
    await talk.ask("abort")
    assert look.kinds(await talk.until("done")) == ["done"]
    assert await talk.texts() == before
    assert await talk.state() == "idle"
    assert look.kinds(await talk.run("b"))[-1] == "done"


async def test_an_empty_transcript_is_not_compacted(house, model, vendor, look):
    talk = await house.create(vendor, await model())
    await talk.ask("compact")
    assert look.kinds(await talk.until("done")) == ["error", "done"]


async def test_a_compaction_waits_its_turn(house, model, look):
    server = await model(text("one"), text("Summary."), text("two"))
    talk = await house.create("openai", server)
    talk.send("prompt", message="a")
    talk.send("compact")
    talk.send("prompt", message="b")
    events = [event for _ in range(3) for event in await talk.until("done")]
    order = [event["type"] for event in events if event["type"] in {"user_message", "compact_done", "done"}]
    assert order == ["user_message", "done", "compact_done", "done", "user_message", "done"]


async def test_a_full_window_is_summarised_before_the_next_step(house, model, vendor, look):
    (house.cwd / "a").write_text("walrus")
    full = ScriptedReply([CallPart("read", {"path": "a"})], usage=FULL)
    server = await model(full, text("A walrus was read."), text("done"))
    talk = await house.create(vendor, server, model=SMALL[vendor])
    events = await talk.run("read a")
    assert look.kinds(events) == [
        *("user_message", "turn_start", "assistant_start", "tool_use_start", "tool_use_args", "tool_use_end"),
        *("usage", "assistant_message", "tool_call", "turn_end", "tool_start", "tool_result", "compact_done"),
        *("turn_start", "assistant_start", "text_delta", "usage", "assistant_message", "turn_end", "done"),
    ]
    assert "A walrus was read." in str(server.requests[2].messages)


async def test_a_prompt_to_a_full_session_is_accepted_at_once_and_shown_before_the_summary(house, model, vendor, look):
    server = await model(text("one", usage=FULL), ScriptedReply([Hang()]), text("two"))
    talk = await house.create(vendor, server, model=SMALL[vendor])
    await talk.run("a")
    await talk.ask("prompt", message="b")
    await server.received(2)
    shown = await talk.until("user_message")
    assert look.words(shown[-1]["content"]) == ["b"]
    await talk.ask("abort")
    events = await talk.until("done")
    assert look.only(events, "turn_end")[-1]["stop"] == "aborted"
    assert (await talk.ask("queue.list"))["items"] == []
    assert [role for role, _ in await talk.texts()] == ["user", "assistant", "user"]


async def test_a_transcript_that_is_too_long_is_summarised_once_and_sent_again(house, model, vendor, look):
    server = await model(text("one"), TOO_LONG[vendor], text("Said one."), text("two"))
    talk = await house.create(vendor, server)
    await talk.run("a")
    events = await talk.run("b")
    assert look.kinds(events) == [
        *("user_message", "turn_start", "compact_done", "assistant_start", "text_delta"),
        *("usage", "assistant_message", "turn_end", "done"),
    ]
    assert len(server.requests) == 4


async def test_a_transcript_that_is_too_long_after_its_summary_is_an_error(house, model, vendor, look):
    server = await model(text("one"), TOO_LONG[vendor], text("Said one."), TOO_LONG[vendor])
    talk = await house.create(vendor, server)
    await talk.run("a")
    events = await talk.run("b")
    assert look.kinds(events) == ["user_message", "turn_start", "compact_done", "turn_end", "error", "done"]


@pytest.mark.parametrize("kept", range(1, 6))
async def test_a_call_is_never_cut_from_its_result(house, model, vendor, look, kept):
    """However the transcript ends, the scripted model refuses a history that is not legal."""
    steps = [calls(CallPart("glob", {"pattern": str(n)}), CallPart("glob", {"pattern": "*"})) for n in range(kept)]
    server = await model(*steps, text("one"), text("Summary."), text("two"))
    talk = await house.create(vendor, server)
    await talk.run("a")
    await talk.ask("compact")
    assert look.kinds(await talk.until("done")) == ["compact_done", "done"]
    assert look.only(await talk.run("b"), "turn_end")[-1]["stop"] == "end_turn"
