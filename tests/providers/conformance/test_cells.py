"""The cells of the table that one session shows, for every vendor of the catalog."""

import asyncio
import base64
import json

import pytest

from tests.providers.conformance.conftest import PICTURE, assert_authorized, called, model_of, of, results, run
from tests.providers.conformance.table import APIS, CACHE, vendors_with
from zotd.testing.script import (
    CallPart,
    DeclinedPart,
    Gate,
    Refusal,
    ScriptedReply,
    StreamError,
    TextPart,
    calls,
    text,
)
from zotd.wire import events
from zotd.wire.api import PromptImage
from zotd.wire.content import Tokens


def every(column):
    """A test for each vendor whose API has what the column is about."""
    return pytest.mark.parametrize("vendor", vendors_with(column), ids=lambda vendor: vendor.name)


DATA = base64.b64encode(PICTURE).decode()


def images(received):
    """The images of a request, as base64, in any API."""
    return json.dumps(received.messages).count(DATA)


@every("stream")
async def test_a_reply_is_shown_while_it_comes(begin, vendor):
    rest = asyncio.Event()
    session = await begin(vendor, [ScriptedReply([TextPart(["Good ", "day"]), Gate(rest), TextPart(["!"])])])
    shown = []
    async for event in session.runtime.prompt("hi"):
        shown.append(event)
        if isinstance(event, events.TextDelta) and event.delta == "day":
            rest.set()
    assert [event.delta for event in of(shown, events.TextDelta)] == ["Good ", "day", "!"]
    assert not of(shown, events.Error)
    (received,) = session.server.requests
    assert_authorized(vendor, received)
    assert received.body["stream"] is True
    assert received.body.get("model", model_of(vendor)) == model_of(vendor)


@every("tools")
async def test_a_tool_is_called_and_its_result_goes_back(begin, vendor):
    session = await begin(vendor, [calls(CallPart("read", {"path": "a.txt"}), before="I look."), text("walrus")])
    shown = await run(session)
    assert not of(shown, events.Error)
    first, second = session.server.requests
    assert "read" in json.dumps(first.body["tools"])
    ((call, result),) = results(second)
    assert "walrus" in result
    assert called(second) == [call]
    for received in (first, second):
        assert_authorized(vendor, received)


@every("parallel tools")
async def test_calls_side_by_side_get_their_own_results(begin, vendor):
    two = [CallPart("read", {"path": name}) for name in ("a.txt", "b.txt")]
    session = await begin(vendor, [calls(*two), text("both")])
    assert not of(await run(session), events.Error)
    found = results(session.server.requests[1])  # in the order in which the calls have ended
    first, second = called(session.server.requests[1])
    assert sorted(call for call, _ in found) == sorted({first, second})
    assert "walrus" in dict(found)[first]
    assert "narwhal" in dict(found)[second]


@every("images")
async def test_images_of_prompts_and_of_tools_reach_the_model(begin, vendor):
    session = await begin(vendor, [calls(CallPart("read", {"path": "a.png"})), text("a cat")])
    shown = await run(session, images=[PromptImage("image/png", DATA)])
    assert not of(shown, events.Error)
    assert not of(shown, events.Notice)
    assert [images(received) for received in session.server.requests] == [1, 2]


@every("cache figures")
async def test_what_the_cache_has_read_and_taken_is_counted_apart(begin, vendor):
    usage = Tokens(
        input=1000, output=100, cache_read=5000, cache_write=700 if CACHE[APIS[vendor.api]] == "read, written" else 0
    )
    session = await begin(vendor, [ScriptedReply([TextPart(["Yes."])], usage=usage)])
    (told,) = of(await run(session), events.Usage)
    assert (told.input, told.output, told.cache_read, told.cache_write) == (1000, 100, 5000, usage.cache_write)


@every("refusal")
async def test_a_refusal_ends_the_run_with_a_sentence_and_the_next_prompt_works(begin, vendor):
    declined = [
        ScriptedReply([TextPart(["No"])], stop="refusal"),
        ScriptedReply([DeclinedPart(["I can", "not."])], "refusal"),
    ]
    session = await begin(vendor, [*declined, text("Yes.")])
    for _ in declined:
        shown = await run(session)
        (error,) = of(shown, events.Error)
        assert error.message == f"{model_of(vendor)} declined to answer; rephrase the prompt or use another model"
    assert not of(await run(session), events.Error)


@every("overload")
async def test_an_overload_is_waited_out_before_a_reply_and_in_the_middle_of_one(begin, vendor):
    overloads = [Refusal(529), Refusal(503), ScriptedReply([TextPart(["Once"]), StreamError()])]
    session = await begin(vendor, [*overloads, text("at last")])
    shown = await run(session)
    told = of(shown, events.Retry)
    assert [(event.brief, "overloaded" in event.reason.lower()) for event in told] == [
        ("HTTP 529", True),
        ("HTTP 503", True),
        ("the reply was cut off" if APIS[vendor.api] == "Ollama" else "overloaded", True),  # its errors have no type
    ]
    assert all(vendor.title in event.reason for event in told)
    assert not of(shown, events.Error)
    assert of(shown, events.AssistantMessage)[-1].content[0].text == "at last"
    bodies = [received.body for received in session.server.requests]
    assert len(bodies) == 4
    assert all(body == bodies[0] for body in bodies)
    for received in session.server.requests:
        assert_authorized(vendor, received)
