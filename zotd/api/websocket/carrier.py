"""One WebSocket connection: bytes of the network on one side, a `ServerConnection` like that of the Unix socket on the other.

    stranger ──hello with a token──> member ──either side closes──> leaving ──> gone
        └──────anything else, or 10 s─────────────────────────────────┘

A connection's lines become text messages as they are, without being encoded again, and go straight to the transport of
the network: how much waits there is what decides whether a client is slow, here as on the Unix socket.
"""

import asyncio
import logging
from collections.abc import Callable

from zotd.api.connection import ServerConnection
from zotd.api.outbox import FAREWELL_S, HIGH_WATER_BYTES
from zotd.api.websocket.frames import CloseCode, Frames, Op, closing, frame

log = logging.getLogger(__name__)

HELLO_BYTES = 64 * 1024
"""Longest first message: a hello takes 300 bytes."""

MAX_CONTROLS = 256
"""Pings, pongs and empty messages between two heartbeats; clients send one now and then."""

QUIET_BEATS = 3
"""Heartbeats, of 15 s, after which a client is gone that has sent nothing, not even the pong that each of them asks for:
its network has broken down without telling anybody."""


class Carrier(asyncio.Transport):
    """What a `ServerConnection` and its `Outbox` take for their transport."""

    def __init__(self, network: asyncio.Transport, leave: Callable[[], None]) -> None:
        """`leave` is called when the connection wants to close."""
        super().__init__()
        self._network = network
        self._leave = leave
        self.is_reading_paused = False
        self.is_over = False
        """The close frame is sent, behind which nothing may come."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send NDJSON, whole lines: a text message for each."""
        if not self.is_over:
            self._network.write(b"".join(frame(Op.TEXT, line) for line in bytes(data).split(b"\n") if line))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """As of every transport."""
        self._network.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Bytes that the network has not taken yet."""
        return self._network.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Hear nothing until `resume_reading`; harmless when it is so already."""
        self.is_reading_paused = True
        self._network.pause_reading()

    def resume_reading(self) -> None:
        """The opposite."""
        self.is_reading_paused = False
        self._network.resume_reading()

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self.is_over or self._network.is_closing()

    def close(self) -> None:
        """Send what was written and a close frame, and give the client a moment to answer it."""
        self._leave()

    def abort(self) -> None:
        """End it now."""
        self._network.abort()


class FrameCarrier:
    """What becomes of the bytes of a client after the upgrade."""

    def __init__(
        self, network: asyncio.Transport, *, admit: Callable[["FrameCarrier", bytes], ServerConnection | None]
    ) -> None:
        """`admit` gets the first message, and gives the connection of somebody who may come in, after saying hello.

        None: it has called `leave` or `refuse`.
        """
        self.connection: ServerConnection | None = None
        self.ended = asyncio.Event()
        """Set when the network connection is gone."""
        self._network = network
        self._admit = admit
        self._frames = Frames()
        self._first = bytearray()
        """Of the first message, what there is of it."""
        self._is_leaving = False
        self._refusal: asyncio.TimerHandle | None = None
        """Runs when somebody is to be refused: nothing that they say counts any more."""
        self._controls = 0
        self._quiet_beats = 0
        self._farewell = CloseCode.GOING_AWAY
        """What it closes with, when nothing else is said."""
        self.carrier = Carrier(network, self.leave)

    # --- what the network says ------------------------------------------------------------------------------------

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Bytes of the client, cut anywhere. The result is for aiohttp: it goes on, and nothing is left over."""
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
        """Nothing: `lost` follows."""

    def paused(self) -> None:
        """The network takes no more."""
        if self.connection is not None:
            self.connection.paused()

    def resumed(self) -> None:
        """It does again."""
        if self.connection is not None:
            self.connection.resumed()

    def lost(self) -> None:
        """The client is gone."""
        self._is_leaving = True
        if self._refusal is not None:
            self._refusal.cancel()
        self.ended.set()
        if self.connection is not None:
            self.connection.lost()

    # --- what the daemon says -------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Every 15 s: show that the daemon lives, see that the client does."""
        connection = self.connection
        if connection is None or self._is_leaving:
            return
        self._controls = 0
        self._quiet_beats += not self.carrier.is_reading_paused
        if self._quiet_beats > QUIET_BEATS:
            connection.end("it sent nothing and did not answer a ping")
            return
        connection.heartbeat()
        self._network.write(frame(Op.PING, b""))

    def close_with(self, code: CloseCode) -> None:
        """Send this code when the connection closes."""
        self._farewell = code

    def refuse(self, delay_s: float) -> None:
        """Hear no further message, and close after so long, as for whoever has no token that counts."""
        self._refusal = asyncio.get_running_loop().call_later(delay_s, self.leave, CloseCode.UNAUTHORIZED)

    def leave(self, code: CloseCode | None = None) -> None:
        """Close: what was written goes out, then the code, and the client has a moment to close its end."""
        if self._is_leaving:
            return
        self._is_leaving = True
        self.carrier.is_over = True
        if not self._network.is_closing():
            self._network.write(closing(code or self._farewell))
            # What it has sent meanwhile is read and dropped: closing now would reset the connection, and lose the code.
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
        """The client has closed, or what it sends cannot be understood any more."""
        if not self._is_leaving:
            self._is_leaving = self.carrier.is_over = True
            self._network.write(closing(code))
        self._hang_up()

    def _hang_up(self) -> None:
        """End it as soon as what was written is sent; a client that does not read it is cut a moment later."""
        if not self.ended.is_set():
            self._network.close()
            asyncio.get_running_loop().call_later(FAREWELL_S, self._cut)

    def _cut(self) -> None:
        if not self.ended.is_set():
            self._network.abort()
