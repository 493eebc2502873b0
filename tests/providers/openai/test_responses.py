"""What OpenAI's Responses API is asked, and what is made of its answers."""

import json

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from tests.providers.conftest import asking, chosen, parts_of, user
from zotd.core.reply import Stopped
from zotd.core.retry import Failure, ModelError
from zotd.providers.catalog import Catalog
from zotd.providers.catalog.overlay import Overlay
from zotd.providers.choice import ModelChoice
from zotd.providers.connect import Providers
from zotd.providers.openai.responses.efforts import effort
from zotd.providers.shared import Vendor
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.testing.script import Refusal
from zotd.wire import content
from zotd.wire.content import Image, Message, Thinking, ToolCall, ToolResult

SOL = "gpt-5.6-sol"
OURS = f"openai/{SOL}"
PICTURE = Image("image/png", 3, "AAAA")
SHOWN = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}


def said(*blocks):
    return Message("assistant", list(blocks), "")


def result(call_id, *blocks, is_error=False):
    return Message("tool", [ToolResult(call_id, is_error, list(blocks))], "")


def thought(encrypted, *summary, model=OURS, text=""):
    return Thinking(text, item=f"rs_{encrypted}", encrypted=encrypted, summary=list(summary), model=model)


async def asked(connect, request, model=SOL, **choice):
    """The body that the vendor gets for this request; the SDK's own types know all of it."""
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, "responses", model=model, **choice), request)
    (received,) = server.requests
    assert received.path == "/v1/responses"
    TypeAdapter(ResponseCreateParamsStreaming).validate_python(received.body)
    return received.body


def kinds(body):
    return [item.get("type") or item["role"] for item in body["input"]]


# --- requests -------------------------------------------------------------------------------------------------


async def test_a_request_stores_nothing_and_asks_for_the_reasoning(connect):
    body = await asked(connect, asking(reasoning="high", cache_key="s_1", max_output=4096))
    assert body | {"input": [], "tools": []} == {
        "model": SOL,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
        "prompt_cache_key": "s_1",
        "max_output_tokens": 4096 + 25_000,
        "instructions": "Be brief.",
        "input": [],
        "tools": [],
    }
    (tool,) = body["tools"]
    assert (tool["type"], tool["name"], tool["strict"]) == ("function", "read", False)
    assert tool["parameters"]["properties"] == {"path": {"type": "string"}}


async def test_a_model_that_does_not_reason_is_asked_for_no_reasoning(connect):
    body = await asked(connect, asking(reasoning="high", max_output=100), model="gpt-4o")
    assert {"include", "reasoning"}.isdisjoint(body)
    assert body["max_output_tokens"] == 100


async def test_a_model_that_is_told_not_to_reason_keeps_its_limit(connect):
    body = await asked(connect, asking(reasoning="off", max_output=100))
    assert (body["reasoning"], body["max_output_tokens"]) == ({"effort": "none"}, 100)


