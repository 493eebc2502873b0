"""Reads a server's messages no faster than the host takes what follows from them, and lets other bridges run in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Self

from mcp.client import Transport
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

Room = Callable[[], Awaitable[None]]
"""Returns when the host has read most of what was sent to it."""


class _PacedStream:
    """The messages of a transport; satisfies the package's `ReadStream`."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], room: Room, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._room = room
        self._ended = ended

    @property
    def last_context(self) -> object:
        """The variables of the task that has sent the last message, if the transport knows them."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        # A stream with messages that have arrived would never let other tasks run.
        await asyncio.sleep(0)
        await self._room()
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        await asyncio.sleep(0)
        await self._room()
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def paced(
    transport: Transport, room: Room, *, ended: Callable[[], None]
) -> AsyncIterator[tuple[_PacedStream, WriteStream[SessionMessage]]]:
    """Return the transport with its messages paced; `ended` is called after the last one."""
    async with transport as (messages, output):
        yield _PacedStream(messages, room, ended), output
