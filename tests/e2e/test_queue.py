"""Inputs that wait: first in, first out; visible, movable, held when a run failed."""

import pytest

from zotd.testing.script import Hang, Refusal, ScriptedReply, text


async def three_waiting(house, model, vendor):
    """A run that hangs, and behind it a, b and c."""
    server = await model(ScriptedReply([Hang()]), *[text("fine")] * 4)
    talk = await house.create(vendor, server)
    answers = [await talk.ask("prompt", message=message, sender="me") for message in ("first", "a", "b", "c")]
    await server.received(1)
    return talk, [answer["input"] for answer in answers[1:]]


def asked(events):
    return [event["content"][0]["text"] for event in events if event["type"] == "user_message"]


async def test_prompts_run_one_after_the_other_in_their_order(house, model, vendor, look):
    server = await model(text("1"), text("2"), text("3"))
    talk = await house.create(vendor, server)
    for message in ("a", "b", "c"):
        talk.send("prompt", message=message)
    events = [event for _ in range(3) for event in await talk.until("done")]
    assert asked(events) == ["a", "b", "c"]
    order = [event["type"] for event in events if event["type"] in {"user_message", "done"}]
    assert order == ["user_message", "done"] * 3
    answers = {f["id"]: f["data"] for f in talk.client.seen if f.get("command") == "prompt"}
    places = [(answer["started"], answer.get("position")) for _, answer in sorted(answers.items())]
    assert places == [(True, None), (False, 1), (False, 2)]
    assert [event["items"] for event in look.only(events, "queue_changed")][-1] == []


async def test_every_client_sees_the_same_queue_with_its_senders(house, model, look):
    talk, waiting = await three_waiting(house, model, "openai")
    late = await house.follow(talk.id)
    assert [(item["id"], item["text"], item["sender"]) for item in late.snapshot["queue"]] == [
        (waiting[0], "a", "me"),
        (waiting[1], "b", "me"),
        (waiting[2], "c", "me"),
    ]
    assert (await late.ask("queue.list"))["items"] == late.snapshot["queue"]
    assert late.snapshot["held"] is False
    await late.ask("queue.move", input=waiting[2], position=1)
    await late.ask("queue.withdraw", input=waiting[0])
    for client in (talk, late):
        seen: list[dict[str, object]] = []
        while [item["text"] for item in seen] != ["c", "b"]:
            seen = (await client.until("queue_changed"))[-1]["items"]
    assert await talk.refused("queue.withdraw", input=waiting[0]) == "not_found"
    await talk.ask("abort")
    assert await talk.until("done")


async def test_after_an_abort_queued_inputs_are_held_until_the_next_prompt_and_run_in_order(house, model, vendor, look):
    talk, _ = await three_waiting(house, model, vendor)
    await talk.ask("abort")
    events = await talk.until("done")
    held = (await talk.until("queue_changed"))[-1]
    assert (held["held"], [item["text"] for item in held["items"]]) == (True, ["a", "b", "c"])
    assert await talk.state() == "held"
    assert (await talk.ask("queue.list"))["held"] is True
    late = await house.follow(talk.id)
    assert (late.snapshot["held"], late.snapshot["session"]["state"]) == (True, "held")
    await talk.ask("prompt", message="d")
    events = [event for _ in range(4) for event in await talk.until("done")]
    assert asked(events) == ["a", "b", "c", "d"]
    assert await talk.state() == "idle"


async def test_after_a_failed_run_what_waits_is_held(house, model, look):
    server = await model(lambda request: Refusal(400, "no") if "first" in str(request.messages) else text("fine"))
    talk = await house.create("anthropic", server)
    talk.send("prompt", message="first")
    talk.send("prompt", message="second")
    events = await talk.until("done")
    assert look.only(events, "turn_end")[0]["stop"] == "error"
    while not events[-1].get("held"):
        events = await talk.until("queue_changed")
    assert await talk.state() == "held"


async def test_withdrawing_all_that_is_held_leaves_an_idle_session(house, model):
    talk, waiting = await three_waiting(house, model, "anthropic")
    await talk.ask("abort")
    await talk.until("done")
    await talk.until("queue_changed")
    for name in waiting:
        await talk.ask("queue.withdraw", input=name)
    assert await talk.state() == "idle"
    assert (await talk.client.ask("session.list"))["sessions"][0]["state"] == "idle"


async def test_a_prompt_that_must_not_wait_is_refused(house, model, vendor):
    talk, _ = await three_waiting(house, model, vendor)
    assert await talk.refused("prompt", message="x", when_busy="reject") == "busy"
    assert await talk.refused("prompt", message="x", when_busy="now") == "bad_request"
    for command in ("clear", "set_model"):
        assert await talk.refused(command, model="claude-opus-4-1" if vendor == "anthropic" else "gpt-5") == "busy"
    assert len((await talk.ask("queue.list"))["items"]) == 3


async def test_the_queue_is_bounded(house, model):
    talk = await house.create("openai", await model(ScriptedReply([Hang()])))
    await talk.ask("prompt", message="first")
    for _ in range(64):
        await talk.ask("prompt", message="more")
    assert await talk.refused("prompt", message="one too many") == "queue_full"


@pytest.mark.parametrize("message", ["", " \n"])
async def test_an_empty_prompt_is_refused_before_anything_is_stored(house, model, message):
    talk = await house.create("openai", await model())
    assert await talk.refused("prompt", message=message) == "bad_request"
    assert (await talk.ask("get_state"))["message_count"] == 0


async def test_a_prompt_that_is_sent_again_runs_once_and_is_answered_alike(house, model, vendor, look):
    """A hundred times at once, over as many connections."""
    server = await model(text("once"), text("twice"))
    talk = await house.create(vendor, server)
    clients = [await house.connect() for _ in range(100)]
    request = {"session": talk.id, "message": "go", "request_id": "r1", "sender": "me"}
    sent = [(client, client.send("prompt", **request)) for client in clients]
    answers = [(await client.answer_to(number))["data"] for client, number in sent]
    assert answers == [answers[0]] * 100
    await talk.until("done")
    assert await talk.ask("prompt", message="go", request_id="r1", sender="me") == answers[0]
    assert len(server.requests) == 1
    assert await talk.refused("prompt", message="other", request_id="r1", sender="me") == "duplicate_key"
    assert (
        await talk.refused(
            "prompt", message="go", request_id="r1", sender="me", images=[{"mime_type": "image/png", "data": ""}]
        )
        == "duplicate_key"
    )
    assert asked(await talk.run("go", request_id="r2")) == ["go"]


async def test_a_session_that_is_created_again_with_the_same_key_is_the_same_one(house):
    client = await house.connect()
    params = {"cwd": str(house.cwd), "provider": "ollama", "model": "m", "request_id": "r1"}
    first = await client.ask("session.create", **params)
    again = await client.ask("session.create", **params, env={"OTHER": "1"})
    assert again == first
    assert len((await client.ask("session.list"))["sessions"]) == 1
    assert await client.refused("session.create", **params, name="other") == "duplicate_key"


async def test_a_sender_that_no_list_could_show_is_refused(house, model):
    talk = await house.create("openai", await model(text("hi")))
    assert await talk.refused("prompt", message="go", sender="x" * 201) == "bad_request"
    assert (await talk.run(sender="x" * 200))[0]["sender"] == "x" * 200
