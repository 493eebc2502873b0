"""Inputs that join the run in progress (`when_busy: "steer"`)."""

import asyncio
import os

from zotd.testing.script import CallPart, Gate, Hang, ScriptedReply, TextPart, calls, text


def asked(received):
    """The words of the user in a request to the model."""
    said = [message["content"] for message in received.messages if message["role"] == "user"]
    blocks = [block for one in said for block in ([{"type": "text", "text": one}] if isinstance(one, str) else one)]
    return [block["text"] for block in blocks if block["type"] == "text"]


async def steer(talk, *messages):
    """Send them while something runs; the ids of the inputs."""
    answers = [await talk.ask("prompt", message=message, when_busy="steer") for message in messages]
    assert not any(answer["started"] for answer in answers)
    return [answer["input"] for answer in answers]


async def runs(talk, number):
    return [event for _ in range(number) for event in await talk.until("done")]


async def test_an_input_joins_behind_the_calls_that_run_and_the_model_reads_it_with_their_results(
    house, model, vendor, look
):
    os.mkfifo(house.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo started; read < go"})), text("As you like."))
    talk = await house.create(vendor, server)
    first = await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    (joined,) = await steer(talk, "rather to the left")
    (waiting,) = (await talk.until("queue_changed"))[-1]["items"]
    assert (waiting["id"], waiting["mode"]) == (joined, "steer")
    (house.cwd / "go").write_text("well\n")
    events = await talk.until("done")
    assert asked(server.requests[0]) == ["go"]
    assert asked(server.requests[1]) == ["go", "rather to the left"]
    assert look.kinds(events)[:4] == ["tool_result", "user_message", "queue_changed", "turn_start"]
    (shown,) = look.only(events, "user_message")
    assert (shown["input"], shown["run"]) == (joined, first["run"])
    assert look.only(events, "queue_changed")[0]["items"] == []
    assert len(look.only(events, "done")) == 1
    assert (await talk.ask("queue.list"))["items"] == []


async def test_a_finished_run_continues_with_joining_inputs_in_their_order(house, model, vendor, look):
    gate = asyncio.Event()
    server = await model(
        ScriptedReply([TextPart(["The first "]), Gate(gate), TextPart(["answer."])]), text("The second answer.")
    )
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await steer(talk, "also this", "and that")
    gate.set()
    events = await talk.until("done")
    assert asked(server.requests[1]) == ["go", "also this", "and that"]
    assert [event["stop"] for event in look.only(events, "turn_end")] == ["end_turn", "end_turn"]
    assert [role for role, _ in await talk.texts()] == ["user", "assistant", "user", "user", "assistant"]


async def test_one_that_waits_for_its_turn_does_not_join_and_comes_after_those_that_do(house, model, vendor):
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["Well, "]), Gate(gate)]), text("joined"), text("queued"))
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await talk.ask("prompt", message="later")
    await steer(talk, "now")
    gate.set()
    await runs(talk, 2)
    assert [asked(request)[-1] for request in server.requests] == ["go", "now", "later"]


async def test_with_nothing_running_it_starts_like_any_other(house, model, vendor):
    talk = await house.create(vendor, await model(text("hi")))
    answer = await talk.ask("prompt", message="go", when_busy="steer")
    assert answer["started"] is True
    await talk.until("done")
    assert await talk.texts() == [("user", ["go"]), ("assistant", ["hi"])]


async def test_one_that_comes_after_an_abort_gets_a_run_of_its_own(house, model, look):
    os.mkfifo(house.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo started; read < go"})), text("fine"))
    talk = await house.create("openai", server)
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    await talk.ask("abort")
    await talk.ask("prompt", message="another thing", when_busy="steer")
    events = await runs(talk, 2)
    assert [event["stop"] for event in look.only(events, "turn_end")] == ["aborted", "end_turn"]
    assert asked(server.requests[1]) == ["go", "another thing"]


async def test_one_that_joins_may_be_withdrawn_until_it_has(house, model):
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["Well, "]), Gate(gate)]), text("never asked for"))
    talk = await house.create("openai", server)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    (joined,) = await steer(talk, "no")
    await talk.ask("queue.withdraw", input=joined)
    gate.set()
    await talk.until("done")
    assert len(server.requests) == 1
    assert await talk.refused("queue.withdraw", input=joined) == "not_found"


async def test_at_the_step_limit_the_run_ends_well_and_the_input_gets_a_run_of_its_own(house, model, look):
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["Well, "]), Gate(gate)]), text("yes"))
    talk = await house.create("anthropic", server, max_steps=1)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await steer(talk, "and?")
    gate.set()
    events = await runs(talk, 2)
    assert [event["stop"] for event in look.only(events, "turn_end")] == ["end_turn", "end_turn"]
    assert not look.only(events, "error")


async def test_after_an_abort_it_is_held_like_all_that_wait(house, model):
    talk = await house.create(
        "openai", await model(ScriptedReply([TextPart(["Well, "]), Hang()]), text("a"), text("b"))
    )
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    (joined,) = await steer(talk, "no, so")
    await talk.ask("abort")
    await talk.until("done")
    held = (await talk.until("queue_changed"))[-1]
    assert (held["held"], [item["id"] for item in held["items"]]) == (True, [joined])
    await talk.ask("prompt", message="go on")
    await runs(talk, 2)
    assert [words for role, words in await talk.texts() if role == "user"] == [["go"], ["no, so"], ["go on"]]
