"""Accepts connections on the listening socket, and pauses when the process runs out of file descriptors.

In that case asyncio's server retries 128 times and logs each failure, every second (measured: 8 % of a core, and 128
tracebacks a second). Here, new clients wait in the kernel's queue until a descriptor is free.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Connections accepted in one iteration of the event loop, so that other tasks get their turn; the rest follow."""

PAUSE_S = 1.0
"""Pause in seconds after running out of descriptors; it ends early when a connection is closed."""


class Door:
    """Accepts connections until `close`. Used on the event loop."""

    def __init__(self, listener: socket.socket, enter: Callable[[socket.socket], None]) -> None:
        """`enter` takes ownership of each connection, a non-blocking socket. The caller closes `listener`."""
        self._listener = listener
        self._enter = enter
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._is_short = False
        """A shortage was logged, and not all waiting clients have been accepted since; prevents repeated warnings."""
        self._open()

    def move(self, listener: socket.socket) -> None:
        """Accept at another listener from now on. The caller closes the old one, with the clients in its queue."""
        if self._pause is None:
            self._accept()
        self._loop.remove_reader(self._listener)
        self._listener = listener
        if self._pause is None:
            self._open()

    def freed(self) -> None:
        """Retry soon after a connection was closed, which frees a descriptor in the next iteration of the loop."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = self._loop.call_later(0, self._reopen)

    def close(self) -> None:
        """Stop accepting. Clients in the kernel's queue are refused when the caller closes the socket."""
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()

    def _open(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _reopen(self) -> None:
        self._pause = None
        self._open()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                peer, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                self._is_short = False
                return
            except OSError as error:  # out of descriptors or memory: the listener stays readable, so stop polling it
                self._wait(error)
                return
            peer.setblocking(False)
            self._enter(peer)

    def _wait(self, error: OSError) -> None:
        if not self._is_short:
            log.warning("cannot accept connections (%s); new clients have to wait", error.strerror)
        self._is_short = True
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(PAUSE_S, self._reopen)
