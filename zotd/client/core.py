"""What the asyncio and the blocking client share, without I/O: requests to lines, received bytes to responses and events.

A face (`zotd.client.connection`, `zotd.client.typed`) sends the lines, hands over what it reads, and waits: for a call by
the future that it has registered, for events by a `Feed`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from zotd.client import frames
from zotd.client.blocking import WholeLines
from zotd.client.errors import ClientError, ConnectionLostError, FellBehindError
from zotd.wire.base import Frozen
from zotd.wire.events import OF_TOPICS, AnyEvent, Evicted

FEED_LIMIT = 200_000
"""Maximum number of unread events in one feed, about 20 MB. Beyond it this feed ends; others are not affected."""

FEED_BYTES = 128 * 1024 * 1024
"""Maximum size of these events; bounds memory if the peer is not a zot daemon and sends long lines."""


class PendingAnswer(Protocol):
    """What a call waits for: a future of asyncio or of `concurrent.futures`."""

    def done(self) -> bool:
        """Whether it has a result, or was cancelled."""
        ...

    def set_result(self, answer: frames.ResponseFrame, /) -> None:
        """Take the response."""
        ...

    def set_exception(self, error: ClientError, /) -> None:
        """Take the reason why there will be no response."""
        ...


class Feed:
    """The unread events of one session, for one reader."""

    def __init__(self) -> None:
        self._waiting: list[AnyEvent] = []
        self._bytes = 0
        self._end: ClientError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether `take` has nothing to return or to raise yet."""
        return not self._waiting and self._end is None

    def add(self, events: list[AnyEvent], event_bytes: int = 0) -> None:
        """Add events; `event_bytes` is the approximate length of each one's line."""
        if self._end is not None:
            return
        self._waiting.extend(events)
        self._bytes += len(events) * event_bytes
        if len(self._waiting) > FEED_LIMIT or self._bytes > FEED_BYTES:
            self._end = FellBehindError(f"{len(self._waiting)} events of the session were waiting to be read")

    def end(self, error: ClientError) -> None:
        """End the feed: the reader gets the remaining events, then `error`."""
        self._end = self._end or error

    def take(self) -> list[AnyEvent]:
        """Return all unread events, oldest first.

        Raises `ConnectionLostError` at the end of the connection, `FellBehindError` beyond `FEED_LIMIT` or `FEED_BYTES`; in
        all cases only after what came before was taken.
        """
        if not self._waiting and self._end is not None:
            raise self._end
        batch, self._waiting = self._waiting, []
        self._bytes = 0
        return batch


class ClientCore:
    """One connection's calls and feeds. Used by one thread."""

    def __init__(self) -> None:
        self._lines = WholeLines()
        self._calls: dict[int, PendingAnswer] = {}
        self._feeds: dict[str | None, list[Feed]] = {}
        self._last_id = 0
        self._lost: ClientError | None = None
        self._evicted: Evicted | None = None

    @property
    def lost(self) -> ClientError | None:
        """Why the connection has ended; None while it lasts."""
        return self._lost

    @contextmanager
    def call(self, command: str, params: Frozen, answer: PendingAnswer) -> Iterator[bytes]:
        """Register a call for the block, which sends the line that it gets (without a newline) and waits for `answer`.

        A response that arrives after the block is dropped. Raises `NotTextError`, and `lost` when the connection has ended.
        """
        if self._lost is not None:
            raise self._lost
        self._last_id += 1
        request_id = self._last_id
        line = frames.encode_request(command, request_id, params)
        self._calls[request_id] = answer
        try:
            yield line
        finally:
            del self._calls[request_id]

    @contextmanager
    def registered(self, session: str | None, feed: Feed) -> Iterator[None]:
        """Add the session's events to `feed` during the block; with None, the events of topics, for all sessions."""
        if self._lost is not None:
            feed.end(self._lost)
        readers = self._feeds.setdefault(session, [])
        readers.append(feed)
        try:
            yield
        finally:
            readers.remove(feed)
            if not readers:
                del self._feeds[session]

    def receive(self, data: bytes) -> None:
        """Take received bytes: settle calls and fill feeds. Ends the connection (`lost`) if they are no frames."""
        try:
            block = self._lines.feed(data)
            if block:
                received = frames.decode(block)
                self._route(received, len(block) // (len(received) or 1))
        except ConnectionLostError as error:
            self.end(error)

    def end(self, error: ClientError) -> None:
        """Fail all pending calls and end all feeds; the first reason counts."""
        if self._lost is None and self._evicted is not None:
            error = ConnectionLostError(f"zotd cut the connection: {self._evicted.reason}")
        self._lost = self._lost or error
        for waiting in self._calls.values():
            if not waiting.done():
                waiting.set_exception(self._lost)
        for readers in self._feeds.values():
            for feed in readers:
                feed.end(self._lost)

    def _route(self, received: list[frames.Frame], frame_bytes: int) -> None:
        """Route a chunk. Adjacent events of one session, which most chunks consist of, are passed on together.

        `frame_bytes` is the average size of a frame.
        """
        session: str | None = None
        piece: list[AnyEvent] = []
        for frame in received:
            if type(frame) is frames.ResponseFrame:
                self._answer(frame)
                continue
            assert not isinstance(frame, frames.ResponseFrame)
            if type(frame) in OF_TOPICS:
                self._deliver_topic(frame, frame_bytes)
                continue
            if frame.session != session:
                self._deliver(session, piece, frame_bytes)
                session, piece = frame.session, []
            piece.append(frame)
        self._deliver(session, piece, frame_bytes)

    def _deliver(self, session: str | None, piece: list[AnyEvent], event_bytes: int) -> None:
        if not piece:
            return
        if session is not None:
            for feed in self._feeds.get(session, ()):
                feed.add(piece, event_bytes)
            return
        # Heartbeats and evictions are about the connection, so every reader learns of them.
        self._evicted = next((event for event in piece if isinstance(event, Evicted)), self._evicted)
        for readers in self._feeds.values():
            for feed in readers:
                feed.add(piece, event_bytes)

    def _deliver_topic(self, event: AnyEvent, event_bytes: int) -> None:
        for feed in self._feeds.get(None, ()):
            feed.add([event], event_bytes)

    def _answer(self, answer: frames.ResponseFrame) -> None:
        if answer.is_of_unread_line:
            self._refused_unread(answer)
            return
        waiting = self._calls.get(answer.id) if isinstance(answer.id, int) else None
        if waiting is not None and not waiting.done():  # else the call was cancelled or timed out
            waiting.set_result(answer)

    def _refused_unread(self, answer: frames.ResponseFrame) -> None:
        """Fail the pending call if there is only one; of several it is unknown which one could not be parsed."""
        waiting = [call for call in self._calls.values() if not call.done()]
        if len(waiting) > 1:
            self.end(ConnectionLostError(f"zotd could not read a request: {answer.error}"))
        elif waiting:
            waiting[0].set_result(answer)
