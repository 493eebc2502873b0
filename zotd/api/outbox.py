"""Output queue of one client: bounded, and merging live events, so that a slow client affects no other.

As long as the client reads, bytes go straight to the transport. Otherwise committed frames are queued, and adjacent
live events of one item are merged. A client that exceeds a limit, or stays above the high-water mark for `STALL_S`, is
disconnected (`docs/protocol.md`). On stdio no client is disconnected, because it is the parent process.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from io import StringIO

import msgspec
from msgspec import Struct

from zotd.wire import events
from zotd.wire.base import ENCODER

FLUSH_BYTES = 64 * 1024
"""Size at which collected writes are sent immediately. Smaller ones are sent once per iteration of the event loop: each
`send` wakes the client, which costs more than the bytes."""

HIGH_WATER_BYTES = 64 * 1024
"""Size of the transport's buffer, besides the kernel's 200 KiB, at which the client counts as stalled. From then on
live events are merged, which loses nothing."""

LOW_WATER_BYTES = 16 * 1024

MAX_FRAMES = 256
"""Maximum number of queued committed frames (`docs/protocol.md`)."""

MAX_BYTES = 2 * 1024 * 1024
"""Maximum size of the queue in bytes, without the transport's buffer and without the last frame (at most 4 MiB)."""

STALL_S = 3.0
"""Time in seconds that a client may stay stalled; with the time to fill its buffers, it is disconnected within 5 s."""

FAREWELL_S = 0.5
"""Time in seconds for a disconnected client to read the output that is on its way."""


_MERGED: dict[type[events.Event], str] = {
    events.TextDelta: "delta",
    events.ThinkingDelta: "delta",
    events.ToolUseArgs: "delta",
    events.ToolProgress: "text",
}
"""Live events that are merged with an adjacent one of the same item, and the field that is concatenated."""


_LASTING = (events.ApprovalRequested, events.ApprovalResolved)


class LiveBatch:
    """Queued live events in order; adjacent events of one item are merged."""

    def __init__(self) -> None:
        self._events: list[events.Event] = []
        self._texts: dict[int, StringIO] = {}
        """Concatenated text of merged events, by their index; a list of 4-byte deltas takes 15 times the memory."""
        self._last: tuple[object, ...] | None = None
        self.size = 0
        """Size of the encoded events in bytes, possibly a few too low."""

    def add(self, shown: Sequence[events.Event]) -> None:
        """Append events; merge each one that continues the one before."""
        for event in shown:
            field = _MERGED.get(type(event))
            text: str = getattr(event, field) if field else ""
            item = (type(event), event.session, getattr(event, "id", None)) if field else None
            if item is not None and item == self._last:
                self._grown(len(self._events) - 1).write(text)
                self.size += len(ENCODER.encode(text)) - len('""')
            else:
                self._events.append(event)
                self._last = item
                self.size += len(ENCODER.encode(event)) + 1

    def lasting(self) -> "LiveBatch":
        """Return those that no committed event replaces: questions of subagents, and their ends."""
        found = LiveBatch()
        found.add([event for event in self._events if isinstance(event, _LASTING)])
        return found

    def encode(self) -> bytes:
        """Return the events as NDJSON; empty if there are none."""
        return ENCODER.encode_lines([self._joined(index) for index in range(len(self._events))])

    def _joined(self, index: int) -> events.Event:
        event, text = self._events[index], self._texts.get(index)
        if text is None:
            return event
        return msgspec.structs.replace(event, **{_MERGED[type(event)]: text.getvalue()})

    def _grown(self, index: int) -> StringIO:
        text = self._texts.get(index)
        if text is None:
            text = self._texts[index] = StringIO()
            event = self._events[index]
            text.write(getattr(event, _MERGED[type(event)]))
        return text


class _Piece(Struct):
    """A queued write and what it counts towards the limits."""

    data: bytes | LiveBatch
    frames: int = 0
    session: str | None = None
    last_seq: int = 0

    def encode(self) -> bytes:
        return self.data.encode() if isinstance(self.data, LiveBatch) else self.data


