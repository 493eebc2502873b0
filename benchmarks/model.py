"""A model that costs nothing: replies that were encoded before they were asked for, over raw HTTP.

`zotd.testing.model_server` judges and encodes each request, which takes longer than what is measured here. This one
looks at a request's path only. The path begins with a plan:

    /deltas/N/...            N text deltas, as fast as the socket takes them
    /call/WHAT/N/...         what `CALLS` has of that name, until N results are in the request; then a word
    /once/WHAT/...           the same for each prompt: once, then a word
    /paced/RATE/N/PAD/...    N deltas, RATE in a second; each holds the time it was sent (see `sent_ns`) and PAD bytes
    /text/RATE/N/WHAT/...    N deltas, RATE in a second, of what `TEXTS` has of that name
    /family/S/WAIT/RATE/N/...  S calls of `task`; each subagent then gets N stamped deltas, the first after WAIT seconds

`python -m benchmarks.model` prints its URL and serves until it is stopped.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, cycle, islice

from zotd.testing.dialects import Anthropic, Dialect, OpenAI
from zotd.testing.script import CallPart, ScriptedReply, TextPart

DIALECTS: Mapping[str, Dialect] = {"messages": Anthropic(), "completions": OpenAI()}
"""By the last word of the path."""

RESULTS = (b'"tool_use_id"', b'"tool_call_id"')
"""What a tool's result has in the two dialects, once."""

PROMPT = b'"role":"user"'
"""What a prompt has; with Anthropic, a message of results has it too, before them."""

ECHO = CallPart("echo", {"text": "x" * 100})

WAIT = "echo begun; sleep 60"
"""A command that runs until it is ended."""

CALLS: Mapping[str, Sequence[CallPart]] = {
    "read": [CallPart("read", {"path": "note.txt"})],
    "bash": [CallPart("bash", {"command": "true"})],
    "wait": [CallPart("bash", {"command": WAIT})],
    "echo": [ECHO],
    "echoes": [ECHO] * 32,
    "naps": [CallPart("nap", {})] * 4,
    "pair": [CallPart("steady", {}), CallPart("reloaded", {})] * 4,
}
"""Calls that one reply asks for. `read`, `bash` and `wait` are for zot's tools; the others belong to extensions of benchmarks."""

MEMBER = "count with the family"
"""The prompt of a subagent of `/family`, by which its requests are told from those of its parent."""

NOTE = "remember the milk\n"
"""What callers of `read` put into `note.txt`."""

PROSE = """A paragraph, as models write them: some words, then `code`, then **more** of both, and a full stop at the end.

- a list follows, of which each item is short
- and another one

"""

FENCE = """    for number, line in enumerate(lines):  # once
"""

TEXTS: Mapping[str, tuple[str, str]] = {"prose": ("", PROSE), "fence": ("```python\n", FENCE)}
"""What a text begins with, and what comes again and again after that, a word in each delta."""

FIRST, LAST = "commencing ", "concluded"
"""The first and the last delta of a text."""

CHUNK_BYTES = 64 * 1024
"""Of one HTTP chunk of `/deltas`: what HTTP clients read at a time."""

HEADERS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

