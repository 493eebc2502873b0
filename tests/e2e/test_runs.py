"""What a prompt does, through both vendors' SDKs: the events of `docs/protocol.md` in their order, tools on real files."""

import asyncio
import os

import pytest

from zotd.testing.script import CallPart, Cut, Refusal, ScriptedReply, StreamError, TextPart, ThinkingPart, calls, text
from zotd.wire.content import Tokens

HTTP_BUSY = {"anthropic": 529, "openai": 503}

SOON = {"retry-after": "0.01"}
LATER = {"retry-after": "3600"}


async def test_the_events_of_a_run_come_in_their_order(house, model, vendor, look):
    (house.cwd / "a.txt").write_text("walrus\n")
    server = await model(calls(CallPart("read", {"path": "a.txt"}), before="I look."), text("It says ", "walrus", "."))
    talk = await house.create(vendor, server)
    events = await talk.run("what does a.txt say?")
    assert look.kinds(events) == [
        "user_message",
        *("turn_start", "assistant_start", "text_delta", "tool_use_start", "tool_use_args", "tool_use_end"),
        *("usage", "assistant_message", "tool_call", "turn_end", "tool_start", "tool_result"),
        *("turn_start", "assistant_start", "text_delta", "usage", "assistant_message", "turn_end"),
        "done",
    ]
    assert "".join(event["delta"] for event in look.only(events, "text_delta")) == "I look.It says walrus."
    assert [event["stop"] for event in look.only(events, "turn_end")] == ["tool_use", "end_turn"]
    assert [event["step"] for event in look.only(events, "turn_start")] == [1, 2]
    committed = [event["seq"] for event in events if "seq" in event]
    assert committed == list(range(1, len(committed) + 1))
    call, result = look.only(events, "tool_call")[0], look.only(events, "tool_result")[0]
    assert call["id"] == result["id"] == look.only(events, "tool_use_start")[0]["id"]
    assert (call["name"], call["args"], result["is_error"]) == ("read", {"path": "a.txt"}, False)
    assert "walrus" in result["content"][0]["text"]


async def test_the_answer_to_a_prompt_precedes_every_event_that_it_causes(house, model, vendor):
    server = await model(text("hi"))
    talk = await house.create(vendor, server)
    talk.send("prompt", message="go")
    await talk.until("done")
    frames = [frame["type"] for frame in talk.client.seen]
    first, second = talk.client.seen[frames.index("user_message") - 1 :][:2]
    assert (first["type"], first["command"], second["type"]) == ("response", "prompt", "user_message")
    assert first["data"]["started"] is True
    assert (second["input"], second["run"]) == (first["data"]["input"], first["data"]["run"])


async def test_tokens_are_counted_for_each_call_and_for_the_session(house, model, vendor, look):
    used = Tokens(input=100, output=20, cache_read=7)
    server = await model(text("one", usage=used), text("two", usage=used))
    talk = await house.create(vendor, server)
    first, second = await talk.run(), await talk.run()
    counted = [look.only(events, "usage")[0] for events in (first, second)]
    assert [(one["input"], one["output"], one["cache_read"]) for one in counted] == [(100, 20, 7)] * 2
    total = (await talk.ask("get_state"))["usage"]
    assert (total["input"], total["output"], total["cache_read"]) == (200, 40, 14)
    assert counted[1]["cumulative"]["input"] == 200
    assert total["cost_usd"] == pytest.approx(sum(one["cost_usd"] for one in counted))


RENDEZVOUS = """#!/bin/sh
case "$*" in
*one*) echo here > one; cat other ;;
*) cat one; echo here > other ;;
esac
exit 1
"""


async def test_calls_that_may_run_in_parallel_run_side_by_side(house, model, vendor, look):
    """Two searches wait for each other through two pipes: one after the other they would never end."""
    for name in ("one", "other"):
        os.mkfifo(house.cwd / name)
    program = house.cwd / "rg"
    program.write_text(RENDEZVOUS)
    program.chmod(0o755)
    server = await model(
        calls(CallPart("grep", {"pattern": "one"}), CallPart("grep", {"pattern": "other"})), text("ok")
    )
    talk = await house.create(vendor, server, env={"PATH": f"{house.cwd}:{os.environ['PATH']}"})
    events = await talk.run()
    found = look.only(events, "tool_result")
    assert [result["content"][0]["text"] for result in found] == ["no matches"] * 2


