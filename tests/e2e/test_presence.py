"""Who looks at a session; and who is called, once, when nobody does."""

import re
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House, only
from zotd.testing.live_daemon import serving
from zotd.testing.script import CallPart, Hang, Refusal, ScriptedReply, TextPart, calls, text


@pytest.fixture
async def house_after(tmp_path, monkeypatch):
    """`await house_after(s)`: a daemon that calls nobody for a run shorter than so many seconds."""
    async with AsyncExitStack() as stack:

        async def start(seconds):
            place = await stack.enter_async_context(serving(tmp_path, {"ZOT_LIMITS_ATTENTION_S": str(seconds)}))
            monkeypatch.setenv("HOME", place.env["HOME"])
            return House(stack, place)

        yield start


@pytest.fixture
async def house(house_after):
    """One that calls somebody for any run."""
    return await house_after(0)


async def look(talk, *, focused, **fields):
    await talk.ask("presence.update", focused=focused, **fields)


def attention(talk):
    """How often, and for what, this client was to call a person."""
    return [(frame["reason"], frame["text"]) for frame in talk.client.seen if frame["type"] == "attention"]


async def crowd(house, talk, *, count):
    """More clients of the same session."""
    return [await house.follow(talk.id) for _ in range(count)]


async def run(talk, *others):
    """One run that everybody has seen to its end."""
    await talk.ask("prompt", message="go")
    for one in (talk, *others):
        await one.until("done")


# --- who looks --------------------------------------------------------------------------------------------------


async def test_everybody_sees_who_looks_and_who_types(house, model):
    talk = await house.create("openai", await model())
    (other,) = await crowd(house, talk, count=1)
    before = (await talk.ask("presence"))["clients"]
    assert [client.keys() for client in before] == [{"id", "name", "kind", "since"}] * 2
    await look(other, focused=True, typing=True)
    seen = (await talk.client.until("presence"))[-1]["clients"]
    while seen[-1].get("focused") is None:
        seen = (await talk.client.until("presence"))[-1]["clients"]
    assert seen == [before[0], before[1] | {"focused": True, "typing": True}]
    assert (await talk.ask("presence"))["clients"] == seen


async def test_a_client_can_ask_for_its_identity(house, model):
    talk = await house.create("openai", await model())
    (other,) = await crowd(house, talk, count=1)
    first, second = [await one.ask("presence") for one in (talk, other)]
    assert [first["you"], second["you"]] == [client["id"] for client in first["clients"]]


async def test_unchanged_values_are_not_sent(house, model):
    talk = await house.create("openai", await model())
    await look(talk, focused=True)
    await talk.ask("ping")
    told = len(only(talk.client.seen, "presence"))
    await look(talk, focused=True)
    await talk.ask("ping")
    assert len(only(talk.client.seen, "presence")) == told


async def test_a_client_that_does_not_follow_the_session_has_nothing_to_say_of_it(house, model):
    talk = await house.create("openai", await model())
    other = await house.connect()
    assert await other.refused("presence.update", session=talk.id, focused=True) == "conflict"
    await talk.ask("detach")
    assert await talk.refused("presence.update", focused=True) == "conflict"


# --- who is called ----------------------------------------------------------------------------------------------


async def test_the_end_of_a_run_calls_the_client_that_was_looked_at_last(house, model):
    talk = await house.create("openai", await model(text("hi")), name="tests")
    first, last, never = await crowd(house, talk, count=3)
    for one in (first, last):
        await look(one, focused=True)
        await look(one, focused=False)
    await look(never, focused=False)
    await run(talk, first, last, never)
    ((reason, sentence),) = attention(last)
    assert reason == "done"
    assert re.fullmatch(r"tests: done after \d+ s", sentence)
    assert [attention(one) for one in (talk, first, never)] == [[], [], []]


async def test_typing_outranks_looking_for_presence(house, model):
    talk = await house.create("openai", await model(text("hi")))
    first, second = await crowd(house, talk, count=2)
    await look(second, focused=True)
    await look(second, focused=False)
    await look(first, focused=False, typing=True)
    await run(talk, first, second)
    assert [len(attention(one)) for one in (first, second)] == [1, 0]


async def test_no_notification_is_sent_while_a_client_has_focus(house, model):
    talk = await house.create("openai", await model(text("one"), text("two")))
    (other,) = await crowd(house, talk, count=1)
    await look(talk, focused=False)
    await look(other, focused=True)
    await run(talk, other)
    assert attention(talk) == attention(other) == []
    other.client.cut()
    await talk.client.until("presence")
    while len((await talk.ask("presence"))["clients"]) > 1:
        await talk.client.until("presence")
    await run(talk)
    assert len(attention(talk)) == 1


async def test_a_client_that_never_spoke_of_its_focus_is_not_called(house, model):
    talk = await house.create("openai", await model(text("hi")))
    await run(talk)
    assert attention(talk) == []


async def test_nor_when_another_one_did(house, model):
    talk = await house.create("openai", await model(text("hi")))
    (script,) = await crowd(house, talk, count=1)
    await look(talk, focused=False)
    await run(talk, script)
    assert [len(attention(one)) for one in (talk, script)] == [1, 0]


async def test_no_notification_is_sent_for_a_short_run(house_after, model):
    house = await house_after(3600)
    talk = await house.create("openai", await model(text("hi")))
    await look(talk, focused=False)
    await run(talk)
    assert attention(talk) == []


async def test_a_question_calls_at_once_however_short_the_run(house_after, model):
    house = await house_after(3600)
    server = await model(calls(CallPart("bash", {"command": "true"})), text("done"))
    talk = await house.create("openai", server, mode="ask", name="tests")
    await talk.ask("hello", can_approve=True)
    await look(talk, focused=False)
    await talk.ask("prompt", message="go")
    asked = (await talk.until("approval_requested"))[-1]
    assert attention(talk) == [("needs_you", "tests: bash waits for your decision")]
    await talk.ask("approve", approval=asked["approval"], args_digest=asked["args_digest"], decision="allow")
    await talk.until("done")
    assert len(attention(talk)) == 1


async def test_a_run_that_fails_says_why(house, model):
    talk = await house.create("openai", await model(Refusal(401, "bad key")), name="a\x1b[31m")
    await look(talk, focused=False)
    await run(talk)
    ((reason, sentence),) = attention(talk)
    assert reason == "failed"
    assert sentence.startswith("a\\x1b[31m: failed: ")


async def test_an_abort_returns_after_the_end_of_the_run(house, model):
    talk = await house.create("openai", await model(ScriptedReply([TextPart(["Once "]), Hang()])))
    await look(talk, focused=False)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await talk.ask("abort")
    await talk.until("done")
    assert attention(talk) == []


async def test_a_client_that_may_only_read_does_not_keep_others_from_being_called(house):
    talk = await house.create("openai", None, secrets=None, provider="ollama", model="none")
    reader = await house.connect(role="read")
    await reader.ask("attach", session=talk.id)
    answer = await reader.answer("presence.update", session=talk.id, focused=True)
    assert (answer["success"], answer["code"]) == (False, "forbidden")
    await reader.ask("presence.update", session=talk.id, focused=False)
