"""The first request of a client is the SDK's; later ones repeat its headers, and fail in the same words."""

import asyncio
import gzip
import os
from contextlib import asynccontextmanager

import pytest

from tests.providers.conftest import DIALECTS, asking, broken_off, chosen, parts_of, user
from zotd.core.retry import ModelError
from zotd.providers.anthropic import sdk as anthropic
from zotd.providers.catalog import Catalog
from zotd.providers.connect import Providers
from zotd.providers.ollama import client as ollama
from zotd.providers.openai import sdk as openai
from zotd.testing import script
from zotd.testing.model_server import ModelServer

DONE = {
    "anthropic": b'data: {"type":"message_stop"}\n\n',
    "ollama": b'{"message":{},"done":true}\n',
    "openai": b'data: {"choices":[{"finish_reason":"stop"}]}\n\n',
    "responses": b'data: {"type":"response.completed","response":{}}\n\n',
}


def answer(status, body=b"", *headers):
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


ERROR = b'{"error":{"type":"some_error","message":"something is wrong"}}'

FAILURES = {
    "bad request": answer(400, ERROR),
    "key refused": answer(401, ERROR),
    "too large": answer(413, ERROR),
    "rate limit": answer(429, ERROR, "Retry-After: 7"),
    "server error": answer(500, b"<html><title>Oops</title></html>"),
    "overloaded": answer(529, ERROR),
    "compressed": answer(400, gzip.compress(ERROR), "Content-Encoding: gzip"),
    "redirect": answer(302, b"", "Location: http://127.0.0.1:9/"),
    "another encoding": answer(200, b"x", "Content-Encoding: br"),
    "long headers": answer(200, b"", "X-Long: " + "x" * 200_000),
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "end of the connection": b"",
    "cut headers": b"HTTP/1.1 200 OK\r\nContent-",
    "silence": None,
}


@asynccontextmanager
async def serving(vendor, *answers):
    """A server that gives these answers, one to each request; None: it says nothing."""
    left = [*answers]
    ended = asyncio.Event()

    async def serve(reader, writer):
        try:
            while left:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(size)
                if b"/api/show" in head:
                    writer.write(answer(404))
                    continue
                said = left.pop(0)
                if said is None:
                    await ended.wait()
                    return
                writer.write(said)
                await writer.drain()
                if not said.startswith(b"HTTP/1.1 2") or b"X-Long" in said or said[-8:] == b"Content-":
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            ended.set()


async def failure(vendor, *answers):
    """How the last of these requests fails, without the URL of its server."""
    providers = Providers(Catalog.load(None), os.environ)
    try:
        async with serving(vendor, *answers) as url:
            for _ in answers[1:]:
                await parts_of(providers.connect(chosen(vendor, "m", api_key="k", base_url=url)))
            _, error = await broken_off(providers.connect(chosen(vendor, "m", api_key="k", base_url=url)))
    finally:
        await providers.close()
    assert type(error) is ModelError
    return {**vars(error), "sentence": error.sentence.replace(url, "URL"), "failure": error.failure}


@pytest.mark.parametrize("vendor", DIALECTS)
@pytest.mark.parametrize("kind", FAILURES)
async def test_a_repeated_request_fails_as_the_first_one_does(vendor, kind, monkeypatch):
    for module in (anthropic, ollama, openai):
        monkeypatch.setattr(module, "SILENCE_S", 0.3)
    first = await failure(vendor, FAILURES[kind])
    assert await failure(vendor, answer(200, DONE[vendor]), FAILURES[kind]) == first


@pytest.mark.parametrize("vendor", DIALECTS)
async def test_a_repeated_request_has_the_headers_of_the_first(connect, vendor):
    async with ModelServer([script.text("one"), script.text("two"), script.text("three")]) as server:
        for words in ("hi", "something longer", "x"):
            await parts_of(connect(server, vendor), asking(user(words)))
    heads = [
        {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
        for request in server.requests
    ]
    assert heads[0] == heads[1] == heads[2]
    assert len({str(request.body) for request in server.requests}) == 3
    assert len({request.path for request in server.requests}) == 1
