"""The write end of a child's stdin: bounded, never blocking, and given up when the child does not read.

open ──> (queue while the pipe is full) ──> ending ──> closed
              └─── full, or no progress for STALL_S ──> on_stall
"""

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable

MAX_FRAMES = 256
"""Frames that may wait for the child (`docs/extensions.md`)."""

MAX_BYTES = 16 * 1024 * 1024
"""Bytes that may wait."""

ATOMIC_BYTES = select.PIPE_BUF
"""Up to here a pipe takes a frame whole or not at all, also when we are killed meanwhile."""

STALL_S = 5.0
"""How long a full pipe may make no progress: a debugger or a garbage collector stops a process for less."""


class Input:
    """Writes frames to a pipe, in order."""

    def __init__(
        self,
        fd: int,
        *,
        on_stall: Callable[[str], None],
        on_closed: Callable[[], None],
        on_torn: Callable[[bool], None] | None = None,
        is_torn: bool = False,
        stall_s: float = STALL_S,
    ) -> None:
        """Own `fd`, and close it.

        `on_stall` is told once, in words that go on from the child's name, why it is given up; `on_closed` that the
        child has closed its end. Nothing is written afterwards. `on_torn` is told before a frame is written that could
        be cut by our death, and when all is written; `is_torn`: an earlier one may have been.
        """
        os.set_blocking(fd, False)
        self._fd = fd
        self._on_stall = on_stall
        self._on_closed = on_closed
        self._on_torn = on_torn
        self._is_torn = is_torn
        self._stall_s = stall_s
        self._waiting: deque[memoryview] = deque()
        self._bytes = 0
        self._stalled: asyncio.TimerHandle | None = None
        self._is_ending = False
        self._loop = asyncio.get_running_loop()
        # The write end of a pipe is "readable" when nobody can read the other end any more; asyncio's own transport
        # watches for that too. Without it only the next write would tell, and this one would wait for its answer.
        self._loop.add_reader(fd, self._lost)
        if is_torn:
            self.write(b"\n")

    def write(self, frame: bytes) -> None:
        """Write it now, or as soon as the child reads; nothing happens once the pipe is ending or closed."""
        if self._fd < 0 or self._is_ending:
            return
        if len(frame) > ATOMIC_BYTES and self._on_torn is not None and not self._is_torn:
            self._is_torn = True
            self._on_torn(True)
        self._waiting.append(memoryview(frame))
        self._bytes += len(frame)
        if self._stalled is None:
            self._flush()
        elif len(self._waiting) > MAX_FRAMES:
            self._give_up(f"did not read its input: more than {MAX_FRAMES} frames were waiting")
        elif self._bytes > MAX_BYTES:
            self._give_up(f"did not read its input: more than {MAX_BYTES // (1024 * 1024)} MiB were waiting")

    def end(self) -> None:
        """Close the pipe when all that waits is written."""
        self._is_ending = True
        if not self._waiting:
            self.close()

    def close(self) -> None:
        """Close the pipe now and forget what waits."""
        self._rest()
        self._waiting.clear()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _lost(self) -> None:
        """The child has closed its end."""
        self.close()
        self._on_closed()

    def _flush(self) -> None:
        """Write as much as the pipe takes."""
        progress = False
        try:
            while self._waiting:
                written = os.write(self._fd, self._waiting[0])
                progress = True
                self._bytes -= written
                rest = self._waiting[0][written:]
                if rest:
                    self._waiting[0] = rest
                else:
                    self._waiting.popleft()
        except BlockingIOError:
            self._wait(progress=progress)
        except OSError:  # EPIPE
            self._lost()
        else:
            self._rest()
            if self._is_torn and self._on_torn is not None:
                self._is_torn = False
                self._on_torn(False)
            if self._is_ending:
                self.close()

    def _wait(self, *, progress: bool) -> None:
        """Go on when the pipe has room; the clock starts anew with every byte that the child reads."""
        if self._stalled is None:
            self._loop.add_writer(self._fd, self._flush)
        elif progress:
            self._stalled.cancel()
        else:
            return
        reason = f"did not read its input for {self._stall_s:g} s"
        self._stalled = self._loop.call_later(self._stall_s, self._give_up, reason)

    def _rest(self) -> None:
        """Nothing waits any more."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
            self._loop.remove_writer(self._fd)

    def _give_up(self, reason: str) -> None:
        self.close()
        self._on_stall(reason)
