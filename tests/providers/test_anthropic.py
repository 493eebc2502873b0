"""What the Messages API is asked, and what it alone may answer."""

import json

import pytest

from tests.providers.conftest import READ, asking, assembled, parts_of, user
from zotd.core.ports import ToolSpec
from zotd.core.reply import CallStart, Counted, RequestAccepted, Stopped, TextChunk
from zotd.core.retry import Failure, ModelError
from zotd.providers.shared.limits import EVENT_BYTES
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.wire import content
from zotd.wire.content import Image, Message, Thinking, Tokens, ToolCall, ToolResult

CACHED = {"cache_control": {"type": "ephemeral"}}


def said(*blocks):
    return Message("assistant", list(blocks), "")


def result(call_id, *blocks, is_error=False):
    return Message("tool", [ToolResult(call_id, is_error, list(blocks))], "")


async def asked(connect, request, **choice):
    """The body that the vendor gets for this request."""
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, "anthropic", **choice), request)
    return server.requests[0].body


def plain(messages):
    """The messages without break points."""
    return json.loads(json.dumps(messages).replace(f", {json.dumps(CACHED)[1:-1]}", ""))


def events(*bodies):
    return b"".join(b"event: x\ndata: " + json.dumps(body).encode() + b"\n\n" for body in bodies)


START = {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}
STOP = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]


def block(index, start, *deltas):
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


async def test_the_sdk_brings_key_and_version(connect):
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, "anthropic"))
    (request,) = server.requests
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert request.path == "/v1/messages"
    assert "sk-test" in headers["authorization"]
    assert "anthropic-version" in headers
    assert headers["content-type"] == "application/json"


async def test_a_request_has_break_points_at_the_ends_of_what_stays_and_where_the_one_before_it_ended(connect):
    history = [user("one"), said(content.Text("two")), user("three"), user("four")]
    body = await asked(connect, asking(*history, tools=[READ, ToolSpec("bash", "Runs.", {})]))
    assert body["system"] == [{"type": "text", "text": "Be brief.", **CACHED}]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    blocks = [block for message in body["messages"] for block in message["content"]]
    assert ["cache_control" in block for block in blocks] == [True, False, False, True]


async def test_an_extensions_missing_schema_becomes_an_empty_object(connect):
    body = await asked(connect, asking(tools=[ToolSpec("bash", "Runs.", {})]))
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {}}


async def test_no_system_prompt_and_no_tools_are_left_out(connect):
    body = await asked(connect, asking(system=" ", tools=[]))
    assert "system" not in body
    assert "tools" not in body


async def test_results_of_one_step_and_the_users_words_after_them_are_one_message(connect):
    history = [
        user("go"),
        said(ToolCall("c_1", "read", {"path": "a"}), ToolCall("c_2", "read", {"path": "b"})),
        result("c_1", content.Text("A")),
        result("c_2", content.Text("no such file"), is_error=True),
        user("and now?"),
    ]
    body = await asked(connect, asking(*history))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    first, second, words = body["messages"][2]["content"]
    assert (first["tool_use_id"], first["is_error"]) == ("c_1", False)
    assert (second["tool_use_id"], second["is_error"]) == ("c_2", True)
    assert words == {"type": "text", "text": "and now?", **CACHED}


async def test_images_of_prompts_and_of_results_are_sent(connect):
    picture = Image("image/png", 3, "AAAA")
    history = [
        Message("user", [content.Text("look"), picture], ""),
        said(ToolCall("c_1", "read", {})),
        result("c_1", content.Text("x"), picture),
    ]
    body = await asked(connect, asking(*history))
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert body["messages"][0]["content"][1] == {"type": "image", "source": source, **CACHED}
    assert body["messages"][2]["content"][0]["content"][1] == {"type": "image", "source": source}


async def test_signed_and_redacted_thinking_goes_back_and_another_vendors_does_not(connect):
    blocks = [Thinking("mm", "sig"), Thinking("", "sig2"), Thinking("", "", "secret"), Thinking("unsigned")]
    body = await asked(connect, asking(user("go"), said(*blocks, content.Text("yes")), user("more")))
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "mm", "signature": "sig"},
        {"type": "thinking", "thinking": "", "signature": "sig2"},
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "text", "text": "yes"},
    ]


async def test_blank_text_and_messages_left_empty_are_not_sent(connect):
    body = await asked(connect, asking(user("go"), said(content.Text(" \n")), user("still there?")))
    assert body["messages"] == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "go"}, {"type": "text", "text": "still there?", **CACHED}],
        }
    ]


