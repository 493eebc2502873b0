"""What a Chat Completions server is asked, and what its many imitators answer."""

import json

import pytest

from tests.providers.conftest import asking, assembled, broken_off, parts_of, user
from zotd.core.reply import CallArgs, CallEnd, CallStart, Counted, RequestAccepted, Stopped, TextChunk
from zotd.core.retry import Failure, ModelError
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.wire import content
from zotd.wire.content import Image, Message, Thinking, Tokens, ToolCall, ToolResult

DONE = b"data: [DONE]\n\n"


def said(*blocks):
    return Message("assistant", list(blocks), "")


def result(call_id, *blocks, is_error=False):
    return Message("tool", [ToolResult(call_id, is_error, list(blocks))], "")


async def asked(connect, request, vendor="openai", **choice):
    """The body that the vendor gets for this request."""
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, vendor, **choice), request)
    return server.requests[0].body


def chunk(delta=None, finish=None, **fields):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"choices": choices, **fields}).encode() + b"\n\n"


def piece(arguments, **fields):
    name = {"name": fields.pop("name")} if "name" in fields else {}
    return chunk({"tool_calls": [{"function": {**name, "arguments": arguments}, **fields}]})


async def test_the_sdk_brings_the_key(connect):
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, "openai"))
    (request,) = server.requests
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert request.path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer sk-test"
    assert request.body["stream_options"] == {"include_usage": True}


async def test_the_organisation_of_the_environment_is_sent_to_no_other_vendor(connect, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, "deepseek"))
    assert "org-mine" not in server.requests[0].headers.values()


async def test_a_transcript_is_sent_in_the_words_of_the_api(connect):
    history = [
        user("go"),
        said(content.Text("Looking."), ToolCall("c_1", "read", {"path": "ä"}), ToolCall("c_2", "read", {})),
        result("c_1", content.Text("A"), content.Text("B")),
        result("c_2", content.Text("no such file"), is_error=True),
        said(content.Text("It says A.")),
        user("thanks"),
    ]
    body = await asked(connect, asking(*history))
    system, first, calling, one, two, answer, last = body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert first == {"role": "user", "content": "go"}
    assert calling["content"] == "Looking."
    assert [(c["id"], c["function"]) for c in calling["tool_calls"]] == [
        ("c_1", {"name": "read", "arguments": '{"path":"ä"}'}),
        ("c_2", {"name": "read", "arguments": "{}"}),
    ]
    assert one == {"role": "tool", "tool_call_id": "c_1", "content": "A\nB"}
    assert two == {"role": "tool", "tool_call_id": "c_2", "content": "Error: no such file"}
    assert answer == {"role": "assistant", "content": "It says A."}
    assert last == {"role": "user", "content": "thanks"}


async def test_images_of_results_follow_when_all_calls_are_answered(connect):
    picture = Image("image/png", 3, "AAAA")
    history = [
        Message("user", [content.Text("look"), picture], ""),
        said(ToolCall("c_1", "read", {}), ToolCall("c_2", "read", {})),
        result("c_1", picture),
        result("c_2", content.Text("B")),
        said(content.Text("Nice.")),
    ]
    body = await asked(connect, asking(*history, user("so?")))
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert body["messages"][1]["content"] == [{"type": "text", "text": "look"}, part]
    assert [m["role"] for m in body["messages"][2:]] == ["assistant", "tool", "tool", "user", "assistant", "user"]
    assert body["messages"][5]["content"] == [part]


async def test_only_vendors_that_ask_for_it_get_reasoning_back(connect):
    history = [user("go"), said(Thinking("hm"), Thinking("other", "sig"), content.Text("yes")), user("more")]
    for vendor, expected in (("deepseek", "hm"), ("openai", None)):
        body = await asked(connect, asking(*history), vendor)
        assert body["messages"][2].get("reasoning_content") == expected


async def test_mistral_gets_short_call_ids_and_no_stream_options(connect):
    history = [
        user("go"),
        said(ToolCall("c_01J0000000000000ABCDEFGHJ", "read", {})),
        result("c_01J0000000000000ABCDEFGHJ", content.Text("A")),
    ]
    body = await asked(connect, asking(*history), "mistral")
    assert body["messages"][2]["tool_calls"][0]["id"] == body["messages"][3]["tool_call_id"] == "ABCDEFGHJ"
    assert "stream_options" not in body


