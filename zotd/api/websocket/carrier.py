"""Connects the bytes of a WebSocket to a `ServerConnection` like that of the Unix socket.

    stranger ──hello with a token──> member ──either side closes──> leaving ──> gone
        └──────anything else, or 10 s─────────────────────────────────┘

Lines of a connection are sent as text messages without being encoded again, directly to the network transport, whose
buffer therefore determines whether a client is slow, as on the Unix socket.
"""

import asyncio
import logging
from collections.abc import Callable

from zotd.api.connection import ServerConnection
from zotd.api.outbox import FAREWELL_S, HIGH_WATER_BYTES
from zotd.api.websocket.frames import CloseCode, Frames, Op, closing, frame

log = logging.getLogger(__name__)

HELLO_BYTES = 64 * 1024
"""Longest first message; a hello has 300 bytes."""

MAX_CONTROLS = 256
"""Maximum number of pings, pongs and empty messages between two heartbeats; clients send only a few."""

QUIET_BEATS = 3
"""Heartbeats, of 15 s each, after which a client is disconnected that has sent nothing, not even the pong that each
heartbeat requests: a broken network connection is not reported otherwise."""


class Carrier(asyncio.Transport):
    """The transport that a `ServerConnection` and its `Outbox` write to."""

    def __init__(self, network: asyncio.Transport, leave: Callable[[], None]) -> None:
        """`leave` is called when the connection wants to close."""
        super().__init__()
        self._network = network
        self._leave = leave
        self.is_reading_paused = False
        self.is_over = False
        """The close frame was sent; nothing may follow it."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send whole lines of NDJSON, each as a text message."""
        if not self.is_over:
            self._network.write(b"".join(frame(Op.TEXT, line) for line in bytes(data).split(b"\n") if line))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See `asyncio.WriteTransport`."""
        self._network.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes in the network transport's buffer."""
        return self._network.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Stop reading until `resume_reading`; may be called again."""
        self.is_reading_paused = True
        self._network.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading."""
        self.is_reading_paused = False
        self._network.resume_reading()

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self.is_over or self._network.is_closing()

    def close(self) -> None:
        """Send a close frame after the pending output, and wait briefly for the client's."""
        self._leave()

    def abort(self) -> None:
        """Disconnect at once."""
        self._network.abort()


class FrameCarrier:
    """Processes the bytes of a client after the upgrade."""

    def __init__(
        self, network: asyncio.Transport, *, admit: Callable[["FrameCarrier", bytes], ServerConnection | None]
    ) -> None:
        """`admit` gets the first message and returns the connection of an authenticated client.

        It returns None if it has called `leave` or `refuse`.
        """
        self.connection: ServerConnection | None = None
        self.ended = asyncio.Event()
        """Set when the network connection has ended."""
        self._network = network
        self._admit = admit
        self._frames = Frames()
        self._first = bytearray()
        """The part of the first message received so far."""
        self._is_leaving = False
        self._refusal: asyncio.TimerHandle | None = None
        """Set while a refused client waits to be disconnected; its messages are ignored."""
        self._controls = 0
        self._quiet_beats = 0
        self._farewell = CloseCode.GOING_AWAY
        """Default close code."""
        self.carrier = Carrier(network, self.leave)

    # --- called by the network transport --------------------------------------------------------------------------

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Process bytes of the client. The result tells aiohttp to continue, with no bytes left over."""
        if not self._frames.is_over:
            heard = self._frames.feed(data)
            self._quiet_beats = 0
            if heard.lines and not self._is_leaving and self._refusal is None:
                self._take(bytes(heard.lines))
            self._answer_controls(heard.ping, heard.controls)
            if heard.close is not None:
                self._closed(heard.close)
        return False, b""

    def feed_eof(self) -> None:
        """Do nothing: `lost` follows."""

    def paused(self) -> None:
        """Queue output: the transport's buffer is full."""
        if self.connection is not None:
            self.connection.paused()

    def resumed(self) -> None:
        """Send queued output: the transport's buffer has room."""
        if self.connection is not None:
            self.connection.resumed()

    def lost(self) -> None:
        """Release the connection: the client has disconnected."""
        self._is_leaving = True
        if self._refusal is not None:
            self._refusal.cancel()
        self.ended.set()
        if self.connection is not None:
            self.connection.lost()

    # --- called by the server -------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Send a heartbeat and a ping, and disconnect a client that has been silent for too long; called every 15 s."""
        connection = self.connection
        if connection is None or self._is_leaving:
            return
        self._controls = 0
        # A client that we do not read from cannot prove that it is alive.
        self._quiet_beats += not self.carrier.is_reading_paused
        if self._quiet_beats > QUIET_BEATS:
            connection.end("it sent nothing and did not answer a ping")
            return
        connection.heartbeat()
        self._network.write(frame(Op.PING, b""))

    def close_with(self, code: CloseCode) -> None:
        """Set the close code of the connection."""
        self._farewell = code

    def refuse(self, delay_s: float) -> None:
        """Ignore further messages and disconnect after `delay_s`, because the client has no valid token."""
        self._refusal = asyncio.get_running_loop().call_later(delay_s, self.leave, CloseCode.UNAUTHORIZED)

    def leave(self, code: CloseCode | None = None) -> None:
        """Close: send pending output and the close code, and give the client a moment to close its end."""
        if self._is_leaving:
            return
        self._is_leaving = True
        self.carrier.is_over = True
        if not self._network.is_closing():
            self._network.write(closing(code or self._farewell))
            # Input is still read and dropped: closing with unread input would reset the connection and lose the code.
            self._network.resume_reading()
        asyncio.get_running_loop().call_later(FAREWELL_S, self._hang_up)

    # --- inside ---------------------------------------------------------------------------------------------------

    def _take(self, lines: bytes) -> None:
        if self.connection is not None:
            self.connection.received(lines)
            return
        self._first += lines
        first, newline, rest = self._first.partition(b"\n")
        if len(first) > HELLO_BYTES:
            self.leave(CloseCode.UNAUTHORIZED)
        elif newline:
            self.connection = self._admit(self, bytes(first))
        if self.connection is not None:
            self.connection.received(bytes(first + newline + rest))
        if newline or self._is_leaving:
            self._first.clear()

    def _answer_controls(self, ping: bytes | None, count: int) -> None:
        self._controls += count
        if self._controls > MAX_CONTROLS:
            self.leave(CloseCode.POLICY)
        elif ping is not None and not self._is_leaving and self._network.get_write_buffer_size() < HIGH_WATER_BYTES:
            self._network.write(frame(Op.PONG, ping))

    def _closed(self, code: int) -> None:
        """Handle a close frame, or a violation of the protocol after which nothing can be decoded any more."""
        if not self._is_leaving:
            self._is_leaving = self.carrier.is_over = True
            self._network.write(closing(code))
        self._hang_up()

    def _hang_up(self) -> None:
        """Close the network connection after its output is sent, but wait at most `FAREWELL_S` for that."""
        if not self.ended.is_set():
            self._network.close()
            asyncio.get_running_loop().call_later(FAREWELL_S, self._cut)

    def _cut(self) -> None:
        if not self.ended.is_set():
            self._network.abort()
