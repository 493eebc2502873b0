"""A client that shows every frame as it came, in the order in which it came: for tests of the daemon.

    async with WireClient.connect(path) as client:
        await client.ask("ping")                        -> {"pong": True}
        client.write(b"not JSON")                       and `frame` gives the response
        await client.until("done")                      -> every event up to the first `done`

Programs use `zotd.client`, which hides what this shows.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

Json = dict[str, object]

WAIT_S = 30.0
"""Longest wait for a frame: a loaded machine takes one second for what takes a millisecond."""

LINE_BYTES = 32 * 1024 * 1024
"""Longest line it takes; more than the daemon may send, so that a test can see it."""


class WireClient:
    """One connection. Made by `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Use `connect`."""
        self.seen: list[Json] = []
        """All frames, oldest first."""
        self._reader = reader
        self._writer = writer
        self._events: deque[Json] = deque()
        self._last_id = 0

    @classmethod
    @asynccontextmanager
    async def connect(cls, path: str) -> AsyncIterator[Self]:
        """A connection for the time of an `async with`."""
        client = cls(*await asyncio.open_unix_connection(path, limit=LINE_BYTES))
        try:
            yield client
        finally:
            client.cut()

    def write(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        self._writer.write(data)

    def send(self, command: str, /, **fields: object) -> int:
        """Send a request; its id."""
        self._last_id += 1
        self.write(json.dumps({"id": self._last_id, "type": command, **fields}).encode() + b"\n")
        return self._last_id

    async def answer(self, command: str, /, **fields: object) -> Json:
        """Send a request; the whole response. Events that come first are kept for `event`."""
        return await self.answer_to(self.send(command, **fields))

    async def answer_to(self, request: object) -> Json:
        """The response to a request that was sent."""
        while True:
            frame = await self.frame()
            if frame["type"] != "response":
                self._events.append(frame)
            elif frame.get("id") == request:
                return frame

    async def ask(self, command: str, /, **fields: object) -> Json:
        """Send a request that succeeds; the data of its response."""
        response = await self.answer(command, **fields)
        assert response["success"], response
        data = response.get("data", {})
        assert isinstance(data, dict)
        return data

    async def refused(self, command: str, /, **fields: object) -> str:
        """Send a request that fails; the code of its response."""
        response = await self.answer(command, **fields)
        assert not response["success"], response
        assert response["error"], response
        return str(response["code"])

    async def event(self) -> Json:
        """The next event."""
        while not self._events:
            frame = await self.frame()
            if frame["type"] != "response":
                self._events.append(frame)
        return self._events.popleft()

    async def until(self, kind: str) -> list[Json]:
        """Every event up to the next one of this type."""
        events = [await self.event()]
        while events[-1]["type"] != kind:
            events.append(await self.event())
        return events

    async def frame(self) -> Json:
        """The next frame that was not read yet; raises `EOFError` when the daemon has closed the connection."""
        async with asyncio.timeout(WAIT_S):
            line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        frame: Json = json.loads(line)
        self.seen.append(frame)
        return frame

    async def rest(self) -> list[Json]:
        """Every frame until the daemon closes the connection."""
        before = len(self.seen)
        try:
            while True:
                await self.frame()
        except (EOFError, ConnectionResetError):
            return self.seen[before:]

    def cut(self) -> None:
        """Leave at once, without a word."""
        self._writer.transport.abort()