WORD = "tok "
"""The text of each delta of `/deltas`. Count these and not events: for a client that lags the daemon merges deltas."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MARK = "@"


def sent_ns(delta: str) -> list[int]:
    """When a paced delta was sent, by `time.monotonic_ns` of this machine; several, when it is several merged."""
    return [int(word) for word in delta.split()]


class _Stream:
    """Deltas with a pause between them."""

    def __init__(
        self, transport: asyncio.Transport, dialect: str, deltas: Iterator[bytes], *, rate: int, wait_s: float = 0.0
    ) -> None:
        """`deltas`: as they stand in JSON; each is asked for when its time has come, the first after `wait_s`."""
        self._transport = transport
        self._head, self._delta, self._tail = _text(dialect)
        self._gap_s = 1 / rate
        self._deltas = deltas
        self._loop = asyncio.get_running_loop()
        self._next_s = self._loop.time() + wait_s
        transport.write(HEADERS + _chunk(self._head))
        self._send_due()

    def _send_due(self) -> None:
        """Everything whose time has come; more than one when this program was kept from the processor."""
        if self._transport.is_closing():
            return
        while self._next_s <= self._loop.time():
            text = next(self._deltas, None)
            if text is None:
                self._transport.write(_chunk(self._tail) + LAST_CHUNK)
                return
            self._transport.write(_chunk(self._delta.replace(_MARK.encode(), text)))
            self._next_s += self._gap_s
        self._loop.call_at(self._next_s, self._send_due)


class Server(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._received += data
        head, end, body = bytes(self._received).partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or len(body) < (int(length[1]) if length else 0):
            return
        self._received.clear()
        assert self._transport is not None
        self._answer(self._transport, head.split(b" ", 2)[1].decode(), body)

    def _answer(self, transport: asyncio.Transport, path: str, body: bytes) -> None:
        dialect = path.rpartition("/")[2]
        match path.split("/")[1:]:
            case "deltas", count, *_:
                transport.write(flood(dialect, int(count)))
            case "call", what, count, *_:
                results = sum(body.count(word) for word in RESULTS)
                transport.write(call(dialect, what) if results < int(count) else flood(dialect, 1))
            case "once", what, *_:
                _, _, since = body.rpartition(PROMPT)
                answered = any(word in since for word in RESULTS)
                transport.write(flood(dialect, 1) if answered else call(dialect, what))
            case "paced", rate, count, pad, *_:
                _Stream(transport, dialect, _stamps(int(count), int(pad)), rate=int(rate))
            case "family", size, wait, rate, count, *_:
                if any(word in body for word in RESULTS):
                    transport.write(flood(dialect, 1))
                elif MEMBER.encode() in body:
                    _Stream(transport, dialect, _stamps(int(count), 1), rate=int(rate), wait_s=float(wait))
                else:
                    transport.write(family(dialect, int(size)))
            case "text", rate, count, what, *_:
                _Stream(transport, dialect, _words(int(count), what), rate=int(rate))
            case _:
                transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")


def _stamps(count: int, pad: int) -> Iterator[bytes]:
    """So many deltas, each with the time at which it is asked for."""
    return (b"%d " % time.monotonic_ns() + b" " * pad for _ in range(count))


def _words(count: int, what: str) -> Iterator[bytes]:
    """So many deltas of a text."""
    head, again = TEXTS[what]
    words = islice(cycle(re.findall(r"\s*\S+\n*", again)), count - 3)
    return (json.dumps(word)[1:-1].encode() for word in chain([FIRST, "\n\n" + head], words, [f" {LAST}"]))


@cache
def flood(dialect: str, count: int) -> bytes:
    """A response of `count` deltas."""
    head, delta, tail = _text(dialect)
    delta = delta.replace(_MARK.encode(), WORD.encode())
    each = CHUNK_BYTES // len(delta)
    full, rest = divmod(count, each)
    chunks = [_chunk(delta * each)] * full + ([_chunk(delta * rest)] if rest else [])
    return b"".join((HEADERS, _chunk(head), *chunks, _chunk(tail), LAST_CHUNK))


@cache
def call(dialect: str, what: str) -> bytes:
    """A response that asks for tools."""
    return HEADERS + _chunk(b"".join(_pieces(dialect, ScriptedReply(CALLS[what])))) + LAST_CHUNK


@cache
def family(dialect: str, size: int) -> bytes:
    """A response that asks for so many subagents."""
    task = CallPart("task", {"prompt": MEMBER, "description": "counts"})
    return HEADERS + _chunk(b"".join(_pieces(dialect, ScriptedReply([task] * size)))) + LAST_CHUNK


@cache
def _text(dialect: str) -> tuple[bytes, bytes, bytes]:
    """A reply of one delta: what comes before it, the delta, what comes after it."""
    pieces = list(_pieces(dialect, ScriptedReply([TextPart([_MARK])])))
    at = next(index for index, piece in enumerate(pieces) if f'"{_MARK}"'.encode() in piece)
    return b"".join(pieces[:at]), pieces[at], b"".join(pieces[at + 1 :])


def _pieces(dialect: str, reply: ScriptedReply) -> Iterator[bytes]:
    return (piece for piece in DIALECTS[dialect].pieces(reply, "scripted") if isinstance(piece, bytes))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def main() -> None:
    """Serve for ever."""
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
