"""Ollama's own API: what is asked for, what is sent, and how its answers are read."""

import asyncio
import json
import os
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.providers.conftest import asking, broken_off, parts_of, user
from zotd.config import Config, ModelEntry, ProviderSection
from zotd.core.reply import ServerAdvice, Stopped
from zotd.core.retry import Failure, ModelError
from zotd.providers import windows
from zotd.providers.catalog import Catalog
from zotd.providers.choice import ModelChoice
from zotd.providers.connect import Providers
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.testing.ollama_dialect import OllamaModel, OllamaModels
from zotd.testing.script import Refusal
from zotd.wire.content import Image, Message, Text, Thinking, ToolCall, ToolResult

SMALL = {"m": OllamaModel(context_length=8192)}


@pytest.fixture
async def opened():
    """`opened(providers=…, models=…)`: what opens models, with these rows of the user."""
    made = []

    def opened(**rows):
        made.append(Providers(Catalog.load(None, Config(**rows)), os.environ))
        return made[-1]

    yield opened
    for one in made:
        await one.close()


@pytest.fixture
def connect(opened):
    providers = opened()
    return lambda server, **choice: providers.connect(ModelChoice("ollama", "m", base_url=server.url, **choice))


async def asked(providers, server, *requests, told=None, **choice):
    """The bodies of these requests, all of one run."""
    model = providers.connect(ModelChoice("ollama", "m", base_url=server.url, **choice), told)
    for request in requests or [asking()]:
        await parts_of(model, request)
    return [received.body for received in server.requests]


def num_ctx(received):
    return json.loads(received.data)["options"]["num_ctx"]


def answers(count):
    return [script.text("ok")] * count


# --- the context window -------------------------------------------------------------------------------------------------


async def test_every_request_asks_for_the_same_context_window_so_the_model_is_loaded_once(opened):
    providers = opened()
    async with ModelServer(answers(4)) as server:
        for request in (asking(), asking(tools=[])):
            await asked(providers, server, request, asking(user("x" * 100_000)))
        assert [num_ctx(received) for received in server.requests] == [32_768] * 4
        assert server.ollama.loads == [("m:latest", 32_768)]
        assert len(server.shown) == 1


async def test_nothing_is_left_out_of_a_prompt_without_a_word(opened):
    async with ModelServer(answers(1)) as server:
        (body,) = await asked(opened(), server)
    assert (body["truncate"], body["shift"]) == (False, False)


MODELS = {
    "the default": (OllamaModel(), None, None, 32_768),
    "what the model was made for": (OllamaModel(context_length=20_000), None, None, 20_000),
    "the Modelfile": (OllamaModel(num_ctx=65_536), None, None, 65_536),
    "the vendor's row": (OllamaModel(num_ctx=65_536), 40_000, None, 40_000),
    "the model's row": (OllamaModel(num_ctx=65_536), 40_000, 50_000, 50_000),
    "no more than the model was made for": (OllamaModel(context_length=20_000), None, 50_000, 20_000),
}


@pytest.mark.parametrize("case", MODELS)
async def test_the_size_is_the_users_or_the_models_and_compaction_uses_it(opened, case):
    installed, vendor, row, expected = MODELS[case]
    rows = () if row is None else (ModelEntry(provider="ollama", id="m", context_window=row),)
    providers = opened(providers={"ollama": ProviderSection(context_window=vendor)}, models=rows)
    async with ModelServer(answers(1), ollama=OllamaModels({"m": installed})) as server:
        model = providers.connect(ModelChoice("ollama", "m", base_url=server.url))
        assert model.context_window == (row or vendor or 32_768)
        parts = await parts_of(model)
        assert not [part for part in parts if isinstance(part, ServerAdvice)]
    assert num_ctx(server.requests[0]) == expected
    assert server.ollama.loads == [("m:latest", expected)]
    assert model.context_window == expected


