"""What a model cannot take is left out of its requests."""

import os

import pytest

from tests.providers.conftest import asking, parts_of, user
from zotd.config import Config, ModelEntry
from zotd.providers.catalog import Catalog
from zotd.providers.choice import ModelChoice
from zotd.providers.connect import Providers
from zotd.providers.narrowing import NO_IMAGES
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.wire.content import Image, Message, Text, ToolCall, ToolResult

PICTURE = Image("image/png", 3, "AAAA")


@pytest.fixture
async def providers():
    rows = (
        ModelEntry(provider="openai", id="no-tools", tools=False),
        ModelEntry(provider="openai", id="blind", images=False),
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