@pytest.mark.parametrize(
    ("model", "reasoning", "fields"),
    [
        ("claude-sonnet-4-5", "off", {"max_tokens": 28_000}),
        ("claude-sonnet-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 30_048}),
        ("claude-opus-4-20250514", "max", {"thinking": {"type": "enabled", "budget_tokens": 32_000}}),
        ("claude-sonnet-4-6", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("claude-opus-4-7", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        ("claude-sonnet-5-5", "minimum", {"output_config": {"effort": "low"}}),
        ("claude-3-haiku-20240307", "high", {"max_tokens": 4096}),
    ],
)
async def test_reasoning_is_asked_for_in_the_way_that_the_model_knows(connect, model, reasoning, fields):
    body = await asked(connect, asking(reasoning=reasoning), model=model)
    assert {name: body.get(name) for name in fields} == fields
    assert ("thinking" in body) == ("thinking" in fields or "output_config" in fields)
    budget = body.get("thinking", {}).get("budget_tokens", 0)
    assert body["max_tokens"] > budget


async def test_a_budget_waits_until_no_unthinking_call_is_open(connect):
    history = [user("go"), said(ToolCall("c_1", "read", {})), result("c_1", content.Text("A"))]
    body = await asked(connect, asking(*history, reasoning="high"), model="claude-sonnet-4-5")
    assert "thinking" not in body


async def test_a_growing_and_a_shortened_transcript_are_sent_as_they_are(connect):
    history = [user("go"), said(ToolCall("c_1", "read", {"path": "a"})), result("c_1", content.Text("A"))]
    async with ModelServer([script.text("ok")] * 3) as server:
        model = connect(server, "anthropic")
        for _ in range(2):
            await parts_of(model, asking(*history))
            history += [said(content.Text("ok")), user("again")]
        await parts_of(model, asking(user("compacted"), *history[3:]))
    first, second, third = (plain(request.messages) for request in server.requests)
    assert [m["role"] for m in second] == ["user", "assistant", "user", "assistant", "user"]
    assert second[:2] == first[:2]
    assert third[0]["content"] == [{"type": "text", "text": "compacted"}]


async def test_unknown_events_deltas_and_blocks_are_ignored(connect, raw):
    stream = events(
        START,
        {"type": "new_kind", "x": 1},
        *block(0, {"type": "text", "text": "a"}, {"type": "new_delta"}, {"type": "text_delta", "text": "b"}),
        *block(1, {"type": "server_tool_use", "name": "s"}, {"type": "input_json_delta", "partial_json": "{}"}),
        *STOP,
    )
    async with raw(stream) as server:
        parts = await parts_of(connect(server, "anthropic"))
    assert parts == [
        RequestAccepted(),
        Counted(Tokens(7, 1)),
        TextChunk("a"),
        TextChunk("b"),
        Counted(Tokens(7, 9)),
        Stopped("end_turn"),
    ]


async def test_a_call_whose_block_the_token_limit_closed_is_not_whole(connect, raw):
    calls = [
        *block(0, {"type": "tool_use", "name": "read"}, {"type": "input_json_delta", "partial_json": "{}"}),
        *block(1, {"type": "tool_use", "name": "write"}),
    ]
    cut = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}
    async with raw(events(START, *calls, cut, {"type": "message_stop"})) as server:
        reply = await assembled(connect(server, "anthropic"))
    assert [call.name for call in reply.message()] == ["read"]
    assert reply.stop == "length"


async def test_redacted_thinking_is_kept(connect, raw):
    stream = events(START, *block(0, {"type": "redacted_thinking", "data": "blob"}), *STOP)
    async with raw(stream) as server:
        reply = await assembled(connect(server, "anthropic"))
    assert reply.message() == [Thinking("", "", "blob", model="anthropic/a-model")]


@pytest.mark.parametrize(
    "garbage",
    [b"data: {nonsense\n\n", b'data: {"no": "type"}\n\n', b"<html>a portal</html>"],
)
async def test_an_answer_in_another_format_ends_the_reply_with_an_error(connect, raw, garbage):
    async with raw(events(START), garbage) as server:
        with pytest.raises(ModelError) as raised:
            await parts_of(connect(server, "anthropic"))
    assert raised.value.failure is Failure.CUT


async def test_an_event_that_is_too_long_is_a_failure_that_is_not_repeated(connect, raw):
    async with raw(events(START), b"data: " + b"x" * EVENT_BYTES) as server:
        with pytest.raises(ModelError, match="an event of more than 4 MiB") as raised:
            await parts_of(connect(server, "anthropic"))
    assert raised.value.failure is Failure.TOO_LARGE


async def test_a_delta_for_a_block_that_never_began_is_an_error(connect, raw):
    stray = events(START, {"type": "content_block_stop", "index": 3})
    async with raw(stray) as server:
        with pytest.raises(ModelError, match="malformed data"):
            await parts_of(connect(server, "anthropic"))


@pytest.mark.parametrize("size", [1, 7, 64])
async def test_the_stream_may_be_cut_anywhere(connect, raw, size):
    call = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
    stream = events(START, *block(0, call, {"type": "input_json_delta", "partial_json": '{"path": "ä"}'}), *STOP)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    async with raw(*chunks) as server:
        parts = await parts_of(connect(server, "anthropic"))
    assert CallStart(0, "read") in parts
    assert parts[-1] == Stopped("end_turn")