async def test_a_model_in_whose_context_the_tools_do_not_fit_is_told_once_a_run(opened):
    async with ModelServer(answers(2), ollama=OllamaModels(SMALL)) as server:
        model = opened().connect(ModelChoice("ollama", "m", base_url=server.url))
        first, second = [[p.text for p in await parts_of(model) if isinstance(p, ServerAdvice)] for _ in range(2)]
    assert second == []
    assert first == [
        "m on Ollama has a context of 8,192 tokens at most, in which the tools do not fit; choose another model"
    ]


@pytest.mark.parametrize(
    ("installed", "row"), [(OllamaModel(), 8192), (OllamaModel(num_ctx=8192), None)], ids=["row", "Modelfile"]
)
async def test_a_smaller_context_that_the_user_has_set_is_used_and_told(opened, installed, row):
    rows = () if row is None else (ModelEntry(provider="ollama", id="m", context_window=row),)
    async with ModelServer(answers(1), ollama=OllamaModels({"m": installed})) as server:
        parts = await parts_of(opened(models=rows).connect(ModelChoice("ollama", "m", base_url=server.url)))
    (told,) = [part.text for part in parts if isinstance(part, ServerAdvice)]
    assert "with a context of 8,192 tokens, as configured" in told
    assert "raise context_window in [[models]] to 32768" in told
    assert num_ctx(server.requests[0]) == 8192


@pytest.mark.parametrize("page", [{"model_info": 5}, {"error": "busy"}, {}])
async def test_a_server_that_does_not_describe_a_model_is_asked_again_and_then_for_the_right_size(opened, page):
    async with ModelServer(answers(3), ollama=OllamaModels({"m": OllamaModel(context_length=20_000)})) as server:
        server.pages["/api/show"] = page
        model = opened().connect(ModelChoice("ollama", "m", base_url=server.url))
        await parts_of(model)
        assert model.context_window == 32_768
        del server.pages["/api/show"]
        await parts_of(model)
        await parts_of(model)
    assert [num_ctx(received) for received in server.requests] == [32_768, 20_000, 20_000]
    assert len(server.shown) == 2


async def test_a_server_that_is_too_busy_to_describe_a_model_is_not_waited_for(connect, monkeypatch):
    monkeypatch.setattr(windows, "ASK_S", 0.01)
    is_over, received = asyncio.Event(), []

    async def answer(request):
        if request.path == "/api/show":
            await is_over.wait()
        received.append(await request.json())
        return web.Response(body=b'{"message":{},"done":true}\n')

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    async with TestServer(app) as server:
        parts = await parts_of(connect(SimpleNamespace(url=f"http://127.0.0.1:{server.port}")))
        is_over.set()
    assert parts[-1] == Stopped("end_turn")
    assert received[0]["options"]["num_ctx"] == 32_768


async def test_a_prompt_that_is_too_long_is_compacted(connect):
    words = "the prompt is longer than the context length currently available to the model; shorten the prompt"
    async with ModelServer([Refusal(400, words)]) as server:
        _, error = await broken_off(connect(server))
    assert error.failure is Failure.CONTEXT


async def test_a_model_for_which_there_is_no_memory_is_not_asked_again_for_hours(connect):
    words = "model requires more system memory (9.3 GiB) than is available (5.1 GiB)"
    async with ModelServer([Refusal(500, words)]) as server:
        _, error = await broken_off(connect(server))
    assert error.failure is Failure.REFUSED
    assert error.sentence == (
        f"Ollama answered 500: {words}; choose a smaller model, or set a smaller context_window for m in [[models]]"
    )


