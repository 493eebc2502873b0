"""A model that says what a script tells it, over real HTTP, in the APIs of Anthropic, OpenAI and Ollama.

    async with ModelServer([calls(Call("read", {"path": "a"})), text("done")]) as server:
        ...                                                   # provider anthropic, openai or ollama, base_url=server.url

As a program, for shells and benchmarks: `python -m zotd.testing.model_server SCRIPT.json`, `--reply TEXT` or
`--deltas N`; it prints one JSON line with its URL and serves until it is stopped.
"""

import argparse
import asyncio
import json
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from aiohttp import web
from msgspec.structs import replace

from zotd.testing import script
from zotd.testing.dialects import Anthropic, Dialect, Json, OpenAI, until_cut
from zotd.testing.ollama_dialect import Ollama, OllamaModels
from zotd.testing.prompt_cache import PromptCache
from zotd.testing.responses_dialect import Responses
from zotd.testing.script import Answer, Cut, Gate, Hang, Refusal, ScriptedReply

OLLAMA_CHAT = "/api/chat"

DIALECTS: Mapping[str, Dialect] = {
    "/messages": Anthropic(),
    "/chat/completions": OpenAI(),
    "/responses": Responses(),
    ":streamRawPredict": Anthropic(),
    OLLAMA_CHAT: Ollama(),
}
"""By the end of the path, so that any prefix will do."""

CLOSE_S = 1.0
"""How long open requests have to notice that the server closes."""

MAX_REQUEST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Received:
    """A request, for assertions."""

    path: str
    headers: Mapping[str, str]
    body: Json
    data: bytes = b""
    """The body as it came, for signatures."""

    @property
    def messages(self) -> list[Json]:
        """Its history, in the vendor's words."""
        return cast("list[Json]", self.body["messages" if "messages" in self.body else "input"])


Script = Iterable[Answer] | Callable[[Received], Answer]


