"""Standard input and output for an event loop: whatever they are, and without ever blocking it on a pipe."""

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable
from typing import Protocol

READ_BYTES = 256 * 1024


class Flow(Protocol):
    """Told when a pipe is full and when it has room again."""

    def paused(self) -> None:
        """Full."""
        ...

    def resumed(self) -> None:
        """Room again."""
        ...


def read_input(
    received: Callable[[bytes], None], ended: Callable[[], None], *, room: threading.Event | None = None
) -> None:
    """Feed standard input to the running loop until it ends; no more than one piece while `room` is cleared.

    A thread reads, because a file, a terminal and `/dev/null` cannot be watched like a pipe, and because switching
    standard input to non-blocking would do so for the shell that shares it. It is a daemon thread: a read that never
    returns must not keep the process.
    """
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            while data := _read():
                loop.call_soon_threadsafe(received, data)
                if room is not None:
                    room.wait()  # a daemon thread: it may wait when the program ends
            loop.call_soon_threadsafe(ended)
        except RuntimeError:
            return  # the loop is closed

    threading.Thread(target=read, name="standard input", daemon=True).start()


def _read() -> bytes:
    try:
        return os.read(0, READ_BYTES)
    except BlockingIOError:  # it is the same socket as standard output
        select.select([0], [], [])
        return os.read(0, READ_BYTES)
    except OSError:
        return b""


class StdoutWriter(asyncio.Protocol):
    """Standard output; `transport` writes to it."""

    def __init__(self) -> None:
        """Use `open_output`."""
        self.transport: asyncio.WriteTransport = _Straight()
        self._flow: Flow | None = None
        self._lost = asyncio.Event()

    def control(self, flow: Flow) -> None:
        """Tell `flow` when the reader of standard output is too slow, and when it has caught up."""
        self._flow = flow

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def pause_writing(self) -> None:
        """Called by the loop."""
        if self._flow is not None:
            self._flow.paused()

    def resume_writing(self) -> None:
        """Called by the loop."""
        if self._flow is not None:
            self._flow.resumed()

    def connection_lost(self, error: Exception | None) -> None:
        """Called by the loop."""
        del error  # the parent has closed its end; `lost` reports it
        self._lost.set()

    async def lost(self) -> None:
        """Wait until it has no reader; a file or a terminal always has one."""
        await self._lost.wait()

    async def close(self, within_s: float | None) -> None:
        """Write what is left; give up after `within_s` (None: never)."""
        if isinstance(self.transport, _Straight):
            return
        self.transport.close()
        try:
            async with asyncio.timeout(within_s):
                await self._lost.wait()
        except TimeoutError:
            self.transport.abort()
        finally:
            os.set_blocking(1, True)  # as it was; others may share it


async def open_output() -> StdoutWriter:
    """Standard output, non-blocking when it is a pipe or a socket."""
    output = StdoutWriter()
    mode = os.fstat(1).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        pipe = os.fdopen(os.dup(1), "wb", buffering=0)
        await asyncio.get_running_loop().connect_write_pipe(lambda: output, pipe)
    return output


class _Straight(asyncio.WriteTransport):
    """Writes to a file or a terminal at once: neither keeps us waiting for a reader for long."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(1, rest) :]

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del high, low  # nothing is kept

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass
