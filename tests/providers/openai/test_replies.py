"""What is made of the answers of OpenAI's Responses API."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.conftest import asking, assembled, broken_off, parts_of, user
from zotd.core.reply import Assembler, Counted, Stopped, TextChunk, ThinkingChunk
from zotd.core.retry import Failure
from zotd.providers.openai.responses.reply import ReplyReader
from zotd.providers.shared import Target, Vendor
from zotd.providers.shared.streaming import Events
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.testing.responses_dialect import Responses
from zotd.testing.script import CallPart, DeclinedPart, ScriptedReply, StreamError, TextPart, ThinkingPart
from zotd.wire import content
from zotd.wire.api import ModelInfo
from zotd.wire.content import Message, Thinking, Tokens, ToolCall, ToolResult

SOL = "gpt-5.6-sol"

WHOLE = ScriptedReply(
    [
        ThinkingPart(["I ", "look."], "e_1"),
        TextPart(["Let me ", "look."]),
        ThinkingPart([], "e_2"),
        CallPart("read", {"path": "a"}),
        CallPart("read", {"path": "b"}),
    ],
    usage=Tokens(input=7, output=3, cache_read=2, cache_write=1),
)


async def test_a_reply_becomes_blocks_that_can_be_sent_back(connect):
    async with ModelServer([WHOLE, script.text("ok")]) as server:
        model = connect(server, "responses", model=SOL)
        blocks = (await assembled(model)).message()
        results = [
            Message("tool", [ToolResult(block.id, False, [content.Text("A")])], "")
            for block in blocks
            if isinstance(block, ToolCall)
        ]
        await parts_of(model, asking(user("hi"), Message("assistant", blocks, ""), *results))
    first, text, second, call, other = blocks
    assert (first.encrypted, first.summary, first.model) == ("e_1", ["I look."], f"openai/{SOL}")
    assert (text.text, text.item[:4]) == ("Let me look.", "msg_")
    assert (second.encrypted, second.summary) == ("e_2", [])
    assert [call.args, other.args] == [{"path": "a"}, {"path": "b"}]
    sent = server.requests[1].messages[1:6]
    assert [item["id"] for item in sent] == [first.item, text.item, second.item, call.item, other.item]


async def test_tokens_are_counted_with_those_of_the_cache_and_of_the_reasoning_apart(connect):
    async with ModelServer([WHOLE]) as server:
        parts = await parts_of(connect(server, "responses"))
    assert [part for part in parts if isinstance(part, Counted)] == [Counted(Tokens(7, 3, 2, 1), reasoning=1)]


async def test_a_summary_is_shown_as_thinking_with_its_parts_apart(connect, raw):
    place = {"output_index": 0, "item_id": "rs_1"}
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    summary = [{"type": "summary_text", "text": text} for text in ("One.", "Two.")]
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.reasoning_summary_part.added", **place, "summary_index": 0},
        {"type": "response.reasoning_summary_text.delta", **place, "summary_index": 0, "delta": "One."},
        {"type": "response.reasoning_summary_part.added", **place, "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", **place, "summary_index": 1, "delta": "Two."},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**item, "summary": summary, "encrypted_content": "e"},
        },
        {"type": "response.completed", "response": {}},
    ]
    async with raw(*map(sse, events)) as server:
        parts = await parts_of(connect(server, "responses"))
    assert "".join(part.text for part in parts if isinstance(part, ThinkingChunk)) == "One.\n\nTwo."


def sse(event):
    return b"data: " + json.dumps(event).encode() + b"\n\n"


async def test_a_call_that_the_vendor_calls_incomplete_never_ends(connect, raw):
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "read", "arguments": "{}"}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}},
        {"type": "response.output_item.done", "output_index": 0, "item": {**call, "status": "incomplete"}},
        {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}},
    ]
    async with raw(*map(sse, events)) as server:
        reply = await assembled(connect(server, "responses"))
    assert (reply.message(), reply.stop) == ([], "length")


async def test_what_a_text_is_for_is_kept(connect, raw):
    part = {"type": "output_text", "text": "I look."}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "phase": "commentary", "content": [part]}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "I look."},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {}},
    ]
    async with raw(*map(sse, events)) as server:
        reply = await assembled(connect(server, "responses"))
    assert reply.message() == [content.Text("I look.", "msg_1", "commentary", "openai/a-model")]


async def test_reasoning_in_the_clear_is_shown_and_kept_with_its_author(connect, raw):
    item = {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "r"}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {}},
    ]
    async with raw(*map(sse, events)) as server:
        reply = await assembled(connect(server, "responses"))
    assert reply.message() == [Thinking("hm", item="r", model="openai/a-model")]


async def test_a_refusal_in_words_is_text_and_the_reply_says_that_it_was_refused(connect):
    async with ModelServer([ScriptedReply([DeclinedPart(["I can", "not."])])]) as server:
        reply = await assembled(connect(server, "responses"))
    assert (reply.text(), reply.stop) == ("I cannot.", "refusal")


@pytest.mark.parametrize(
    ("details", "stop"),
    [({"reason": "max_output_tokens"}, "length"), ({"reason": "content_filter"}, "refusal"), ({}, "length")],
)
async def test_an_incomplete_reply_says_why(connect, raw, details, stop):
    last = {"type": "response.incomplete", "response": {"incomplete_details": details}}
    async with raw(sse({"type": "response.output_text.delta", "delta": "Once"}), sse(last)) as server:
        assert (await parts_of(connect(server, "responses")))[1:] == [TextChunk("Once"), Stopped(stop)]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (StreamError("Busy", "server_is_overloaded"), Failure.OVERLOADED),
        (StreamError("Slow down", "rate_limit_exceeded", fails=True), Failure.RATE_LIMIT),
        (StreamError("Oops", "server_error", fails=True), Failure.CUT),
        (StreamError("Bad image", "invalid_image", fails=True), Failure.REFUSED),
        (StreamError("Not that", "invalid_prompt", fails=True), Failure.REFUSED),
        (StreamError("Too long", "context_length_exceeded"), Failure.CONTEXT),
        (StreamError("Pay", "insufficient_quota"), Failure.QUOTA),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
async def test_an_error_inside_the_stream_is_told_with_what_came_before_it(connect, error, failure):
    async with ModelServer([ScriptedReply([TextPart(["Once"]), error])]) as server:
        got, raised = await broken_off(connect(server, "responses"))
    assert TextChunk("Once") in got
    assert (raised.failure, error.message in raised.sentence) == (failure, True)
    assert raised.refuses_content is (error.kind == "invalid_image")


async def test_a_reply_that_failed_was_paid_for(connect):
    reply = ScriptedReply([StreamError("Oops", "server_error", fails=True)], usage=Tokens(5, 1))
    async with ModelServer([reply]) as server:
        got, _ = await broken_off(connect(server, "responses"))
    assert got[-1] == Counted(Tokens(5, 1))


EVENTS = [piece for piece in Responses().pieces(WHOLE, SOL) if isinstance(piece, bytes)]


@pytest.mark.parametrize("count", range(1, len(EVENTS)))
async def test_a_stream_that_ends_before_its_last_event_is_cut(connect, raw, count):
    async with raw(*EVENTS[:count]) as server:
        got, error = await broken_off(connect(server, "responses"))
    assert error.failure is Failure.CUT
    assert not any(isinstance(part, Stopped) for part in got)


@pytest.mark.parametrize(
    "bytes_",
    [
        b"data: {nonsense\n\n",
        b"data: {}\n\n",
        b'data: {"choices": []}\n\n',
        sse({"type": "response.function_call_arguments.delta", "output_index": 9, "delta": "{"}),
    ],
)
async def test_what_is_not_of_the_api_is_an_error(connect, raw, bytes_):
    async with raw(bytes_, EVENTS[-1]) as server:
        _, error = await broken_off(connect(server, "responses"))
    assert error.failure is Failure.CUT


async def test_unknown_events_and_items_are_skipped(connect, raw):
    odd = [
        sse({"type": "response.brand_new", "x": 1}),
        sse({"type": "response.output_item.added", "output_index": 0, "item": {"type": "web_search_call"}}),
        sse({"type": "response.output_item.done", "output_index": 0, "item": {"type": "web_search_call"}}),
        b"data: [DONE]\n\n",
    ]
    async with raw(*odd, EVENTS[-1], b"data: [DONE]\n\n") as server:
        assert (await parts_of(connect(server, "responses")))[-1] == Stopped("end_turn")


async def test_a_server_without_deltas_is_understood(connect, raw):
    items = [event for event in EVENTS if b"response.output_item." in event]
    async with raw(*items, EVENTS[-1]) as server:
        bare = await assembled(connect(server, "responses", model=SOL))
    assert bare.message() == whole_blocks()


async def test_a_server_that_does_not_stream_is_understood(connect, raw):
    response = json.loads(EVENTS[-1].partition(b"data: ")[2])["response"]
    async with raw(json.dumps(response).encode(), headers={"content-type": "application/json"}) as server:
        reply = await assembled(connect(server, "responses", model=SOL))
    assert (reply.message(), reply.stop, reply.tokens) == (whole_blocks(), "tool_use", WHOLE.usage)


# --- however the bytes come -----------------------------------------------------------------------------------

STREAM = b"".join(EVENTS)


def read(pieces):
    """What a reader makes of bytes that come in these pieces."""
    vendor = Vendor(name="openai", base_url="https://example.com", api="responses")
    reader = ReplyReader(Target(vendor, "https://example.com", ModelInfo(SOL, "openai", 0, 0, reasoning=True)))
    numbers = iter(range(1000))
    assembler = Assembler(None, lambda: f"c_{next(numbers)}")
    events = Events()
    for piece in pieces:
        assembler.feed(reader.feed(events.feed(piece)))
    assembler.feed([*reader.feed(events.end()), *reader.end()])
    return assembler, reader.failure


def whole_blocks():
    return read([STREAM])[0].message()


@given(cuts=st.sets(st.integers(0, len(STREAM)), max_size=20))
def test_a_reply_is_the_same_however_its_bytes_are_cut(cuts):
    places = [0, *sorted(cuts), len(STREAM)]
    reply, failure = read([STREAM[start:end] for start, end in pairwise(places)])
    assert failure is None
    assert (reply.message(), reply.stop, reply.tokens) == (whole_blocks(), "tool_use", WHOLE.usage)


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_events_in_any_order_give_blocks_or_a_failure_and_never_a_fault(events):
    reply, failure = read(events)
    assert (reply.stop is None) == (failure is not None)
    ids = [block.id for block in reply.message() if isinstance(block, ToolCall)]
    assert len(ids) == len(set(ids))