# --- which API ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "api", "asked_at"),
    [
        ("", None, "/api/chat"),
        ("/", None, "/api/chat"),
        ("/api", None, "/api/chat"),
        ("/proxy", None, "/proxy/api/chat"),
        ("/v1", None, "/v1/chat/completions"),
        ("/v1/", None, "/v1/chat/completions"),
        ("", "chat", "/v1/chat/completions"),
        ("/v1", "responses", "/v1/responses"),
    ],
)
async def test_a_base_url_that_ends_in_v1_and_a_setting_mean_openais_api(opened, path, api, asked_at):
    async with ModelServer(answers(1)) as server:
        await parts_of(opened().connect(ModelChoice("ollama", "m", base_url=server.url + path, api=api)))
    (received,) = server.requests
    assert received.path == asked_at
    assert ("options" in received.body) == (asked_at.endswith("/api/chat"))


async def test_a_vendor_of_the_user_may_speak_ollamas_api(opened):
    async with ModelServer(answers(1), ollama=OllamaModels(SMALL)) as server:
        providers = opened(providers={"box": ProviderSection(base_url=server.url, dialect="ollama")})
        parts = await parts_of(providers.connect(ModelChoice("box", "m")))
    assert server.requests[0].path == "/api/chat"
    assert server.ollama.loads == [("m:latest", 8192)]
    assert [part.text.partition(",")[0] for part in parts if isinstance(part, ServerAdvice)] == [
        "m on box has a context of 8"
    ]


async def test_a_key_goes_with_every_request_and_without_one_there_is_no_header(opened):
    async with ModelServer(answers(2)) as server:
        for key in ("sk-remote", None):
            await asked(opened(), server, api_key=key)
    heads = [{name.lower(): value for name, value in one.headers.items()} for one in [*server.shown, *server.requests]]
    assert [head.get("authorization") for head in heads] == ["Bearer sk-remote", None] * 2


async def test_the_key_may_have_another_header(opened):
    section = ProviderSection(key_header="X-Key", headers={"X-Team": "blue"})
    async with ModelServer(answers(1)) as server:
        await asked(opened(providers={"ollama": section}), server, api_key="sk-remote")
    (received,) = server.requests
    assert (received.headers["X-Key"], received.headers["X-Team"]) == ("sk-remote", "blue")
    assert "Authorization" not in received.headers


@pytest.mark.parametrize(("key", "status"), [("right", 200), ("wrong", 401)])
async def test_a_key_is_tried_with_the_list_of_installed_models(opened, key, status):
    async with ModelServer() as server:
        server.key = "right"
        assert await opened().key_status(ModelChoice("ollama", "m", key, server.url)) == status


async def test_a_server_that_is_away_cannot_try_a_key(opened):
    with pytest.raises(ModelError) as raised:
        await opened().key_status(ModelChoice("ollama", "m", "k", "http://127.0.0.1:9"))
    assert raised.value.failure is Failure.UNREACHABLE


# --- requests -----------------------------------------------------------------------------------------------------------

CALLS = Message("assistant", [ToolCall("c_1", "read", {"path": "a"}), ToolCall("c_2", "grep", {"pattern": "b"})], "")


def result(call_id, *content, is_error=False):
    return Message("tool", [ToolResult(call_id, is_error=is_error, content=list(content))], "")


async def test_results_stand_in_the_order_of_their_calls_with_the_names_of_the_tools(opened):
    messages = [user("go"), CALLS, result("c_2", Text("late"), is_error=True), result("c_1", Text("early"))]
    async with ModelServer(answers(1)) as server:
        (body,) = await asked(opened(), server, asking(*messages))
    assistant, *results = body["messages"][2:]
    assert [call["function"] for call in assistant["tool_calls"]] == [
        {"index": 0, "name": "read", "arguments": {"path": "a"}},
        {"index": 1, "name": "grep", "arguments": {"pattern": "b"}},
    ]
    assert results == [
        {"role": "tool", "tool_name": "read", "tool_call_id": "c_1", "content": "early"},
        {"role": "tool", "tool_name": "grep", "tool_call_id": "c_2", "content": "Error: late"},
    ]
    assert [call["id"] for call in assistant["tool_calls"]] == ["c_1", "c_2"]


