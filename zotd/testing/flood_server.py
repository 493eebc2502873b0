"""A model server that answers without measure, for tests of what a daemon takes.

    async with FloodServer() as server:
        ...                                    # base_url=server.url("gzip_error")

As a program: `python -m zotd.testing.flood_server` prints one JSON line with its URL and serves until it is stopped;
the first part of a request's path names the flood (`FLOODS`).
"""

import asyncio
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import repeat
from types import TracebackType
from typing import Self

CHUNK = 64 * 1024

ERROR_BYTES = 2 * 1024**3
"""Size of an error's body, decompressed."""

WORDS = "All work and no play. " * 20
"""Text of each delta: long, because a client in a test has to read them all."""

MANY = 10_000_000
"""As good as without end."""


def _head(status: str, *fields: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *fields, "", "")).encode()


def _chunked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)


def _streamed(*first: bytes, then: bytes) -> Iterator[bytes]:
    """A stream of events that does not end."""
    yield _head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    yield from _chunked(iter(first))
    yield from _chunked(repeat(then * (CHUNK // len(then) + 1), MANY))


def _event(body: object) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _delta(delta: object) -> bytes:
    return _event({"choices": [{"index": 0, "delta": delta}]})


def _plain_error() -> Iterator[bytes]:
    yield _head("400 Bad Request", "Content-Type: application/json", f"Content-Length: {ERROR_BYTES}")
    yield b'{"error": {"message": "'
    yield from repeat(b"x" * CHUNK, ERROR_BYTES // CHUNK)


def _chunked_error() -> Iterator[bytes]:
    yield _head("400 Bad Request", "Content-Type: application/json", "Transfer-Encoding: chunked")
    yield from _chunked(repeat(b"x" * CHUNK, MANY))


def _gzip(status: str) -> Iterator[bytes]:
    """2 MiB that become 2 GiB."""
    yield _head(status, "Content-Encoding: gzip", "Transfer-Encoding: chunked")
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    packed = (packer.compress(b" " * 1024**2) for _ in range(ERROR_BYTES // 1024**2))
    yield from _chunked(piece for piece in packed if piece)
    yield from _chunked(iter([packer.flush()]))
    yield b"0\r\n\r\n"


def _headers() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    yield from (b"X-%d: %b\r\n" % (number, b"y" * 1000) for number in range(MANY))


def _calls() -> Iterator[bytes]:
    starts = (_delta({"tool_calls": [{"index": n, "id": f"c{n}", "function": {"name": "x"}}]}) for n in range(MANY))
    yield _head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    yield from _chunked(starts)


_CALL = _delta({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "write", "arguments": '{"a": "'}}]})

FLOODS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "plain_error": _plain_error,
    "chunked_error": _chunked_error,
    "gzip_error": lambda: _gzip("400 Bad Request"),
    "gzip_reply": lambda: _gzip("200 OK"),
    "headers": _headers,
    "text": lambda: _streamed(then=_delta({"content": WORDS})),
    "thinking": lambda: _streamed(then=_delta({"reasoning_content": WORDS})),
    "arguments": lambda: _streamed(
        _CALL, then=_delta({"tool_calls": [{"index": 0, "function": {"arguments": WORDS}}]})
    ),
    "calls": _calls,
    "pings": lambda: _streamed(then=b": ping\n\n"),
    "line": lambda: _streamed(b"data: ", then=b"x" * CHUNK),
    "document": lambda: _streamed(b'{"choices": "', then=b"x" * CHUNK),
}
"""What is sent, by its name; Chat Completions where a vendor's words matter."""


class FloodServer:
    """Serves on loopback while it is entered."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._root = ""

    def url(self, flood: str) -> str:
        """The base URL of one of `FLOODS`, for provider `openai`."""
        return f"{self._root}/{flood}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(_serve, "127.0.0.1", 0)
        self._root = "http://{}:{}".format(*self._server.sockets[0].getsockname()[:2])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        sizes = [line.split(":")[1] for line in head.lower().split("\r\n") if line.startswith("content-length:")]
        await reader.readexactly(int(sizes[0]) if sizes else 0)
        for piece in FLOODS[head.split(" ")[1].split("/")[1]]():
            writer.write(piece)
            await writer.drain()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def _run() -> None:
    async with FloodServer() as server:
        sys.stdout.write(json.dumps({"url": server.url("text").removesuffix("/text/v1")}) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_run())
