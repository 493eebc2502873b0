"""Answers that are no proper stream, and errors in the middle of one, from all APIs."""

import gzip
import json

import httpx2
import pytest

from tests.providers.conftest import DIALECTS, assembled, broken_off, parts_of
from zotd.core.reply import TextChunk
from zotd.core.retry import Failure, ModelError
from zotd.providers.shared.conversation import bounded
from zotd.providers.shared.limits import PIECE_BYTES
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.testing.script import Refusal, ScriptedReply, StreamError
from zotd.wire.content import Tokens


@pytest.mark.parametrize("vendor", DIALECTS)
@pytest.mark.parametrize("count", [2, 200])
async def test_text_that_comes_with_an_error_in_the_same_read_is_kept(connect, vendor, count):
    words = ["word "] * count
    async with ModelServer([ScriptedReply([script.TextPart(words), StreamError("Overloaded")], joined=True)]) as server:
        got, error = await broken_off(connect(server, vendor))
    assert [part.text for part in got if type(part) is TextChunk] == words
    assert error.failure is (Failure.CUT if vendor == "ollama" else Failure.OVERLOADED)  # its errors have no type


@pytest.mark.parametrize("vendor", DIALECTS)
async def test_a_web_page_instead_of_a_reply_is_named_with_its_place(connect, raw, vendor):
    page = b"\n<!DOCTYPE html><html><head><title>Log in to the\nguest network</title></head></html>"
    async with raw(page, headers={"content-type": "text/html"}) as server:
        with pytest.raises(ModelError) as raised:
            await parts_of(connect(server, vendor))
        url = server.url if vendor in {"anthropic", "ollama"} else f"{server.url}/v1"
    said = f"{url} answered with a web page instead of a reply: Log in to the guest network; check --base-url"
    assert (raised.value.failure, raised.value.sentence) == (Failure.WRONG_SERVER, said)


@pytest.mark.parametrize("vendor", DIALECTS)
async def test_json_that_is_no_reply_is_shown(connect, raw, vendor):
    async with raw(b'{"status": "ok"}') as server:
        with pytest.raises(ModelError, match=r'answered with other JSON instead of a reply: \{"status": "ok"\}'):
            await parts_of(connect(server, vendor))


@pytest.mark.parametrize("vendor", DIALECTS)
async def test_an_error_with_status_200_is_told_in_the_vendors_words(connect, raw, vendor):
    async with raw(b'{"error": {"message": "no such model"}}') as server:
        with pytest.raises(ModelError, match="no such model"):
            await parts_of(connect(server, vendor))


async def test_a_message_that_comes_whole_is_understood(connect, raw):
    body = {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }
    async with raw(json.dumps(body).encode()) as server:
        reply = await assembled(connect(server, "anthropic"))
    thinking, text, call = reply.message()
    assert (thinking.text, thinking.signature, text.text, call.args) == ("Hm.", "s", "I look.", {"path": "a"})
    assert (reply.stop, reply.tokens) == ("tool_use", Tokens(7, 3))


@pytest.mark.parametrize("vendor", DIALECTS)
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_an_error_that_a_proxy_compressed_is_read(connect, raw, vendor, encoding):
    body = b'{"error": {"type": "invalid_request_error", "message": "bad temperature"}}'
    sent = gzip.compress(body) if encoding == "gzip" else body
    async with raw(sent, status=400, headers={"content-encoding": encoding}) as server:
        with pytest.raises(ModelError, match="bad temperature"):
            await parts_of(connect(server, vendor))


async def test_a_compressed_body_is_never_held_whole(raw):
    size = 64 * PIECE_BYTES
    async with (
        raw(gzip.compress(bytes(size)), headers={"content-encoding": "gzip"}) as server,
        bounded(httpx2.AsyncClient()) as client,
        client.stream("POST", server.url) as response,
    ):
        pieces = [len(piece) async for piece in response.aiter_bytes()]
    assert sum(pieces) == size
    assert max(pieces) <= PIECE_BYTES


@pytest.mark.parametrize("vendor", DIALECTS)
async def test_an_account_without_credit_is_told_to_add_some(connect, vendor):
    async with ModelServer([Refusal(429, "You exceeded your current quota", kind="insufficient_quota")]) as server:
        with pytest.raises(ModelError, match="has no credit: add some at") as raised:
            await parts_of(connect(server, vendor))
    assert raised.value.failure is Failure.QUOTA
