"""Passes bytes between a client and a host until both have ended, or nothing has come for a while."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

IDLE_S = 900.0
"""How long a connection may be silent in both directions, in seconds: longer than servers hold a request open."""

CLOSE_S = 30.0
"""How long a peer may take to accept the last bytes, in seconds."""

CHUNK = 64 * 1024
"""Most bytes that are passed on at once; no more are read before the other side has taken them."""


@dataclass(slots=True)
class Traffic:
    """How many bytes were passed on."""

    sent: int = 0
    """To the host."""
    received: int = 0
    """From the host."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One side of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def relay(client: Peer, host: Peer, beginning: Callable[[], Awaitable[bytes]], traffic: Traffic) -> None:
    """Pass bytes both ways until both sides have ended; each end is passed on by itself. Counts in `traffic`.

    Args:
        client: what wanted the connection.
        host: what it is connected to.
        beginning: awaited, while the host may already speak, for the first bytes of the client.
        traffic: has the sums also when this raises.

    Raises:
        OSError: a connection was lost.
        TimeoutError: nothing came for `IDLE_S`.
        Exception: what `beginning` raises.
    """
    loop = asyncio.get_running_loop()

    async def forth() -> None:
        data = await beginning()
        while data:
            idle.reschedule(loop.time() + IDLE_S)
            await _pass(data, host.writer)
            traffic.sent += len(data)
            data = await client.reader.read(CHUNK)
        _end(host.writer)

    async def back() -> None:
        while data := await host.reader.read(CHUNK):
            idle.reschedule(loop.time() + IDLE_S)
            await _pass(data, client.writer)
            traffic.received += len(data)
        _end(client.writer)

    async with asyncio.timeout(IDLE_S) as idle:
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(forth())
                both.create_task(back())
        except ExceptionGroup as group:
            raise group.exceptions[0] from None


async def _pass(data: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(data)
    await writer.drain()


def _end(writer: asyncio.StreamWriter) -> None:
    if writer.can_write_eof() and not writer.is_closing():
        writer.write_eof()


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection once it has sent what is left, but after `CLOSE_S` in any case."""
    try:
        writer.close()
        async with asyncio.timeout(CLOSE_S):
            await writer.wait_closed()
    except (TimeoutError, OSError):
        pass  # lost
    finally:
        writer.transport.abort()
