"""The least that a daemon could do: one asyncio loop that reads the model's stream and sends events on.

`python -m benchmarks.bare SOCKET` serves on a Unix socket. A line `HOST PORT PATH` makes it fetch that path, and
each chunk is decoded, encoded and written at once. Any other line comes back as it is. No sessions, no journal, no
tools, no SDK: the floor for through-put and for round trips.
"""

import asyncio
import sys

import msgspec

from benchmarks.floors import REQUEST
from zotd.wire.base import ENCODER
from zotd.wire.events import Done, TextDelta

SESSION = "s_0"


class _Delta(msgspec.Struct, frozen=True):
    text: str = ""
    content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta


class _Event(msgspec.Struct, frozen=True):
    """An event of either vendor, as far as text goes."""

    delta: _Delta | None = None
    choices: list[_Choice] = []


_DECODER = msgspec.json.Decoder(_Event)


class _Upstream(asyncio.Protocol):
    """Reads one reply and sends it on."""

    def __init__(self, path: str, client: asyncio.Transport) -> None:
        self._path = path
        self._client = client
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(REQUEST % (self._path.encode(), 2, b"{}"))

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        shown = [
            TextDelta(text, session=SESSION)
            for line in lines
            if line.startswith(b"data: {") and (text := _text(_DECODER.decode(line[6:])))
        ]
        self._client.write(ENCODER.encode_lines(shown))
        if b"0\r" in lines[-3:]:
            self._client.write(ENCODER.encode_lines([Done(session=SESSION)]))
            self._transport.close()


class _Server(asyncio.Protocol):
    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        words = data.decode().split()
        if len(words) != 3:
            self._transport.write(data)
            return
        host, port, path = words
        self._tasks.create_task(_fetch(host, int(port), path, self._transport))


async def _fetch(host: str, port: int, path: str, client: asyncio.Transport) -> None:
    await asyncio.get_running_loop().create_connection(lambda: _Upstream(path, client), host, port)


def _text(event: _Event) -> str:
    if event.choices:
        return event.choices[0].delta.content or ""
    return event.delta.text if event.delta is not None else ""


async def main(path: str) -> None:
    """Serve for ever."""
    async with asyncio.TaskGroup() as tasks:
        server = await asyncio.get_running_loop().create_unix_server(lambda: _Server(tasks), path)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
