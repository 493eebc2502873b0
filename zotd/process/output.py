"""Reads the output of a child from a pipe, without blocking.

reading ⇄ paused      until the child has exited
   ↓
discarding            only when a descendant of the child still holds the pipe
   ↓
closed
"""

import asyncio
import os
from collections.abc import Callable

CHUNK_BYTES = 64 * 1024
"""Size of one read; the default capacity of a Linux pipe."""

PIPE_BYTES = 1024 * 1024
"""Maximum capacity of an unprivileged user's pipe; bounds the last reads after the child has exited."""

DISCARD_EVERY_S = 0.05
"""Pause between two reads of discarded output, in seconds. The pipe fills up in between, which limits a flood to
1.3 MB/s."""


class PipeReader:
    """Passes the bytes of a pipe to a callback on the event loop."""

    def __init__(
        self, fd: int, on_output: Callable[[bytes], None], *, on_end: Callable[[], None] | None = None
    ) -> None:
        """Take ownership of `fd`. `on_end` is called when all writers have closed the pipe, but not by `close`."""
        os.set_blocking(fd, False)
        self.ended = asyncio.Event()
        """Set when no more output will be delivered."""
        self._fd = fd
        self._on_output = on_output
        self._on_end = on_end
        self._paused = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._deliver)

    def pause(self) -> None:
        """Stop delivering until `resume`; the child blocks as soon as the pipe is full."""
        if not self._paused and not self.ended.is_set():
            self._paused = True
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Continue after `pause`."""
        if self._paused and not self.ended.is_set():
            self._paused = False
            self._loop.add_reader(self._fd, self._deliver)

    def drain(self) -> None:
        """Deliver what is in the pipe now, even if paused. After the child's exit that is all it ever wrote."""
        # Bounded, because a descendant may write as fast as this loop reads.
        for _ in range(PIPE_BYTES // CHUNK_BYTES):
            if self.ended.is_set() or not self._deliver():
                return

    def let_go(self) -> None:
        """Drain the pipe, then discard what descendants of the child still write.

        The pipe stays open, because closing it would end a server that the child started in the background with
        SIGPIPE at its next line of output.
        """
        if self.ended.is_set():
            return
        self.drain()
        if not self.ended.is_set():
            self.ended.set()
            self._loop.remove_reader(self._fd)
            self._loop.add_reader(self._fd, self._discard)

    def close(self) -> None:
        """Close the pipe without delivering the rest."""
        self.ended.set()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _deliver(self) -> bool:
        data = self._read()
        if data:
            self._on_output(data)
        return bool(data)

    def _discard(self) -> None:
        self._read()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._loop.call_later(DISCARD_EVERY_S, self._discard_on)

    def _discard_on(self) -> None:
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._discard)

    def _read(self) -> bytes:
        """Read the next chunk; empty if there is none, or at the end of the output, where it closes the pipe."""
        try:
            data = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.close()
            if self._on_end is not None:
                self._on_end()
        return data
