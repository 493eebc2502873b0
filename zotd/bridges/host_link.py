"""The connection of a bridge to the host: frames over pipes that the event loop reads and writes.

Unlike `sdk.pipe.HostPipe` it never blocks: a process may run several bridges.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from zotd.sdk.pipe import MAX_LINE_BYTES, Frame, encode

ROOM_BYTES = 1024 * 1024
"""Amount of waiting output from which a bridge reads nothing more from its server, until the host has read it."""

INPUT_BYTES = 2 * MAX_LINE_BYTES
"""Longest line that is read: a frame of the host, which has at most 4 MiB, or arguments and environment."""

FLUSH_S = 1.0
"""How long the end of a bridge waits until the host has read the last frames."""


def taken_over() -> tuple[int, int]:
    """Return stdin and stdout, whose places an empty file and stderr take: any code in this process may print."""
    sys.stdout = sys.stderr
    stdin, stdout = os.dup(0), os.dup(1)
    with Path(os.devnull).open("rb", buffering=0) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return stdin, stdout


class _Outlet(asyncio.Protocol):
    """What the transport of the output tells."""

    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.room.set()
        self.closed = asyncio.Event()

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    def connection_lost(self, _: Exception | None) -> None:
        self.room.set()  # the host has gone, and what is sent is dropped
        self.closed.set()


class HostLink:
    """Frames from and to the host; made by `opened`."""

    def __init__(
        self,
        lines: asyncio.StreamReader,
        source: asyncio.ReadTransport,
        output: asyncio.WriteTransport,
        outlet: _Outlet,
    ) -> None:
        self._lines = lines
        self._source = source
        self._output = output
        self._outlet = outlet

    @classmethod
    async def opened(cls, stdin: int, stdout: int) -> Self:
        """Take ownership of two pipes."""
        loop = asyncio.get_running_loop()
        lines = asyncio.StreamReader(limit=INPUT_BYTES)
        source, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(stdin, "rb", buffering=0)
        )
        output, outlet = await loop.connect_write_pipe(_Outlet, os.fdopen(stdout, "wb", buffering=0))
        output.set_write_buffer_limits(high=ROOM_BYTES)
        return cls(lines, source, output, outlet)

    async def line(self) -> bytes:
        """Return the next line; empty at the end of the input."""
        return await self._lines.readline()

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield the host's frames until it closes the pipe. It sends nothing but JSON objects."""
        while line := await self.line():
            with suppress(ValueError, RecursionError):
                frame = json.loads(line)
                if isinstance(frame, dict):
                    yield frame

    def send(self, frame: Mapping[str, object]) -> None:
        """Queue a frame; dropped without an error if the host has gone.

        Raises:
            TypeError, ValueError: the frame contains a value that JSON cannot represent.
            OversizedError: the frame is longer than the host reads.
        """
        self._output.write(encode(frame))

    async def room(self) -> None:
        """Wait until less than `ROOM_BYTES` are queued."""
        await self._outlet.room.wait()

    async def close(self) -> None:
        """Close both pipes once everything is written, or after `FLUSH_S`."""
        self._source.close()
        self._output.close()
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._outlet.closed.wait()
        except TimeoutError:
            self._output.abort()

    def abort(self) -> None:
        """Close both pipes now."""
        self._source.close()
        if not self._outlet.closed.is_set():
            self._output.abort()
