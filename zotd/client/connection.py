"""An asyncio connection to the daemon. It routes responses to their callers and events to the feeds of their session.

An `asyncio.Protocol`, not a stream: no task, no copy, and a third of the time per frame (15 us against 46 there and
back). Nothing here reconnects; `zotd.client.follow` does.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread

from zotd.client import blocking, frames
from zotd.client.errors import ClientError, ConnectionLostError, FellBehindError, NoAnswerError
from zotd.client.place import Place
from zotd.wire.base import Frozen
from zotd.wire.events import OF_TOPICS, AnyEvent, Evicted

CALL_S = blocking.CALL_S
"""Default timeout of a command in seconds."""

FEED_LIMIT = 200_000
"""Maximum number of unread events in one feed, about 20 MB. Beyond it this feed ends; others are not affected."""

FEED_BYTES = 128 * 1024 * 1024
"""Maximum size of these events; bounds memory if the peer is not a zot daemon and sends long lines."""


class Feed:
    """The events of one session, in batches, for one reader."""

    def __init__(self) -> None:
        self._waiting: list[AnyEvent] = []
        self._bytes = 0
        self._wake: asyncio.Future[None] | None = None
        self._end: ClientError | None = None

    async def batch(self) -> list[AnyEvent]:
        """Wait for at least one event and return all unread ones, oldest first. Safe to cancel.

        Raises `ConnectionLostError` at the end of the connection, `FellBehindError` beyond `FEED_LIMIT` or `FEED_BYTES`; in
        all cases only after what came before was read.
        """
        while not self._waiting:
            if self._end is not None:
                raise self._end
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None
        batch, self._waiting = self._waiting, []
        self._bytes = 0
        return batch

    def add(self, events: list[AnyEvent], event_bytes: int = 0) -> None:
        """Add events; `event_bytes` is the approximate length of each one's line."""
        if self._end is not None:
            return
        self._waiting.extend(events)
        self._bytes += len(events) * event_bytes
        if len(self._waiting) > FEED_LIMIT or self._bytes > FEED_BYTES:
            self.end(FellBehindError(f"{len(self._waiting)} events of the session were waiting to be read"))
        self._notify()

    def end(self, error: ClientError) -> None:
        """End the feed: the reader gets the remaining events, then `error`."""
        self._end = self._end or error
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class ClientConnection(asyncio.Protocol):
    """A connection to the daemon; created by `open_connection`, ended by `close`."""

    def __init__(self) -> None:
        self._lines = blocking.WholeLines()
        self._calls: dict[int, asyncio.Future[frames.ResponseFrame]] = {}
        self._feeds: dict[str | None, list[Feed]] = {}
        self._last_id = 0
        self._transport: asyncio.Transport | None = None
        self._lost: ClientError | None = None
        self._evicted: Evicted | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = asyncio.Event()

    async def call(self, command: str, params: Frozen, *, timeout_s: float | None = CALL_S) -> Frozen:
        """Send a request and return its data as the Struct that the command table names.

        Raises `CallError` if the daemon refuses it, `NoAnswerError` after `timeout_s`, `ConnectionLostError`. After a
        timeout or a cancellation, a late response is dropped; the command may still be executed.
        """
        self._last_id += 1
        request_id = self._last_id
        answer: asyncio.Future[frames.ResponseFrame] = asyncio.get_running_loop().create_future()
        self._calls[request_id] = answer
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(frames.encode_request(command, request_id, params))
                return frames.unpack(await answer, command)
        except TimeoutError as error:
            raise NoAnswerError(f"zotd did not answer `{command}` within {timeout_s:g} s") from error
        finally:
            del self._calls[request_id]

    @contextmanager
    def feed(self, session: str | None) -> Iterator[Feed]:
        """Open a feed of the session's events from now on; each reader can have its own.

        With None, the feed has the events of subscribed topics, for all sessions.
        """
        feed = Feed()
        if self._lost is not None:
            feed.end(self._lost)
        readers = self._feeds.setdefault(session, [])
        readers.append(feed)
        try:
            yield feed
        finally:
            readers.remove(feed)
            if not readers:
                del self._feeds[session]

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended."""
        return self._lost is not None

    @contextmanager
    def unread(self) -> Iterator[None]:
        """Stop reading from the socket during the block, which also delays responses. The daemon's limits apply."""
        assert self._transport is not None
        self._transport.pause_reading()
        try:
            yield
        finally:
            self._transport.resume_reading()  # no effect if it is closed

    async def close(self) -> None:
        """Close the socket at once; sessions and their runs continue."""
        if self._transport is not None:
            self._transport.abort()
            await self._ended.wait()  # asyncio calls `connection_lost` in the next iteration of the loop

    # --- called by asyncio ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio calls this first."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take a chunk; asyncio reads up to 256 KiB at a time."""
        try:
            block = self._lines.feed(data)
            if block:
                received = frames.decode(block)
                self._receive(received, len(block) // (len(received) or 1))
        except ConnectionLostError as error:
            self._give_up(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all pending calls and end all feeds."""
        self._give_up(ConnectionLostError(self._why_lost(exc)))
        self._ended.set()

    def pause_writing(self) -> None:
        """Hold requests back because the daemon does not read; their timeouts continue."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Release the requests that `pause_writing` held back."""
        self._writable.set()

    # --- inside ---------------------------------------------------------------------------------------------------

    async def _send(self, line: bytes) -> None:
        await self._writable.wait()  # ends with the caller's timeout, or when the connection is lost
        if self._lost is not None:
            raise self._lost
        assert self._transport is not None
        self._transport.write(line + b"\n")

    def _receive(self, received: list[frames.Frame], frame_bytes: int) -> None:
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
        waiting = [future for future in self._calls.values() if not future.done()]
        if len(waiting) > 1:
            self._give_up(ConnectionLostError(f"zotd could not read a request: {answer.error}"))
        elif waiting:
            waiting[0].set_result(answer)

    def _why_lost(self, error: Exception | None) -> str:
        if self._evicted is not None:
            return f"zotd cut the connection: {self._evicted.reason}"
        return f"the connection to zotd ended: {error}" if error else "zotd closed the connection"

    def _give_up(self, error: ClientError) -> None:
        self._lost = self._lost or error
        self._writable.set()
        for waiting in self._calls.values():
            if not waiting.done():
                waiting.set_exception(self._lost)
        for readers in self._feeds.values():
            for feed in readers:
                feed.end(self._lost)
        if self._transport is not None:
            self._transport.abort()


async def open_connection(where: Place, *, start: bool) -> ClientConnection:
    """Return a connection for the caller to close; with `start`, start a daemon if none is running.

    Raises what `ensure` and `open` of the place raise. Safe to cancel.
    """
    opening = _in_thread(where.ensure if start else where.open)
    here = asyncio.wrap_future(opening)
    try:
        sock = await asyncio.shield(here)  # has its own timeouts
    except asyncio.CancelledError:
        opening.add_done_callback(_close_late)  # runs even if the loop is closed by then
        here.add_done_callback(_seen)
        raise
    try:
        _, connection = await asyncio.get_running_loop().create_unix_connection(ClientConnection, sock=sock)
    except BaseException:
        sock.close()
        raise
    return connection


def _in_thread(work: Callable[[], socket.socket]) -> "Future[socket.socket]":
    """Run `work` in a daemon thread; with a thread of asyncio's pool, the exit of the program would wait for it."""
    found: Future[socket.socket] = Future()
    found.set_running_or_notify_cancel()  # it cannot be cancelled any more, so the socket always gets an owner

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # noqa: BLE001  (raised in the task that awaits it)
            found.set_exception(error)

    Thread(target=run, name="connecting", daemon=True).start()
    return found


def _seen(opening: "asyncio.Future[socket.socket]") -> None:
    """Retrieve the exception, so that asyncio does not log it as never retrieved."""
    if not opening.cancelled():
        opening.exception()


def _close_late(opening: "Future[socket.socket]") -> None:
    if opening.exception() is None:
        opening.result().close()
