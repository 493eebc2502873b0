"""Writes frames to a child's stdin without blocking; closes the pipe if the child does not read.

open ──> (queue while the pipe is full) ──> ending ──> closed
              └─── full, or no progress for STALL_S ──> on_stall
"""

import asyncio
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence

MAX_FRAMES = 256
"""Maximum number of queued frames (`docs/extensions.md`)."""

MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of the queue."""

ATOMIC_BYTES = select.PIPE_BUF
"""Writes up to this size are atomic: the pipe takes all of it or nothing, even if this process is killed."""

STALL_S = 5.0
"""Time without progress, in seconds, after which a full pipe is closed; longer than a pause for garbage collection."""


def input_pair(*, is_socket: bool) -> tuple[int, int]:
    """Return the child's end and ours of its stdin: a pipe, or a socket, over which descriptors can be passed."""
    if not is_socket:
        return os.pipe()
    theirs, ours = socket.socketpair()
    return theirs.detach(), ours.detach()


class PipeWriter:
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
        """Take ownership of `fd`.

        Args:
            fd: the write end of the pipe.
            on_stall: called once if the child does not read, with a predicate such as "did not read its input".
            on_closed: called once when the child has closed its end. Nothing is written after either call.
            on_torn: called with True before a frame that is too long for an atomic write, and with False when the
                queue is empty again.
            is_torn: the last frame of an earlier daemon may be incomplete; a newline is written first to end it.
            stall_s: time without progress after which `on_stall` is called.
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
        # The write end of a pipe polls as readable once the read end is closed; asyncio's own transport relies on it
        # too. Without this, only the next write would fail, and the caller might wait for an answer before it writes.
        self._loop.add_reader(fd, self._lost)
        if is_torn:
            self.write(b"\n")

    def write(self, frame: bytes) -> None:
        """Write the frame now, or queue it until the child reads. Does nothing after `end` or `close`."""
        if self._fd < 0 or self._is_ending:
            return
        if len(frame) > ATOMIC_BYTES and self._on_torn is not None and not self._is_torn:
            # Before the write: if this daemon is killed in the middle of it, the next one has to know.
            self._is_torn = True
            self._on_torn(True)
        self._waiting.append(memoryview(frame))
        self._bytes += len(frame)
        # A stalled pipe is written by the event loop when it has room; here only the limits are checked.
        if self._stalled is None:
            self._flush()
        elif len(self._waiting) > MAX_FRAMES:
            self._give_up(f"did not read its input: more than {MAX_FRAMES} frames were waiting")
        elif self._bytes > MAX_BYTES:
            self._give_up(f"did not read its input: more than {MAX_BYTES // (1024 * 1024)} MiB were waiting")

    def pass_on(self, message: bytes, descriptors: Sequence[int]) -> None:
        """Send a few bytes with copies of `descriptors` now, if the child's stdin is a socket to which nothing else is written.

        Raises:
            OSError: they were not sent: the child has ended, or has not read hundreds of earlier ones.
        """
        if self._fd < 0:
            raise BrokenPipeError
        with socket.socket(fileno=os.dup(self._fd)) as connection:
            if descriptors:
                socket.send_fds(connection, [message], descriptors, socket.MSG_DONTWAIT)
            else:
                connection.send(message, socket.MSG_DONTWAIT)

    def end(self) -> None:
        """Close the pipe once the queue is written."""
        self._is_ending = True
        if not self._waiting:
            self.close()

    def close(self) -> None:
        """Close the pipe now and drop the queue."""
        self._rest()
        self._waiting.clear()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _lost(self) -> None:
        self.close()
        self._on_closed()

    def _flush(self) -> None:
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
            # Only an empty queue guarantees that no frame is incomplete.
            if self._is_torn and self._on_torn is not None:
                self._is_torn = False
                self._on_torn(False)
            if self._is_ending:
                self.close()

    def _wait(self, *, progress: bool) -> None:
        """Continue when the pipe has room; each byte that the child reads restarts the timeout."""
        if self._stalled is None:
            self._loop.add_writer(self._fd, self._flush)
        elif progress:
            self._stalled.cancel()
        else:
            return
        reason = f"did not read its input for {self._stall_s:g} s"
        self._stalled = self._loop.call_later(self._stall_s, self._give_up, reason)

    def _rest(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
            self._loop.remove_writer(self._fd)

    def _give_up(self, reason: str) -> None:
        self.close()
        self._on_stall(reason)
