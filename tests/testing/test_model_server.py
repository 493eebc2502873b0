"""The scripted model, seen by the vendors' own SDKs: whatever it sends, they understand."""

import json
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

import anthropic
import httpx
import ollama
import openai
import pytest

from tests.testing.shapes import CHECKS, check_messages
from zotd.testing import script
from zotd.testing.model_server import DIALECTS, ModelServer
from zotd.testing.ollama_dialect import OllamaModel, OllamaModels
from zotd.testing.responses_dialect import Responses
from zotd.testing.script import CallPart, DeclinedPart, Refusal, ScriptedReply, StreamError, TextPart, ThinkingPart
from zotd.wire.content import Tokens

REPLY = ScriptedReply(
    [
        ThinkingPart(["hm"]),
        TextPart(["Let me ", "look."]),
        CallPart("read", {"path": "a"}),
        CallPart("read", {"path": "b"}),
    ],
    usage=Tokens(input=7, output=3, cache_read=2),
)
OF_API = {type(dialect).__name__: dialect for dialect in DIALECTS.values()}
USER = {"role": "user", "content": "go"}


@pytest.fixture
async def messages():
    clients = []

    def client(server):
        clients.append(anthropic.AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0))
        return clients[-1].messages

    yield client
    for one in clients:
        await one.close()


@pytest.fixture
async def completions():
    clients = []

    def client(server):
        clients.append(openai.AsyncOpenAI(api_key="k", base_url=server.openai_url, max_retries=0))
        return clients[-1].chat.completions

    yield client
    for one in clients:
        await one.close()


async def test_anthropics_sdk_assembles_the_reply_of_the_script(messages):
    asked = {"model": "m", "max_tokens": 9, "messages": [USER]}
    async with ModelServer([REPLY]) as server, messages(server).stream(**asked) as stream:
        message = await stream.get_final_message()
    thinking, text, first, second = message.content
    assert (thinking.thinking, thinking.signature) == ("hm", "signed")
    assert text.text == "Let me look."
    assert [first.input, second.input] == [{"path": "a"}, {"path": "b"}]
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (7, 3)


async def test_openais_sdk_assembles_the_chunks_of_the_script(completions):
    async with ModelServer([REPLY]) as server:
        stream = await completions(server).create(model="m", messages=[USER], stream=True)
        chunks = [chunk.model_dump() async for chunk in stream]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(delta["content"] or "" for delta in deltas) == "Let me look."
    calls = [call for delta in deltas for call in delta["tool_calls"] or []]
    assert "".join(call["function"]["arguments"] for call in calls if call["index"] == 1) == '{"path": "b"}'
    assert chunks[-1]["usage"]["prompt_tokens"] == 9


@pytest.fixture
async def responses():
    clients = []

    def client(server):
        clients.append(openai.AsyncOpenAI(api_key="k", base_url=server.openai_url, max_retries=0))
        return clients[-1].responses

    yield client
    for one in clients:
        await one.close()


async def test_openais_sdk_assembles_the_response_of_the_script(responses):
    async with ModelServer([REPLY]) as server, responses(server).stream(model="m", input="go") as stream:
        response = await stream.get_final_response()
    reasoning, text, first, second = response.output
    assert (reasoning.summary[0].text, reasoning.encrypted_content) == ("hm", "signed")
    assert text.content[0].text == "Let me look."
    assert [json.loads(call.arguments) for call in (first, second)] == [{"path": "a"}, {"path": "b"}]
    usage = response.usage
    assert (response.status, usage.input_tokens, usage.input_tokens_details.cached_tokens) == ("completed", 9, 2)


REPLIES = {
    "calls": REPLY,
    "declined": ScriptedReply([ThinkingPart([]), DeclinedPart(["I can", "not."])]),
    "length": ScriptedReply([TextPart(["On"])], stop="length"),
    "filtered": ScriptedReply([TextPart(["On"])], stop="refusal"),
    "cut call": ScriptedReply([CallPart("read", {"path": "a"})], stop="length"),
    "signed call": ScriptedReply([CallPart("read", {"path": "a"}, signature="signed")]),
    "error": ScriptedReply([TextPart(["On"]), StreamError()]),
    "failed": ScriptedReply([TextPart(["On"]), StreamError(kind="api_error", fails=True)]),
    "cached": ScriptedReply([TextPart(["On"])], usage=Tokens(input=7, output=3, cache_read=2, cache_write=4)),
    "empty": ScriptedReply([]),
}