@pytest.mark.parametrize(
    ("model", "efforts"),
    [  # for: off, minimum, low, medium, high, xhigh, max
        ("gpt-5.6-sol", "none low low medium high xhigh max"),
        ("gpt-5.5-2026-01-01", "none low low medium high xhigh xhigh"),
        ("gpt-5.1", "none low low medium high high high"),
        ("gpt-5-mini", "- minimal low medium high high high"),
        ("gpt-6-sol", "- low low medium high xhigh max"),
        ("gpt-5-pro", "- high high high high high high"),
        ("gpt-5.4-pro", "- medium medium medium high xhigh xhigh"),
        ("gpt-5.3-codex", "- low low medium high xhigh xhigh"),
        ("gpt-5.1-codex-mini", "- low low medium high high high"),
        ("gpt-5.1-codex-max", "- low low medium high xhigh xhigh"),
        ("codex-mini-latest", "- low low medium high high high"),
        ("o3", "- low low medium high high high"),
        ("someones-model", "- low low medium high high high"),
    ],
)
def test_an_effort_is_one_that_the_model_takes(model, efforts):
    levels = ["off", "minimum", "low", "medium", "high", "xhigh", "max"]
    assert [effort(model, level) or "-" for level in levels] == efforts.split()


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
    assert body["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"role": "assistant", "content": "Looking."},
        {"type": "function_call", "call_id": "c_1", "name": "read", "arguments": '{"path":"ä"}'},
        {"type": "function_call", "call_id": "c_2", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c_1", "output": "A\nB"},
        {"type": "function_call_output", "call_id": "c_2", "output": "Error:\nno such file"},
        {"role": "assistant", "content": "It says A."},
        {"role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
    ]


async def test_images_are_sent_in_prompts_and_in_results(connect):
    history = [
        Message("user", [content.Text("look"), PICTURE], ""),
        said(ToolCall("c_1", "read", {})),
        result("c_1", content.Text("here:"), PICTURE),
    ]
    body = await asked(connect, asking(*history))
    assert body["input"][0]["content"] == [{"type": "input_text", "text": "look"}, SHOWN]
    assert body["input"][2]["output"] == [{"type": "input_text", "text": "here:"}, SHOWN]


async def test_reasoning_goes_back_unchanged_with_the_items_behind_it(connect):
    history = [
        user("go"),
        said(
            thought("e_1", "First.", "Then."),
            content.Text("Looking.", "msg_1", "commentary"),
            thought("e_2"),
            ToolCall("c_1", "read", {}, "fc_1"),
        ),
        result("c_1", content.Text("A")),
    ]
    body = await asked(connect, asking(*history))
    first, text, second, call = body["input"][1:5]
    assert first == {
        "type": "reasoning",
        "id": "rs_e_1",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
        "encrypted_content": "e_1",
    }
    assert (text["id"], text["phase"], text["content"][0]["text"]) == ("msg_1", "commentary", "Looking.")
    assert (second["id"], second["summary"], second["encrypted_content"]) == ("rs_e_2", [], "e_2")
    assert (call["id"], call["call_id"]) == ("fc_1", "c_1")


@pytest.mark.parametrize(
    "block",
    [
        thought("e_1", model="openai/gpt-5.5"),
        thought("e_1", model="azure/gpt-5.6-sol"),
        Thinking("hm", "signed"),
        Thinking("", redacted="r"),
        Thinking("hm"),
    ],
    ids=["another model", "another vendor", "signed", "redacted", "in the clear"],
)
async def test_reasoning_of_others_is_not_sent_nor_ids_that_need_it(connect, block):
    history = [user("go"), said(block, content.Text("Hi.", "msg_1"), ToolCall("c_1", "read", {}, "fc_1"))]
    body = await asked(connect, asking(*history, result("c_1", content.Text("A"))))
    assert body["input"][1:3] == [
        {"role": "assistant", "content": "Hi."},
        {"type": "function_call", "call_id": "c_1", "name": "read", "arguments": "{}"},
    ]


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "deepseek"])
async def test_encrypted_reasoning_goes_to_no_other_api(connect, vendor):
    history = [user("go"), said(thought("e_1", "Hm."), content.Text("Hi.", "msg_1", "final_answer")), user("more")]
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, vendor, model=SOL), asking(*history))
    sent = json.dumps(server.requests[0].body)
    assert "Hi." in sent
    assert not [word for word in ("e_1", "Hm.", "msg_1", "final_answer") if word in sent]


async def test_reasoning_without_anything_behind_it_is_left_out(connect):
    history = [user("go"), said(content.Text("Hi.", "msg_1"), thought("e_1")), user("on"), said(thought("e_2"))]
    assert kinds(await asked(connect, asking(*history, user("more")))) == ["user", "assistant", "user", "user"]


# --- what is refused and can be left out ----------------------------------------------------------------------

UNREADABLE = Refusal(400, "The encrypted content gAAA…= could not be verified.", kind="invalid_encrypted_content")
NO_SUMMARY = Refusal(400, "Your organization must be verified to generate reasoning summaries.")
NO_LIMIT = Refusal(400, "Unsupported parameter: max_output_tokens")