@pytest.mark.parametrize(
    ("vendor", "model", "reasoning", "tools", "fields"),
    [
        ("openai", "o3", "minimum", True, {"reasoning_effort": "low"}),
        ("openai", "o3", "max", True, {"reasoning_effort": "high"}),
        ("openai", "o3", "off", True, {"reasoning_effort": None}),
        ("openai", "gpt-4o", "high", True, {"reasoning_effort": None}),
        ("openai", "gpt-5.6-sol", "high", True, {"reasoning_effort": "none"}),
        ("openai", "gpt-5.6-sol", "high", False, {"reasoning_effort": "high"}),
        ("openrouter", "openai/gpt-5.6-sol", "high", True, {"reasoning": {"effort": "high"}}),
        ("together", "moonshotai/Kimi-K3", "high", True, {"reasoning_effort": None, "reasoning": None}),
    ],
)
async def test_reasoning_is_asked_for_in_the_way_that_the_vendor_knows(
    connect, vendor, model, reasoning, tools, fields
):
    request = asking(reasoning=reasoning) if tools else asking(reasoning=reasoning, tools=[])
    body = await asked(connect, request, vendor, model=model)
    assert {name: body.get(name) for name in fields} == fields


async def test_the_limit_of_output_has_the_name_that_the_vendor_knows(connect):
    assert (await asked(connect, asking(max_output=9)))["max_completion_tokens"] == 9
    assert (await asked(connect, asking(max_output=9), "groq"))["max_tokens"] == 9
    assert "max_tokens" not in await asked(connect, asking(), "groq")


CALL = [CallStart(0, "read"), CallArgs(0, '{"path":'), CallArgs(0, '"a"}'), CallEnd(0)]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece("", index=0, id="x", name="read"), piece('{"path":', index=0), piece('"a"}', index=0)],
        # llama-cpp-python says name and id again with each piece
        [piece('{"path":', index=0, id="x", name="read"), piece('"a"}', index=0, id="x", name="read")],
        [piece('{"path":', id="x", name="read"), piece('"a"}')],  # no index
        [piece('{"path":', index=0, id="x", name="read"), piece('"a"}', index=0, id="")],
    ],
)
async def test_a_call_is_read_however_its_pieces_are_marked(connect, raw, pieces):
    async with raw(*pieces, chunk({}, "tool_calls"), DONE) as server:
        parts = await parts_of(connect(server, "openai"))
    assert parts == [RequestAccepted(), *CALL, Stopped("tool_use")]


@pytest.mark.parametrize("index", [{}, {"index": 0}])
async def test_calls_that_only_their_ids_tell_apart_stay_apart(connect, raw, index):
    calls = [piece('{"path":"a"}', id="x", name="read", **index), piece('{"path":"b"}', id="y", name="read", **index)]
    async with raw(*calls, chunk({}, "stop"), DONE) as server:
        reply = await assembled(connect(server, "openai"))
    assert [block.args for block in reply.message()] == [{"path": "a"}, {"path": "b"}]
    assert reply.stop == "tool_use"  # although the server says `stop`


async def test_calls_whose_pieces_are_mixed_are_put_together(connect, raw):
    pieces = [
        piece('{"path":', index=0, id="x", name="read"),
        piece('{"path":', index=1, id="y", name="read"),
        piece('"a"}', index=0),
        piece('"b"}', index=1),
    ]
    async with raw(*pieces, chunk({}, "tool_calls"), DONE) as server:
        reply = await assembled(connect(server, "openai"))
    assert [block.args for block in reply.message()] == [{"path": "a"}, {"path": "b"}]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_kept_apart_from_the_text(connect, raw, field):
    deltas = [chunk({field: "h"}), chunk({field: "m", "content": ""}), chunk({"content": "yes"}), chunk({}, "stop")]
    async with raw(*deltas, DONE) as server:
        reply = await assembled(connect(server, "openai"))
    assert reply.message() == [Thinking("hm", model="openai/a-model"), content.Text("yes")]


async def test_content_in_pieces_of_several_kinds_is_read(connect, raw):
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    deltas = [chunk({"content": [thinking]}), chunk({"content": [{"type": "text", "text": "yes"}]}), chunk({}, "stop")]
    async with raw(*deltas, DONE) as server:
        reply = await assembled(connect(server, "mistral"))
    assert reply.message() == [Thinking("hm", model="mistral/a-model"), content.Text("yes")]