async def test_calls_that_change_something_run_one_after_the_other_in_their_order(house, model, vendor, look):
    (house.cwd / "log").write_text("0\n")
    server = await model(
        calls(
            CallPart("bash", {"command": "echo 1 >> log"}),
            CallPart("edit", {"path": "log", "edits": [{"oldText": "0\n1\n", "newText": "0\n1\n2\n"}]}),
            CallPart("write", {"path": "copy", "content": "before"}),
            CallPart("bash", {"command": "cat log copy; echo 3 >> log"}),
        ),
        text("done"),
    )
    talk = await house.create(vendor, server)
    events = await talk.run()
    found = look.only(events, "tool_result")
    assert [result["is_error"] for result in found] == [False] * 4, found
    assert [result["id"] for result in found] == [call["id"] for call in look.only(events, "tool_call")]
    assert "0\n1\n2\nbefore" in found[3]["content"][0]["text"]
    assert (house.cwd / "log").read_text() == "0\n1\n2\n3\n"


async def test_a_tools_output_shows_while_it_runs(house, model, vendor, look):
    os.mkfifo(house.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo working; cat go"})), text("ok"))
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    shown = await talk.until("tool_progress")
    assert "working" in shown[-1]["text"]
    await asyncio.to_thread((house.cwd / "go").write_text, "on")  # the tool waits for it: it cannot have ended before
    rest = await talk.until("done")
    assert "working" in look.only(rest, "tool_result")[0]["content"][0]["text"]


async def test_an_unknown_tool_and_broken_arguments_are_answered_and_the_run_continues(house, model, vendor, look):
    server = await model(
        calls(CallPart("fly", {}), CallPart("read", raw='{"path": "a'), CallPart("read", raw='["a"]')), text("I see.")
    )
    talk = await house.create(vendor, server)
    events = await talk.run()
    found = look.only(events, "tool_result")
    assert [result["is_error"] for result in found] == [True] * 3
    said = [result["content"][0]["text"] for result in found]
    assert 'unknown tool "fly"' in said[0]
    assert "bash" in said[0]
    assert "not a JSON object" in said[1]
    assert "not a JSON object" in said[2]
    assert look.kinds(events)[-3:] == ["assistant_message", "turn_end", "done"]
    assert len(server.requests) == 2


async def test_the_model_sees_the_whole_conversation(house, model, vendor, results):
    (house.cwd / "a").write_text("walrus")
    server = await model(calls(CallPart("read", {"path": "a"})), text("ok"), text("again"))
    talk = await house.create(vendor, server, append_system_prompt=["Answer in Latin."])
    await talk.run("first")
    await talk.run("second")
    last = server.requests[-1]
    assert "Answer in Latin." in str(last.body)
    assert str(house.cwd) in str(last.body)
    assert "walrus" in results(last)[0]
    assert [words for words in ("first", "second") if words in str(last.messages)] == ["first", "second"]
    assert (
        server.requests[0]
        .headers.get("x-api-key", server.requests[0].headers.get("Authorization", ""))
        .endswith("sk-scripted-key")
    )


async def test_thinking_goes_back_to_the_model_but_is_not_shown(house, model, look):
    server = await model(
        ScriptedReply([ThinkingPart(["hm ", "hm"]), TextPart(["I look."]), CallPart("glob", {"pattern": "*"})]),
        text("ok"),
    )
    talk = await house.create("anthropic", server, reasoning="low")
    events = await talk.run()
    assert "hm hm" not in str(events)
    assert "hm hm" in str(server.requests[1].messages)


async def test_the_step_limit_is_an_error_and_the_next_prompt_continues(house, model, vendor, look):
    more = calls(CallPart("glob", {"pattern": "*"}))
    server = await model(more, more, text("finished"))
    talk = await house.create(vendor, server, max_steps=2)
    events = await talk.run()
    assert len(server.requests) == 2
    assert look.kinds(events)[-3:] == ["tool_result", "error", "done"]
    assert "step limit of 2" in look.only(events, "error")[0]["message"]
    assert look.kinds(await talk.run("go on"))[-1] == "done"
    assert (await talk.texts())[-1] == ("assistant", ["finished"])


async def test_an_empty_reply_ends_the_run_and_leaves_a_legal_history(house, model, vendor, look):
    server = await model(ScriptedReply([]), text("now"))
    talk = await house.create(vendor, server)
    assert look.kinds(await talk.run())[-2:] == ["turn_end", "done"]
    assert look.kinds(await talk.run())[-2:] == ["turn_end", "done"]
    assert (await talk.texts())[-1] == ("assistant", ["now"])


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_busy_vendor_is_asked_again_and_each_retry_is_shown(house, model, vendor, look):
    busy = Refusal(HTTP_BUSY[vendor], headers=SOON)
    server = await model(busy, Refusal(429, headers=SOON), text("at last"))
    talk = await house.create(vendor, server)
    events = await talk.run()
    assert look.kinds(events) == [
        *("user_message", "turn_start", "retry", "assistant_start", "text_delta"),
        *("usage", "assistant_message", "turn_end", "done"),
    ]
    retries = look.only(events, "retry")
    assert [(retry["attempt"], retry["of"], retry["delay_s"]) for retry in retries] == [(1, 0, 0.01), (2, 0, 0.01)]
    assert all("seq" not in retry for retry in retries)


async def test_a_request_that_still_fails_when_the_patience_is_used_up_is_an_error(house, model, vendor, look):
    server = await model(Refusal(500, "out of order", headers=SOON), Refusal(500, "out of order", headers=LATER))
    talk = await house.create(vendor, server)
    events = await talk.run(patience_s=10)
    assert look.kinds(events) == ["user_message", "turn_start", "retry", "turn_end", "error", "done"]
    assert len(look.only(events, "retry")) == 1
    end, error = look.only(events, "turn_end")[0], look.only(events, "error")[0]
    assert end["stop"] == "error"
    assert "out of order" in end["error"] == error["message"]
    assert "gave up after 2 tries" in error["message"]


async def test_without_patience_the_first_failure_ends_the_run(house, model, vendor, look):
    server = await model(Refusal(500, "out of order"), text("later"))
    talk = await house.create(vendor, server)
    events = await talk.run(patience_s=0)
    assert look.kinds(events) == ["user_message", "turn_start", "turn_end", "error", "done"]
    assert look.kinds(await talk.run())[-1] == "done"


async def test_a_patience_that_is_no_duration_is_refused(house, model):
    talk = await house.create("openai", await model())
    assert await talk.refused("prompt", message="go", patience_s=-1) == "bad_request"


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_a_request_that_is_refused_is_not_repeated(house, model, vendor, look, status):
    server = await model(Refusal(status, "no"), text("later"))
    talk = await house.create(vendor, server)
    events = await talk.run()
    assert look.kinds(events) == ["user_message", "turn_start", "turn_end", "error", "done"]
    assert len(server.requests) == 1


BREAKS = {
    "the connection in the text": ScriptedReply([TextPart(["Once upon"]), Cut()]),
    "an error in the text": ScriptedReply([TextPart(["Once upon"]), StreamError()]),
    "the connection in a call": ScriptedReply(
        [TextPart(["Once upon"]), CallPart("write", {"path": "x", "content": "y"}), Cut()]
    ),
    "the connection in a second call": ScriptedReply(
        [
            TextPart(["Once upon"]),
            CallPart("glob", {"pattern": "*"}),
            CallPart("write", {"path": "x", "content": "y"}),
            Cut(),
        ]
    ),
}


@pytest.mark.parametrize("count", [2, 200])
async def test_text_that_comes_together_with_an_error_is_shown_and_kept(house, model, vendor, look, count):
    server = await model(ScriptedReply([TextPart(["word "] * count), StreamError()], joined=True))
    talk = await house.create(vendor, server)
    events = await talk.run(patience_s=0)
    whole = "word " * count
    assert "".join(event["delta"] for event in look.only(events, "text_delta")) == whole
    assert (await talk.texts())[-1] == ("assistant", [whole])
    assert look.only(events, "error")


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
async def test_a_reply_that_breaks_is_asked_for_again_and_what_came_of_it_stays_for_people(
    house, model, vendor, look, broken
):
    server = await model(broken, text("Once upon a time."), text("on"))
    talk = await house.create(vendor, server)
    events = await talk.run()
    assert look.kinds(events)[-3:] == ["assistant_message", "turn_end", "done"]
    said = [look.words(event["content"]) for event in look.only(events, "assistant_message")]
    assert said == [["Once upon"], ["Once upon a time."]]
    [note] = look.only(events, "interrupted")
    assert (note["what"], "asked again" in note["text"], "Once upon" in note["text"]) == ("reply", True, False)
    [retry] = look.only(events, "retry")
    assert retry["attempt"] == 1
    assert look.kinds(events).count("turn_start") == 1
    assert not look.only(events, "tool_result")
    assert not (house.cwd / "x").exists()
    assert look.kinds(await talk.run("go on"))[-1] == "done"  # the scripted model refuses a history that is not legal
    assert await talk.texts() == [
        ("user", ["go"]),
        ("assistant", ["Once upon a time."]),
        ("user", ["go on"]),
        ("assistant", ["on"]),
    ]


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
async def test_without_patience_a_reply_that_breaks_is_an_error_and_leaves_a_legal_history(
    house, model, vendor, look, broken
):
    server = await model(broken, text("Once upon a time."))
    talk = await house.create(vendor, server)
    events = await talk.run(patience_s=0)
    assert look.kinds(events)[-3:] == ["turn_end", "error", "done"]
    assert look.only(events, "turn_end")[-1]["stop"] == "error"
    assert not look.only(events, "retry")
    assert not look.only(events, "tool_result")
    assert not (house.cwd / "x").exists()
    assert len(server.requests) == 1
    assert look.kinds(await talk.run("go on"))[-1] == "done"  # the scripted model refuses a history that is not legal
    assert await talk.texts() == [
        ("user", ["go"]),
        ("assistant", ["Once upon"]),
        ("user", ["go on"]),
        ("assistant", ["Once upon a time."]),
    ]


async def test_a_call_that_ran_out_of_tokens_does_not_run(house, model, vendor, look):
    server = await model(
        ScriptedReply([TextPart(["I write."]), CallPart("write", {"path": "x", "content": "y"})], stop="length"),
        text("ok"),
    )
    talk = await house.create(vendor, server)
    events = await talk.run()
    assert look.only(events, "turn_end")[-1]["stop"] == "length"
    assert not look.only(events, "tool_call")
    assert not (house.cwd / "x").exists()
    assert look.kinds(await talk.run())[-1] == "done"


async def test_a_vendor_that_cannot_be_reached_is_named_with_the_way_out(house, model, vendor, look):
    server = await model()
    talk = await house.create(vendor, server, base_url="http://127.0.0.1:1")
    await talk.ask("prompt", message="go")
    retry = (await talk.until("retry"))[-1]
    assert "127.0.0.1:1" in retry["reason"]
    talk.send("abort")
    assert look.kinds(await talk.until("done"))[-1] == "done"


async def test_the_total_of_all_python_lines_is_counted_and_written(house, model, vendor, look):
    """The issue's own example."""
    for number in range(1, 4):
        (house.cwd / f"{number}.py").write_text("pass\n" * number)
    server = await model(
        calls(CallPart("glob", {"pattern": "**/*.py"})),
        calls(CallPart("bash", {"command": "cat *.py | wc -l"})),
        calls(CallPart("write", {"path": "total.txt", "content": "6\n"})),
        text("6 lines."),
    )
    talk = await house.create(vendor, server)
    second = await house.follow(talk.id)
    events = await talk.run("count the lines of every Python file here and write the total to total.txt")
    assert (house.cwd / "total.txt").read_text() == "6\n"
    assert "1.py" in look.only(events, "tool_result")[0]["content"][0]["text"]
    assert "\n6\n" in look.only(events, "tool_result")[1]["content"][0]["text"]
    assert await second.until("done") == events