class ModelServer:
    """Serves on loopback while it is entered."""

    def __init__(
        self,
        answers: Script = (),
        *,
        port: int = 0,
        cache: PromptCache | None = None,
        ollama: OllamaModels | None = None,
        dialects: Mapping[str, Dialect] = DIALECTS,
    ) -> None:
        """`answers`: one for each request, in order; or a function of the request. After the last one: status 500.

        `cache`: what the vendor caches of requests of the Messages API; None: usage is as the script says.
        `ollama`: the models that Ollama's API has; None: any.
        """
        self._answers: Iterator[Answer] | Callable[[Received], Answer]
        self._answers = answers if callable(answers) else iter(answers)
        self._port = port
        self._cache = cache
        self.ollama = ollama or OllamaModels()
        self._dialects = dialects
        self._runner: web.AppRunner | None = None
        self._closing = asyncio.Event()
        self.requests: list[Received] = []
        """What came in, refused requests included."""
        self.shown: list[Received] = []
        """Requests for what Ollama says of a model."""
        self.key: str | None = None
        """The only one with which the list of models is shown; None: there is no list."""
        self.tried: list[str] = []
        """The keys with which somebody asked for it."""
        self.pages: dict[str, Json] = {}
        """Other documents to serve, by path, such as `/props` of llama.cpp."""
        self.arrived = asyncio.Condition()
        """Notified at each request."""
        self.url = ""
        """The base URL, as the SDKs want it for Anthropic; for OpenAI `openai_url`."""

    @property
    def openai_url(self) -> str:
        """The base URL for the OpenAI SDK, which adds no `/v1`."""
        return f"{self.url}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_post("/{path:.*}", self._serve)
        app.router.add_get("/{path:.*}", self._get)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def serve_at(self, listener: socket.socket) -> None:
        """Serve at a socket that listens, too, for example in another network; the server closes it."""
        assert self._runner is not None
        await web.SockSite(self._runner, listener).start()

    async def received(self, count: int) -> None:
        """Wait until `count` requests have come in."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.requests) >= count)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if request.path in self.pages:
            return web.json_response(self.pages[request.path])
        if request.path.endswith("/models"):
            return await self._models(request)
        if request.path.endswith("/api/ps"):
            return web.json_response(self.ollama.ps())
        if request.path.endswith("/api/tags"):
            return web.json_response(self.ollama.tags(), status=self._admitted(request))
        return web.json_response({"error": {"message": f"no such endpoint: {request.path}"}}, status=404)

    async def _models(self, request: web.Request) -> web.StreamResponse:
        """The list of models, for whoever has the right key."""
        status = self._admitted(request)
        if self.key is None:
            return web.json_response({"error": {"message": "there is no list of models"}}, status=404)
        return web.json_response({"data": []}, status=status)

    def _admitted(self, request: web.Request) -> int:
        """The status of the list of models, for the key of the request."""
        given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        self.tried.append(given)
        return 200 if self.key in {None, given} else 401

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/api/show"):
            return await self._show(request)
        dialect = next((one for end, one in self._dialects.items() if request.path.endswith(end)), None)
        if dialect is None:
            return web.json_response({"error": {"message": f"no such endpoint: {request.path}"}}, status=404)
        data = await request.read()
        received = Received(request.path, dict(request.headers), json.loads(data), data)
        self.requests.append(received)
        async with self.arrived:
            self.arrived.notify_all()
        problem = dialect.problem(received.body) or (self._cache and self._cache.problem(received.body))
        if problem is None and request.path.endswith(OLLAMA_CHAT):
            problem = self.ollama.problem(received.body)
        answer = Refusal(400, problem) if problem else self._next(received)
        if isinstance(answer, Refusal) and answer.page:
            return web.Response(text=answer.page, content_type="text/html", status=answer.status)
        if isinstance(answer, Refusal):
            return web.json_response(dialect.refusal(answer), status=answer.status, headers=dict(answer.headers))
        if self._cache is not None:
            answer = replace(answer, usage=replace(self._cache.used(received.body), output=answer.usage.output))
        return await self._stream(request, dialect, answer, answer.model or str(received.body.get("model")))

    async def _show(self, request: web.Request) -> web.StreamResponse:
        """What Ollama says of a model. Not one of `requests`, which are those for replies."""
        self.shown.append(Received(request.path, dict(request.headers), await request.json()))
        if request.path in self.pages:
            return web.json_response(self.pages[request.path])
        return web.json_response(self.ollama.show(str(self.shown[-1].body.get("model"))))

    def _next(self, received: Received) -> Answer:
        if callable(self._answers):
            return self._answers(received)
        return next(self._answers, Refusal(500, "the script is at its end"))

    async def _stream(
        self, request: web.Request, dialect: Dialect, reply: ScriptedReply, model: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": dialect.content_type})
        waiting: list[bytes] = []
        for piece in until_cut(reply, dialect.pieces(reply, model)):
            if isinstance(piece, bytes):
                waiting.append(piece)
                if reply.joined:
                    continue
            await _send(request, response, waiting)
            match piece:
                case Gate(event):
                    await event.wait()
                case Hang():
                    await self._closing.wait()
                case Cut():
                    _cut(request)
                    return response
                case bytes():
                    pass
        await _send(request, response, waiting)
        if response.prepared:  # else it has hung until the server was closed
            await response.write_eof()
        return response


async def _send(request: web.Request, response: web.StreamResponse, waiting: list[bytes]) -> None:
    if not waiting:
        return
    if not response.prepared:
        await response.prepare(request)
    await response.write(b"".join(waiting))
    waiting.clear()


def _cut(request: web.Request) -> None:
    transport = request.transport
    if transport is not None:
        transport.close()  # what was written arrives; the chunked body has no end


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m zotd.testing.model_server", description="A scripted model.")
    parser.add_argument("script", nargs="?", type=Path, help="a JSON list of replies, played once")
    parser.add_argument("--reply", action="append", default=[], metavar="TEXT", help="one reply each, played for ever")
    parser.add_argument("--deltas", type=int, metavar="N", help="every reply has N deltas, sent as fast as possible")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args(argv)
    try:
        asyncio.run(_run(_script(options.script, options.reply, options.deltas), options.port))
    except KeyboardInterrupt:
        sys.exit(130)


def _script(path: Path | None, replies: Sequence[str], deltas: int | None) -> Script:
    if path is not None:
        return script.load(path.read_bytes())
    if deltas is not None:
        return repeat(ScriptedReply([script.TextPart(["tok "] * deltas)], joined=True))
    found = [script.text(text) for text in replies] or [script.text("ok")]
    return (one for _ in repeat(None) for one in found)


async def _run(answers: Script, port: int) -> None:
    async with ModelServer(answers, port=port) as server:
        sys.stdout.write(json.dumps({"url": server.url, "openai_url": server.openai_url}) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()
