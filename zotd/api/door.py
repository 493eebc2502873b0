"""Accepts connections on the listening socket, and waits when the process has no file descriptor left.

asyncio's own accepting tries 128 times at once in that case and logs each, every second (measured: 8 % of a core, and
128 tracebacks a second). Here those who knock wait in the kernel's queue until a descriptor is free.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Connections that are taken in before others get their turn of the event loop; the rest is seen in the next one."""

PAUSE_S = 1.0
"""Before it is tried again when the process had no descriptor left; sooner when one of its own connections ends."""


class Door:
    """Accepts connections from its making on; used on the event loop."""

    def __init__(self, listener: socket.socket, enter: Callable[[socket.socket], None]) -> None:
        """The caller closes `listener` after `close`. `enter` gets each connection, not blocking, and owns it."""
        self._listener = listener
        self._enter = enter
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._is_short = False
        """It has been told that descriptors are missing, and since then not everybody has come in who waited."""
        self._open()

    def move(self, listener: socket.socket) -> None:
        """Accept there from now on; the old listener is left to the caller, with those who still wait in it."""
        if self._pause is None:
            self._accept()
        self._loop.remove_reader(self._listener)
        self._listener = listener
        if self._pause is None:
            self._open()

    def freed(self) -> None:
        """A connection ends, and with it its descriptor, a moment later."""
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
            except OSError as error:  # no descriptor, no memory: the listener stays readable
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