async def test_images_go_with_the_message_that_has_them(opened):
    picture = Image("image/png", 3, "AAAA")
    messages = [Message("user", [Text("look"), picture], ""), CALLS, result("c_1", picture), result("c_2", Text("end"))]
    async with ModelServer(answers(1)) as server:
        (body,) = await asked(opened(), server, asking(*messages))
    assert [message.get("images") for message in body["messages"]] == [None, ["AAAA"], None, ["AAAA"], None]


async def test_only_thoughts_of_the_same_model_go_back(opened):
    def thought(text, model, **fields):
        return Message("assistant", [Thinking(text, model=model, **fields), Text("Yes.")], "")

    messages = [
        user("go"),
        thought("own", "ollama/m"),
        thought("another's", "anthropic/m"),
        thought("signed", "ollama/m", signature="s"),
    ]
    async with ModelServer(answers(1)) as server:
        (body,) = await asked(opened(), server, asking(*messages))
    assert [message.get("thinking") for message in body["messages"]] == [None, None, "own", None, None]


async def test_what_says_nothing_is_left_out(opened):
    silent = Message("assistant", [Thinking("only thought", model="ollama/m")], "")
    async with ModelServer(answers(1)) as server:
        (body,) = await asked(opened(), server, asking(user("go"), silent, user(""), system=" ", tools=[]))
    assert body["messages"] == [{"role": "user", "content": "go"}]
    assert "tools" not in body


async def test_further_fields_such_as_keep_alive_go_with_each_request(opened):
    extra: dict[str, object] = {"keep_alive": "30m", "options": {"temperature": 0}}
    async with ModelServer(answers(1)) as server:
        request = asking(max_output=100)
        (body,) = await asked(opened(providers={"ollama": ProviderSection(extra=extra)}), server, request)
    assert body["keep_alive"] == "30m"
    assert body["options"] == {"temperature": 0, "num_ctx": 32_768, "num_predict": 100}


def test_num_ctx_among_the_further_fields_is_refused():
    with pytest.raises(ValueError, match=r"extra.options.num_ctx has no effect; set context_window instead"):
        ProviderSection(extra={"options": {"num_ctx": 8192}})


# --- thinking -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reasoning", "think"), [("off", False), ("minimum", "low"), ("medium", "medium"), ("max", "high"), ("own", "high")]
)
async def test_the_level_of_reasoning_becomes_one_that_ollama_knows(opened, reasoning, think):
    async with ModelServer(answers(1)) as server:
        (body,) = await asked(opened(), server, asking(reasoning=reasoning))
    assert body["think"] == think


async def test_a_model_without_levels_is_told_to_think(opened):
    refusal = Refusal(400, 'think value "high" is not supported for this model')
    async with ModelServer([refusal, *answers(2)]) as server:
        request = asking(reasoning="high")
        bodies = await asked(opened(), server, request, request)
    assert [body["think"] for body in bodies] == ["high", True, True]


async def test_a_model_that_does_not_think_is_asked_without_and_that_is_told_once(opened):
    told: set[str] = set()
    providers, request = opened(), asking(reasoning="high")
    models = OllamaModels({"m": OllamaModel(capabilities=("completion", "tools"))})
    async with ModelServer(answers(2), ollama=models) as server:
        for _ in range(2):
            model = providers.connect(ModelChoice("ollama", "m", base_url=server.url), told)
            await parts_of(model, request)
    assert [received.body["think"] for received in server.requests] == ["high", False, False]
    (sentence,) = told
    assert sentence == (
        'm does not reason, so the reasoning level has no effect (Ollama answered 400: "m" does not support thinking)'
    )


async def test_a_model_without_tools_gets_none(opened):
    models = OllamaModels({"m": OllamaModel(capabilities=("completion",))})
    async with ModelServer(answers(1), ollama=models) as server:
        bodies = await asked(opened(), server, told=set())
    assert ["tools" in body for body in bodies] == [True, False]
