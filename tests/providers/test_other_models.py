"""A reply of one model in a request to another: its words, calls and results, and nothing that only its author can read."""

import itertools
import json

import pytest

from tests.providers.conftest import asking, assembled, chosen, parts_of, user
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, ScriptedReply, TextPart, ThinkingPart, text
from zotd.wire.content import Message, Text, ToolResult

MODELS = {
    "anthropic": ("anthropic", "claude-sonnet-4-5"),
    "anthropic-other": ("anthropic", "claude-opus-4-8"),
    "chat": ("moonshot", "kimi-k2-thinking"),
    "chat-other": ("deepseek", "deepseek-reasoner"),
    "gemini": ("google", "gemini-3-pro-preview"),
    "gemini-other": ("google", "gemini-2.5-flash"),
    "responses": ("responses", "gpt-5.6-sol"),
    "responses-other": ("responses", "gpt-5.1"),
}
"""A model of each API, and one that differs from it only in its name or vendor."""

REPLY = ScriptedReply(
    [
        ThinkingPart(["a private thought"], "sealed-thought"),
        TextPart(["I look."]),
        CallPart("read", {"path": "a.txt"}, signature="sealed-call"),
    ]
)

SEALED = ("a private thought", "sealed-thought", "sealed-call", "rs_", "msg_", "fc_", "toolu_", "call_0")
"""What may be in requests to the author only: thoughts, signatures, and ids of the vendor's items."""


async def conversation(providers, writer):
    """A prompt, a reply of `writer` with a call, and the call's result."""
    vendor, model = MODELS[writer]
    async with ModelServer([REPLY]) as server:
        connection = providers.connect(chosen(vendor, model, api_key="sk", base_url=server.url))
        reply = await assembled(connection, asking(reasoning="high"))
    said = Message("assistant", reply.message(), "")
    return [
        user("what is in it?"),
        said,
        Message("tool", [ToolResult("c_0", is_error=False, content=[Text("walrus")])], ""),
    ]


async def asked(providers, reader, messages):
    vendor, model = MODELS[reader]
    async with ModelServer([text("ok")]) as server:
        connection = providers.connect(chosen(vendor, model, api_key="sk", base_url=server.url))
        await parts_of(connection, asking(*messages, reasoning="high"))
    (received,) = server.requests
    return json.dumps(received.body)


@pytest.mark.parametrize(("writer", "reader"), [*itertools.permutations(MODELS, 2)])
async def test_a_reply_of_another_model_is_sent_without_what_only_that_one_can_read(providers, writer, reader):
    body = await asked(providers, reader, await conversation(providers, writer))
    assert [word for word in SEALED if word in body] == []
    for kept in ("what is in it?", "I look.", "a.txt", "walrus"):
        assert kept in body


@pytest.mark.parametrize(
    ("author", "sealed"),
    [
        ("anthropic", {"a private thought", "sealed-thought"}),
        ("chat", {"a private thought"}),
        ("gemini", {"sealed-call"}),
        ("responses", {"a private thought", "sealed-thought", "rs_"}),
    ],
)
async def test_its_author_gets_it_back(providers, author, sealed):
    body = await asked(providers, author, await conversation(providers, author))
    assert {word for word in SEALED if word in body} >= sealed


async def test_a_model_with_a_thinking_budget_thinks_again_only_after_calls_that_are_its_own(providers):
    """The API refuses a budget when tools answer a message that does not begin with thinking of this model."""
    own, other = [await conversation(providers, writer) for writer in ("anthropic", "responses")]
    assert '"budget_tokens"' in await asked(providers, "anthropic", own)
    assert '"budget_tokens"' not in await asked(providers, "anthropic", other)
