"""Models opened for real: the vendors' SDKs over HTTP on loopback."""

import os
from contextlib import aclosing, asynccontextmanager

import pytest
from aiohttp import web

from zotd.core.ports import ModelRequest, ToolSpec
from zotd.core.reply import Assembler
from zotd.core.retry import ModelError
from zotd.providers.catalog import Catalog
from zotd.providers.choice import ModelChoice
from zotd.providers.connect import Providers
from zotd.testing.http_site import listening
from zotd.wire.content import Message, Text

READ = ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})

DIALECTS = ["anthropic", "ollama", "openai", "responses"]
"""The model APIs, by the name that `connect.APIS` gives them."""

TITLES = {"anthropic": "Anthropic", "ollama": "Ollama", "openai": "OpenAI", "responses": "OpenAI"}
"""What sentences call the vendor that `chosen` chooses."""


@pytest.fixture
async def providers():
    opened = Providers(Catalog.load(None), os.environ)
    yield opened
    await opened.close()


@pytest.fixture
def connect(providers):
    def to(server, vendor, model="a-model", **choice):
        return providers.connect(chosen(vendor, model, api_key="sk-test", base_url=server.url, **choice))

    return to


def chosen(vendor, model, **fields):
    """The choice of a model; `responses` for a vendor is OpenAI in that API."""
    if vendor == "responses":
        return ModelChoice("openai", model, api="responses", **fields)
    return ModelChoice(vendor, model, **fields)


def user(text):
    return Message("user", [Text(text)], "")


def asking(*messages, **fields):
    return ModelRequest(
        **{"system": "Be brief.", "tools": [READ]} | fields, messages=[*messages] if messages else [user("hi")]
    )


async def parts_of(model, request=None):
    """All parts of one reply, in order."""
    async with aclosing(model.stream(request or asking())) as stream:
        return [part async for parts in stream for part in parts]


async def assembled(model, request=None):
    """One reply as a session puts it together."""
    numbers = iter(range(1000))
    assembler = Assembler(None, lambda: f"c_{next(numbers)}")
    assembler.feed(await parts_of(model, request))
    return assembler


async def broken_off(model):
    """The parts before the error, and the error."""
    got = []
    try:
        async for parts in model.stream(asking()):
            got.extend(parts)
    except ModelError as error:
        return got, error
    raise AssertionError(got)


class RawServer:
    """Answers every request with these bytes, status and headers, in these chunks."""

    def __init__(self, *chunks, status=200, headers=None):
        self.chunks = chunks
        self.status = status
        self.headers = headers or {}
        self.peers = set()
        self.url = ""

    async def answer(self, request):
        self.peers.add(request.transport.get_extra_info("peername"))
        await request.read()
        response = web.StreamResponse(status=self.status, headers=self.headers)
        await response.prepare(request)
        for chunk in self.chunks:
            await response.write(chunk)
        return response


@pytest.fixture
def raw():
    @asynccontextmanager
    async def serve(*chunks, **fields):
        server = RawServer(*chunks, **fields)
        app = web.Application()
        app.router.add_post("/{path:.*}", server.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        server.url = await listening(runner)
        try:
            yield server
        finally:
            await runner.cleanup()

    return serve
