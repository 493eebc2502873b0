"""The stderr of one bridge among several in a process: log records, warnings and prints of its tasks go there.

sys.stderr ──> `StderrOfBridges` ──> the `BridgeLog` of the current task ── full? dropped, never waited for
"""

import asyncio
import io
import os
import select
from contextlib import suppress
from contextvars import ContextVar
from typing import TextIO

from zotd.sanitize import escaped

MAX_WRITE_BYTES = select.PIPE_BUF
"""Writes up to this size are atomic, and never block if the pipe is writable."""

LAST_S = 1.0
"""How long the last line waits until the pipe, which the host reads at a limited rate, takes it."""

AGAIN_S = 0.02
"""Pause between two attempts; the kernel does not tell when a pipe that others write to has room."""


class BridgeLog:
    """Writes to a stderr that the server's program has too, and that the host reads at a limited rate."""

    def __init__(self, descriptor: int) -> None:
        """Take ownership of the descriptor."""
        self.descriptor = descriptor
        """For the server's program, which may block on it."""
        try:
            # Another description of the same pipe: the flag would otherwise hold for the server's program too.
            self._own = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # without /proc; a write may then wait for the host
            self._own = os.dup(descriptor)

    def write(self, text: str) -> None:
        """Write the text, or drop what the pipe does not take."""
        data = text.encode(errors="backslashreplace")
        with suppress(OSError):
            for start in range(0, len(data), MAX_WRITE_BYTES):
                os.write(self._own, data[start : start + MAX_WRITE_BYTES])

    async def write_last(self, sentence: str) -> None:
        """Write a line that explains the end; waits for `LAST_S` if the pipe is full."""
        data = f"{escaped(sentence)}\n".encode(errors="backslashreplace")[-MAX_WRITE_BYTES:]
        until = asyncio.get_running_loop().time() + LAST_S
        with suppress(BrokenPipeError):
            while asyncio.get_running_loop().time() < until:
                try:
                    os.write(self._own, data)
                except BlockingIOError:
                    await asyncio.sleep(AGAIN_S)
                else:
                    return

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._own)
        os.close(self.descriptor)
        self._own = -1  # a thread that hangs may still write


CURRENT: ContextVar[BridgeLog | None] = ContextVar("the log of the current bridge", default=None)


class StderrOfBridges(io.TextIOBase):
    """Stands for `sys.stderr`."""

    def __init__(self, own: TextIO) -> None:
        """What belongs to no bridge goes to `own`."""
        super().__init__()
        self._own = own

    def write(self, text: str) -> int:
        """Write to the log of the current bridge."""
        log = CURRENT.get()
        if log is None:
            self._own.write(text)
            self._own.flush()
        else:
            log.write(text)
        return len(text)

    def flush(self) -> None:
        """Nothing waits here."""