@pytest.mark.parametrize("api", CHECKS)
@pytest.mark.parametrize("name", REPLIES)
def test_every_event_is_one_of_the_sdks_types(api, name):
    if (api, name) == ("Responses", "failed"):  # the SDK lists the codes there
        reply = ScriptedReply([TextPart(["On"]), StreamError(kind="server_error", fails=True)])
    else:
        reply = REPLIES[name]
    check_event, _ = CHECKS[api]
    pieces = [piece for piece in OF_API[api].pieces(reply, "gpt-5.6-sol") if isinstance(piece, bytes)]
    assert pieces
    for piece in pieces:
        check_event(piece)


@pytest.mark.parametrize("api", CHECKS)
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 429, 500, 504, 529])
def test_every_refusal_is_one_of_the_sdks_types(api, status):
    _, check_error = CHECKS[api]
    check_error(OF_API[api].refusal(Refusal(status)))


def test_the_events_of_a_response_are_numbered():
    pieces = [piece for piece in Responses().pieces(REPLY, "gpt-5.6-sol") if isinstance(piece, bytes)]
    numbers = [json.loads(piece.partition(b"\ndata: ")[2])["sequence_number"] for piece in pieces]
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize(
    "data",
    [
        b'event: ping\ndata: {"type": "nothing"}\n\n',
        b'event: content_block_stop\ndata: {"type": "content_block_stop"}\n\n',
        b'event: content_block_stop\ndata: {"type": "content_block_stop", "index": "1"}\n\n',
        b'event: content_block_stop\ndata: {"type": "content_block_stop", "index": 1, "more": 1}\n\n',
        b'event: message_stop\ndata: {"type": "content_block_stop", "index": 1}\n\n',
    ],
)
def test_an_event_with_another_shape_is_found(data):
    with pytest.raises((ValueError, AssertionError)):
        check_messages(data)


async def test_a_connection_breaks_after_as_many_events_as_the_script_says(completions):
    said: list[str] = []

    async def listen(stream):
        async for chunk in stream:
            said.append(chunk.choices[0].delta.content)  # noqa: PERF401  (what came before the error counts)

    async with ModelServer([ScriptedReply([TextPart(["a", "b", "c"])], cut_after=3)]) as server:
        stream = await completions(server).create(model="m", messages=[USER], stream=True)
        with pytest.raises(openai.APIConnectionError):
            await listen(stream)
    assert said == ["", "a", "b"]


SAID = {"type": "message", "role": "assistant", "content": [], "id": "msg_t_1_after_0"}
THOUGHT = {"type": "reasoning", "id": "rs_t_0", "summary": [], "encrypted_content": "e"}
CALL = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": ""}


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "must be provided"),
        ([USER, CALL], "No tool output found for function call c"),
        ([USER, OUTPUT], "No tool call found"),
        ([USER, CALL, OUTPUT, OUTPUT], "No tool call found"),
        ([USER, THOUGHT], "without its required following item"),
        ([USER, THOUGHT, USER], "without its required following item"),
        ([USER, {**THOUGHT, "encrypted_content": None}, SAID], "Items are not persisted"),
        ([USER, SAID], "without its required 'reasoning' item: 'rs_t_0'"),
        ([USER, THOUGHT, SAID, THOUGHT, CALL, OUTPUT], None),
    ],
)
async def test_a_response_is_refused_as_the_vendor_does(responses, items, words):
    async with ModelServer([script.text("ok")]) as server:
        asked = responses(server).create(model="m", input=items, stream=True)
        if words is None:
            await (await asked).close()
            return
        with pytest.raises(openai.BadRequestError, match=words):
            await asked


async def test_errors_are_those_that_the_sdks_know(messages, completions):
    async with ModelServer([Refusal(529), Refusal(401), ScriptedReply([TextPart(["a"]), StreamError()])]) as server:
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            await messages(server).create(model="m", max_tokens=9, messages=[USER])
        with pytest.raises(openai.AuthenticationError):
            await completions(server).create(model="m", messages=[USER])
        with pytest.raises(openai.APIError, match="Overloaded"):
            async for _ in await completions(server).create(model="m", messages=[USER], stream=True):
                pass


async def test_a_history_with_an_open_call_is_refused_as_the_vendors_do(messages, completions):
    async with ModelServer() as server:
        use = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
        history = [USER, {"role": "assistant", "content": [use]}, USER]
        with pytest.raises(anthropic.BadRequestError, match="tool_use"):
            await messages(server).create(model="m", max_tokens=9, messages=history)
        call = {"id": "t", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        history = [USER, {"role": "assistant", "tool_calls": [call]}, USER]
        with pytest.raises(openai.BadRequestError, match="tool_calls"):
            await completions(server).create(model="m", messages=history)
    assert len(server.requests) == 2


async def test_a_request_after_the_last_reply_is_an_error(completions):
    async with ModelServer([script.text("only one")]) as server:
        await (await completions(server).create(model="m", messages=[USER], stream=True)).close()
        with pytest.raises(openai.InternalServerError, match="at its end"):
            await completions(server).create(model="m", messages=[USER], stream=True)


async def test_a_function_may_answer(completions):
    async with ModelServer(lambda request: script.text(str(request.messages[-1]["content"]))) as server:
        stream = await completions(server).create(model="m", messages=[USER], stream=True)
        said = [c.choices[0].delta.content async for c in stream if c.choices]
    assert "go" in said


def test_as_a_program_it_plays_a_file_and_prints_its_url(tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps([{"steps": [{"type": "text", "deltas": ["Hi"]}]}, {"status": 529}]))
    argv = [sys.executable, "-m", "zotd.testing.model_server", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout
            url = json.loads(program.stdout.readline())["openai_url"] + "/chat/completions"
            body = json.dumps({"model": "m", "messages": [USER]}).encode()
            assert '"Hi"' in urlopen(url, body).read().decode()
            with pytest.raises(HTTPError, match="529"):
                urlopen(url, body)
        finally:
            program.terminate()


@pytest.fixture
async def ollama_client():
    clients = []

    def client(server):
        clients.append(ollama.AsyncClient(server.url))
        return clients[-1]

    yield client
    for one in clients:
        await one.close()


async def test_ollamas_client_assembles_the_lines_of_the_script(ollama_client):
    async with ModelServer([REPLY]) as server:
        stream = await ollama_client(server).chat("m", [USER], stream=True, think="low", options={"num_ctx": 8192})
        lines = [line async for line in stream]
    assert "".join(line.message.thinking or "" for line in lines) == "hm"
    assert "".join(line.message.content or "" for line in lines) == "Let me look."
    found = [call.function.arguments for line in lines for call in line.message.tool_calls or ()]
    assert found == [{"path": "a"}, {"path": "b"}]
    last = lines[-1]
    assert (last.done, last.done_reason, last.prompt_eval_count, last.eval_count) == (True, "stop", 9, 3)


async def test_ollamas_client_reads_what_is_installed_and_what_is_loaded(ollama_client):
    models = OllamaModels({"qwen3": OllamaModel(context_length=40_960, num_ctx=16_384)})
    async with ModelServer([script.text("ok")], ollama=models) as server:
        client = ollama_client(server)
        shown = await client.show("qwen3")
        before = (await client.ps()).models
        assert [line.done async for line in await client.chat("qwen3", [USER], stream=True)] == [False, True]
        (loaded,) = (await client.ps()).models
        (listed,) = (await client.list()).models
    assert shown.modelinfo["qwen3.context_length"] == 40_960
    assert "num_ctx                        16384" in shown.parameters
    assert "tools" in shown.capabilities
    assert (before, loaded.name, loaded.context_length) == ([], "qwen3:latest", 16_384)
    assert listed.model == "qwen3:latest"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"think": "huge"}, "invalid think value"),
        ({"model": "plain", "think": True}, '"plain" does not support thinking'),
        ({"model": "plain", "tools": [{"type": "function"}]}, "plain:latest does not support tools"),
        ({"messages": [{"role": "user", "images": ["no base64!"]}]}, "illegal base64 data"),
        ({"messages": [{"tool_calls": [{"function": {"arguments": "{}"}}]}]}, "cannot unmarshal string"),
    ],
)
async def test_a_request_that_ollama_would_refuse_is_refused(fields, words):
    models = OllamaModels({"plain": OllamaModel(capabilities=("completion",))})
    body = {"model": "m", "messages": [USER], **fields}
    async with ModelServer([script.text("ok")], ollama=models) as server, httpx.AsyncClient() as client:
        answer = await client.post(f"{server.url}/api/chat", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert server.ollama.loads == []


async def test_ollama_loads_a_model_anew_for_another_size_and_never_with_more_than_it_was_made_for():
    models = OllamaModels({"m": OllamaModel(context_length=10_000)})
    async with ModelServer(lambda _: script.text("ok"), ollama=models) as server, httpx.AsyncClient() as client:
        for size in (8192, 8192, 32_768, 20_000, None):
            options = {"num_ctx": size} if size else {}
            await client.post(f"{server.url}/api/chat", json={"model": "m", "messages": [USER], "options": options})
    assert server.ollama.loads == [("m:latest", 8192), ("m:latest", 10_000), ("m:latest", 4096)]