@pytest.mark.parametrize(
    ("last", "tokens"),
    [
        (chunk(usage={"prompt_tokens": 9, "completion_tokens": 2}), Tokens(9, 2)),
        (chunk({}, usage={"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4}), Tokens(5, 2, 4)),
        (chunk(usage={"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 3}), Tokens(6, 2, 3)),
        (
            chunk(
                usage={
                    "prompt_tokens": 9,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 3},
                }
            ),
            Tokens(5, 2, 1, 3),
        ),
    ],
)
async def test_tokens_are_read_wherever_the_vendor_puts_them(connect, raw, last, tokens):
    async with raw(chunk({"content": "ok"}), chunk({}, "stop"), last, DONE) as server:
        parts = await parts_of(connect(server, "openai"))
    assert Counted(tokens) in parts


async def test_tokens_of_the_reasoning_are_told(connect, raw):
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 4}}
    async with raw(chunk({}, "stop"), chunk(usage=usage), DONE) as server:
        assert Counted(Tokens(9, 5), reasoning=4) in await parts_of(connect(server, "openai"))


async def test_tokens_inside_the_choice_are_read(connect, raw):
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    last = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    async with raw(last, DONE) as server:
        assert Counted(Tokens(3, 1)) in await parts_of(connect(server, "moonshot"))


@pytest.mark.parametrize("end", [b"", DONE, b"data: [DONE]", b": bye\n\n"])
async def test_a_reply_with_a_finish_reason_is_whole_with_or_without_its_last_line(connect, raw, end):
    async with raw(chunk({"content": "ok"}), chunk({}, "stop"), end) as server:
        assert await parts_of(connect(server, "openai")) == [RequestAccepted(), TextChunk("ok"), Stopped("end_turn")]


@pytest.mark.parametrize(
    "end",
    [
        b"",
        chunk({}, "error"),
        chunk({}, "insufficient_system_resource"),
        b"data: {nonsense\n\n",
        b'data: {"choices": 7}\n\n',
        chunk(error={"message": "out of memory"}),
        chunk(error="out of memory"),
    ],
)
async def test_a_reply_without_a_good_end_is_an_error(connect, raw, end):
    async with raw(chunk({"content": "ok"}), end) as server:
        with pytest.raises(ModelError) as raised:
            await parts_of(connect(server, "openai"))
    assert raised.value.failure is Failure.CUT


async def test_a_stream_that_is_done_without_a_finish_reason_is_a_whole_reply(connect, raw):
    async with raw(chunk({"content": "ok"}), DONE) as server:
        assert await parts_of(connect(server, "openai")) == [RequestAccepted(), TextChunk("ok"), Stopped("end_turn")]


async def test_a_call_that_is_done_without_a_finish_reason_is_whole(connect, raw):
    call = {"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    async with raw(chunk({"tool_calls": [call]}), DONE) as server:
        reply = await assembled(connect(server, "openai"))
    assert (reply.stop, [made.args for made in reply.message()]) == ("tool_use", [{"path": "a"}])


async def test_a_stream_of_nothing_is_an_error(connect, raw):
    async with raw(chunk({"role": "assistant", "content": ""}), DONE) as server:
        with pytest.raises(ModelError, match="ended before there was a reply"):
            await parts_of(connect(server, "openai"))


async def test_a_refusal_is_text_and_the_reply_says_that_it_was_refused(connect, raw):
    async with raw(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop"), DONE) as server:
        reply = await assembled(connect(server, "openai"))
    assert (reply.text(), reply.stop) == ("I cannot.", "refusal")


@pytest.mark.parametrize(
    "pieces",
    [["<think>A thought.</think>\n\nIt is <b> so."], list("\n<think>A thought.</think>\n\nIt is <b> so.")],
    ids=["in one piece", "cut everywhere"],
)
async def test_thinking_between_tags_is_thinking(connect, raw, pieces):
    async with raw(*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop"), DONE) as server:
        reply = await assembled(connect(server, "openai"))
    assert [(type(block), block.text) for block in reply.message()] == [
        (content.Thinking, "A thought."),
        (content.Text, "It is <b> so."),
    ]


@pytest.mark.parametrize("text", ["<thin", "<b>bold</b>", "See <think>, a tag.", "  ", "<"])
async def test_text_that_only_looks_like_a_tag_is_kept(connect, raw, text):
    async with raw(*(chunk({"content": piece}) for piece in text), chunk({}, "stop"), DONE) as server:
        reply = await assembled(connect(server, "openai"))
    assert reply.text() == text


async def test_text_held_back_for_a_tag_is_kept_when_the_stream_is_cut(connect, raw):
    async with raw(chunk({"content": "<th"})) as server:
        got, error = await broken_off(connect(server, "openai"))
    assert (got[1:], error.failure) == ([TextChunk("<th")], Failure.CUT)


async def test_a_server_that_does_not_stream_is_understood(connect, raw):
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    message = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    body = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    whole = json.dumps(body).encode()
    async with raw(whole[:40], whole[40:], headers={"content-type": "application/json"}) as server:
        reply = await assembled(connect(server, "openai"))
    assert [getattr(block, "text", None) or block.args for block in reply.message()] == ["I look.", {"path": "a"}]
    assert (reply.stop, reply.tokens) == ("tool_use", Tokens(7, 3))


async def test_chunks_without_anything_to_say_are_skipped(connect, raw):
    odd = [
        b'data: {"choices": null}\n\n',
        b'data: {"choices": [{"index": 0, "delta": null}]}\n\n',
        chunk({"content": None}),
    ]
    async with raw(*odd, chunk({"content": "ok"}), chunk({}, "stop"), DONE) as server:
        assert await parts_of(connect(server, "openai")) == [RequestAccepted(), TextChunk("ok"), Stopped("end_turn")]