class Outbox:
    """The output side of one connection."""

    def __init__(
        self, transport: asyncio.WriteTransport, *, cut: Callable[[str], None] | None, stall_s: float = STALL_S
    ) -> None:
        """`cut` is called once with the reason when the client is too slow; None: never."""
        self._transport = transport
        self._cut = cut
        self._stall_s = stall_s
        self._ready: list[bytes] = []
        """Output of this iteration of the event loop, for a single `send`."""
        self._ready_bytes = 0
        self._waiting: deque[_Piece] = deque()
        self._frames = 0
        self._bytes = 0
        self._stalled: asyncio.TimerHandle | None = None
        self._paused = False
        self._room = asyncio.Event()
        self._room.set()
        self.closed = False
        self.sent: dict[str, int] = {}
        """Session to the `seq` of the last event that was handed to the transport."""
        transport.set_write_buffer_limits(HIGH_WATER_BYTES, LOW_WATER_BYTES)

    def write(self, data: bytes, *, frames: int = 1, session: str | None = None, last_seq: int = 0) -> None:
        """Send a response or committed events; never dropped as long as the client is connected."""
        if self.closed:
            return
        piece = _Piece(data, frames, session, last_seq)
        if not self._paused and not self._waiting:
            self._hand_over(piece)
            return
        before = self._bytes
        self._waiting.append(piece)
        self._frames += frames
        self._bytes += len(data)
        # Without this frame: the longest reply is as long as the limit, and a client that reads it is not slow.
        self._cut_beyond(before)

    def write_live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Send live events, which may be merged; `data` is their NDJSON."""
        if self.closed:
            return
        if not self._paused and not self._waiting:
            self._send(data)
            return
        last = self._waiting[-1].data if self._waiting else None
        if isinstance(last, LiveBatch):
            batch = last
        else:
            batch = LiveBatch()
            self._waiting.append(_Piece(batch))
        before = batch.size
        batch.add(shown)
        self._bytes += batch.size - before
        self.check()

    def check(self, held_bytes: int = 0) -> None:
        """Disconnect the client if too much is queued, including `held_bytes` that the caller holds for it."""
        self._cut_beyond(self._bytes + held_bytes)

    async def room(self) -> None:
        """Wait until the client has read its output or is gone. Replay waits here, so as not to fill the queue."""
        while not self._room.is_set():  # another task that was waiting may have filled it again
            await self._room.wait()

    def pause(self) -> None:
        """Start to queue: the transport's buffer is full."""
        if self.closed:  # the farewell has filled the buffer; nothing follows, and no task must wait for room
            return
        self._paused = True
        self._room.clear()
        if self._cut is not None and self._stalled is None:
            reason = f"the client read nothing for {self._stall_s:g} s"
            self._stalled = asyncio.get_running_loop().call_later(self._stall_s, self._cut, reason)

    def resume(self) -> None:
        """Send the queue: the transport's buffer has room."""
        self._paused = False
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        while self._waiting and not self._paused:  # a write may pause the transport again
            piece = self._waiting.popleft()
            self._frames -= piece.frames
            self._bytes -= piece.data.size if isinstance(piece.data, LiveBatch) else len(piece.data)
            self._hand_over(piece)
        if not self._waiting and not self._paused:
            self._room.set()

    def flush(self) -> None:
        """Pass buffered output to the transport now; call it before the transport is closed."""
        if self._ready and not self._transport.is_closing():
            data = b"".join(self._ready)
            self._ready.clear()
            self._ready_bytes = 0
            self._transport.write(data)

    def close(self) -> None:
        """Drop the queue and ignore further output."""
        self.flush()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        self._waiting.clear()
        self._cut = None
        self.closed = True
        self._room.set()

    def _cut_beyond(self, size: int) -> None:
        if self._cut is None:
            return
        if self._frames > MAX_FRAMES:
            self._cut(f"more than {MAX_FRAMES} frames were waiting")
        elif size > MAX_BYTES:
            self._cut(f"more than {MAX_BYTES // (1024 * 1024)} MiB were waiting")

    def _hand_over(self, piece: _Piece) -> None:
        if piece.session is not None:
            self.sent[piece.session] = piece.last_seq
        self._send(piece.encode())

    def _send(self, data: bytes) -> None:
        if not self._ready:
            asyncio.get_running_loop().call_soon(self.flush)
        self._ready.append(data)
        self._ready_bytes += len(data)
        if self._ready_bytes >= FLUSH_BYTES:
            self.flush()
