"""The read end of a child's output.

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
"""Most that is read at once: what a Linux pipe holds by default."""

PIPE_BYTES = 1024 * 1024
"""Most that a pipe of an unprivileged user can hold; bounds what is read at once when the child has exited."""

DISCARD_EVERY_S = 0.05
"""Pause between two reads of output that nobody wants: a flood is throttled to 1.3 MB/s, by its own full pipe."""


class Output:
    """Hands a pipe's bytes to a call-back, on the event loop."""

    def __init__(
        self, fd: int, on_output: Callable[[bytes], None], *, on_end: Callable[[], None] | None = None
    ) -> None:
        """Own `fd`, and close it. `on_end` is called when every writer has closed the pipe, and not by `close`."""
        os.set_blocking(fd, False)
        self.ended = asyncio.Event()
        """Nothing more will be delivered."""
        self._fd = fd
        self._on_output = on_output
        self._on_end = on_end
        self._paused = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._deliver)

    def pause(self) -> None:
        """Deliver nothing until `resume`; the child blocks as soon as the pipe is full."""
        if not self._paused and not self.ended.is_set():
            self._paused = True
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Deliver again."""
        if self._paused and not self.ended.is_set():
            self._paused = False
            self._loop.add_reader(self._fd, self._deliver)

    def drain(self) -> None:
        """Deliver what is in the pipe now, also when paused: all that a child that has exited ever wrote."""
        for _ in range(PIPE_BYTES // CHUNK_BYTES):
            if self.ended.is_set() or not self._deliver():
                return

    def let_go(self) -> None:
        """Drain and deliver no more.

        The pipe stays open for descendants of the child that write on, a server started in the background for one:
        closing it would end them with SIGPIPE at their next line.
        """
        if self.ended.is_set():
            return
        self.drain()
        if not self.ended.is_set():
            self.ended.set()
            self._loop.remove_reader(self._fd)
            self._loop.add_reader(self._fd, self._discard)

    def close(self) -> None:
        """Deliver no more, and close the pipe."""
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
        """The next bytes; none when the pipe is empty, and when it has ended, which closes it."""
        try:
            data = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.close()
            if self._on_end is not None:
                self._on_end()
        return data