async def test_reasoning_that_the_vendor_cannot_read_is_left_out_and_later_reasoning_is_not(connect):
    old = [user("go"), said(thought("e_1"), content.Text("Hi.", "msg_1")), user("on")]
    new = [*old, said(thought("e_2"), content.Text("So.", "msg_2")), user("and?")]
    async with ModelServer([UNREADABLE, script.text("So."), script.text("Yes.")]) as server:
        model = connect(server, "responses", model=SOL)
        assert (await parts_of(model, asking(*old)))[-1] == Stopped("end_turn")
        assert (await parts_of(model, asking(*new)))[-1] == Stopped("end_turn")
    assert [kinds(request.body).count("reasoning") for request in server.requests] == [1, 0, 1]
    assert server.requests[2].messages[3]["encrypted_content"] == "e_2"


async def test_summaries_that_an_organisation_does_not_get_are_asked_for_once(connect):
    async with ModelServer([NO_SUMMARY, script.text("one"), script.text("two")]) as server:
        for _ in range(2):
            await parts_of(connect(server, "responses", model=SOL), asking(reasoning="low"))
    asked = [request.body["reasoning"] for request in server.requests]
    assert asked == [{"effort": "low", "summary": "auto"}, {"effort": "low"}, {"effort": "low"}]


async def test_a_limit_of_the_output_that_is_refused_is_sent_once(connect):
    """As compaction sends it; a login of ChatGPT is said to refuse it."""
    async with ModelServer([NO_LIMIT, script.text("one"), script.text("two")]) as server:
        for _ in range(2):
            said = await parts_of(connect(server, "responses", model=SOL), asking(max_output=100))
            assert said[-1] == Stopped("end_turn")
    assert ["max_output_tokens" in request.body for request in server.requests] == [True, False, False]


@pytest.mark.parametrize("refusal", [UNREADABLE, NO_SUMMARY, NO_LIMIT], ids=["reasoning", "summaries", "limit"])
async def test_a_refusal_that_nothing_helps_against_is_told(connect, refusal):
    async with ModelServer(lambda _: refusal) as server:
        with pytest.raises(ModelError) as raised:
            await parts_of(connect(server, "responses", model=SOL), asking(reasoning="low", max_output=100))
    assert raised.value.failure is Failure.REFUSED
    assert len(server.requests) <= 2


# --- which API ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "/v1/chat/completions"),
        ({"api": "chat"}, "/v1/chat/completions"),
        ({"api": "responses"}, "/v1/responses"),
        ({"model": "gpt-5.2-pro"}, "/v1/chat/completions"),
    ],
)
async def test_a_server_of_ones_own_is_asked_in_chat_completions_unless_said_otherwise(connect, fields, path):
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, "openai", **fields))
    assert [request.path for request in server.requests] == [path]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"model": SOL}, "/v1/responses"),
        ({"model": SOL, "base_url": "its own"}, "/v1/responses"),
        ({"model": SOL, "api": "chat"}, "/v1/chat/completions"),
        ({"model": "gpt-5.2-pro", "api": "chat"}, "/v1/responses"),
    ],
)
async def test_openai_itself_is_asked_in_responses_unless_said_otherwise(fields, path):
    async with ModelServer([script.text("ok")]) as server:
        own = Vendor(name="openai", api="responses", base_url=server.openai_url, prices="openai")
        providers = Providers(Catalog(Overlay(providers=(own,))), {})
        if "base_url" in fields:
            fields = fields | {"base_url": f"{server.openai_url}/"}
        await parts_of(providers.connect(ModelChoice("openai", api_key="k", **fields)))
        await providers.close()
    assert [request.path for request in server.requests] == [path]


async def test_a_vendor_with_an_api_of_its_own_takes_no_other(providers):
    with pytest.raises(ModelError, match=r"remove providers\.anthropic\.api from config\.toml"):
        providers.connect(chosen("anthropic", "m", api_key="k", api="chat"))
