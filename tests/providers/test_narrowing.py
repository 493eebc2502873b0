"""What a model cannot take is left out of its requests, and the user is told."""

import os

import pytest

from tests.providers.conftest import asking, broken_off, parts_of, user
from zotd.config import Config, ModelEntry
from zotd.core.reply import ServerAdvice
from zotd.core.retry import ModelError
from zotd.providers.catalog import Catalog
from zotd.providers.choice import ModelChoice
from zotd.providers.connect import Providers
from zotd.providers.narrowing import NO_IMAGES
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.testing.script import Refusal
from zotd.wire.content import Image, Message, Text, ToolCall, ToolResult

PICTURE = Image("image/png", 3, "AAAA")


@pytest.fixture
async def providers():
    rows = (
        ModelEntry(provider="openai", id="no-tools", tools=False),
        ModelEntry(provider="openai", id="blind", images=False),
        ModelEntry(provider="openai", id="sees", images=True, tools=True),
    )
    opened = Providers(Catalog.load(None, Config(models=rows)), os.environ)
    yield opened
    await opened.close()


async def sent(providers, model, *requests):
    async with ModelServer([script.text("ok") for _ in requests]) as server:
        connection = providers.connect(ModelChoice("openai", model, api_key="k", base_url=server.url))
        for request in requests:
            await parts_of(connection, request)
    return [request.body for request in server.requests]


async def test_a_model_without_tools_gets_none(providers):
    (body,) = await sent(providers, "no-tools", asking(user("hi")))
    assert "tools" not in body


async def test_a_model_that_cannot_see_gets_a_text_for_each_image(providers):
    messages = [
        Message("user", [Text("look"), PICTURE], ""),
        Message("assistant", [ToolCall("c_1", "read", {})], ""),
        Message("tool", [ToolResult("c_1", is_error=False, content=[PICTURE, Text("end")])], ""),
    ]
    first, second = await sent(providers, "blind", asking(*messages), asking(*messages, user("more")))
    assert "image_url" not in str(first)
    assert str(first).count(NO_IMAGES) == 2
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["tools"]


async def test_an_unknown_model_gets_everything(providers):
    (body,) = await sent(providers, "another", asking(Message("user", [Text("look"), PICTURE], "")))
    assert "image_url" in str(body)
    assert body["tools"]


# --- what the vendor refuses -------------------------------------------------------------------------------------------

LOOK = Message("user", [Text("look"), PICTURE], "")

NO_IMAGES_WORDS = {
    "llama.cpp": (
        500,
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    ),
    "ollama": (500, "this model is missing data required for image input"),
    "openrouter": (404, "No endpoints found that support image input"),
    "deepseek": (422, "messages[0]: unknown variant `image_url`, expected `text` at line 1 column 9"),
    "openai": (400, "Invalid content type. image_url is only supported by certain models."),
    "vllm": (400, "m is not a multimodal model"),
    "lmstudio": (400, "Model does not support images. Please use a model that does."),
    "xai": (400, "Image inputs are not supported by this model."),
    "mistral": (400, "Image input is not enabled for this model"),
}

NO_TOOLS_WORDS = {
    "ollama": (400, "registry.ollama.ai/library/m:latest does not support tools"),
    "openrouter": (404, 'No endpoints found that support tool use. Try disabling "read".'),
    "groq": (400, "`tool calling` is not supported with this model"),
    "mistral": (400, "Function calling is not enabled for this model"),
    "vllm": (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "llama.cpp": (500, "tools param requires --jinja flag"),
}


def opened(providers, server, told, model="m"):
    return providers.connect(ModelChoice("openai", model, api_key="k", base_url=server.url), told)


async def broken_off_with(model, request):
    with pytest.raises(ModelError) as raised:
        await parts_of(model, request)
    return raised.value


async def advice(model, request):
    return [part.text for part in await parts_of(model, request) if isinstance(part, ServerAdvice)]


@pytest.mark.parametrize("who", NO_IMAGES_WORDS)
async def test_images_that_a_vendor_refuses_are_left_out_and_told_once(providers, who):
    async with ModelServer([Refusal(*NO_IMAGES_WORDS[who]), script.text("ok"), script.text("ok")]) as server:
        told: set[str] = set()
        (said,) = await advice(opened(providers, server, told), asking(LOOK))
        assert await advice(opened(providers, server, told), asking(LOOK)) == []
    assert "m takes no images, so they are left out" in said
    assert NO_IMAGES_WORDS[who][1].partition(".")[0][:40] in said
    refused, *sent = [str(request.body) for request in server.requests]
    assert "image_url" in refused
    assert all("image_url" not in body and NO_IMAGES in body and "'read'" in body for body in sent)


@pytest.mark.parametrize("who", NO_TOOLS_WORDS)
async def test_tools_that_a_vendor_refuses_are_left_out_and_told_once(providers, who):
    async with ModelServer([Refusal(*NO_TOOLS_WORDS[who]), script.text("ok"), script.text("ok")]) as server:
        told: set[str] = set()
        (said,) = await advice(opened(providers, server, told), asking(LOOK))
        assert await advice(opened(providers, server, told), asking(LOOK)) == []
    assert "m takes no tools, so it can only talk" in said
    first, *sent = [request.body for request in server.requests]
    assert "tools" in first
    assert all("tools" not in body and "image_url" in str(body) for body in sent)


async def test_a_vendor_may_refuse_both_one_after_the_other(providers):
    refusals = [Refusal(*NO_TOOLS_WORDS["ollama"]), Refusal(*NO_IMAGES_WORDS["ollama"])]
    async with ModelServer([*refusals, script.text("ok")]) as server:
        assert len(await advice(opened(providers, server, set()), asking(LOOK))) == 2
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("model", "told", "message"),
    [
        ("sees", set(), LOOK),  # the user says that it sees
        ("m", None, LOOK),  # a probe wants to know
        ("m", set(), user("hi")),  # there is no image
    ],
)
async def test_a_refusal_stays_one_when_nothing_can_be_left_out(providers, model, told, message):
    async with ModelServer([Refusal(*NO_IMAGES_WORDS["openai"])]) as server:
        error = await broken_off_with(opened(providers, server, told, model), asking(message))
    assert "image_url is only supported" in error.sentence
    assert len(server.requests) == 1


async def test_a_request_that_fails_tells_nothing_so_that_the_next_one_does(providers):
    async with ModelServer([Refusal(529), script.text("ok")]) as server:
        told: set[str] = set()
        await broken_off(opened(providers, server, told, "no-tools"))
        assert await advice(opened(providers, server, told, "no-tools"), asking()) == [*told]
    assert len(told) == 1
