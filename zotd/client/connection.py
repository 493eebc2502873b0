"""One asyncio connection to the daemon: answers go to their callers, events to the feeds of their session.

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
"""How long a command may take."""

FEED_LIMIT = 200_000
"""Events that may wait for a reader of one session, about 20 MB; then its feed ends and the others go on."""

FEED_BYTES = 128 * 1024 * 1024
"""The same in bytes of their lines: several times what so many have, but those of a stranger may be long."""


class Feed:
    """The events of one session, in batches, for one reader."""

    def __init__(self) -> None:
        self._waiting: list[AnyEvent] = []
        self._bytes = 0
        self._wake: asyncio.Future[None] | None = None
        self._end: ClientError | None = None

    async def batch(self) -> list[AnyEvent]:
        """Everything that has come since the last call, at least one event, oldest first. Safe to cancel.

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
        """Give the reader more; `event_bytes`: of each one's line, about."""
        if self._end is not None:
            return
        self._waiting.extend(events)
        self._bytes += len(events) * event_bytes
        if len(self._waiting) > FEED_LIMIT or self._bytes > FEED_BYTES:
            self.end(FellBehindError(f"{len(self._waiting)} events of the session were waiting to be read"))
        self._notify()

    def end(self, error: ClientError) -> None:
        """Tell the reader why nothing more comes."""
        self._end = self._end or error
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Connection(asyncio.Protocol):
    """One socket to the daemon. Made by `open_connection`, ended by `close`."""

    def __init__(self) -> None:
        self._lines = blocking.WholeLines()
        self._calls: dict[int, asyncio.Future[frames.Answer]] = {}
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

        Raises `CallError` when the daemon refuses, `NoAnswerError` after `timeout_s`, `ConnectionLostError`.
        Cancelled, or too late: the answer is dropped when it comes; the command may still be carried out.
        """
        self._last_id += 1
        request_id = self._last_id
        answer: asyncio.Future[frames.Answer] = asyncio.get_running_loop().create_future()
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
        """The session's events from now on; more than one reader may have a feed of its own.

        None: those of the topics that this connection subscribes to, of whichever session they are.
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
        """Nothing comes of it any more."""
        return self._lost is not None

    @contextmanager
    def unread(self) -> Iterator[None]:
        """Leave what the daemon sends in the socket for the time of the block, answers too; its limits apply."""
        assert self._transport is not None
        self._transport.pause_reading()
        try:
            yield
        finally:
            self._transport.resume_reading()  # harmless when it is closed

    async def close(self) -> None:
        """Close the socket at once; sessions and their runs go on."""
        if self._transport is not None:
            self._transport.abort()
            await self._ended.wait()  # the loop's next turn

    # --- what asyncio calls ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is ours now."""
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
        """Tell everybody who waits."""
        self._give_up(ConnectionLostError(self._why_lost(exc)))
        self._ended.set()

    def pause_writing(self) -> None:
        """The daemon does not read: requests wait, within their timeouts."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    # --- the rest -------------------------------------------------------------------------------------------------

    async def _send(self, line: bytes) -> None:
        await self._writable.wait()  # ends with the caller's timeout, or with the connection
        if self._lost is not None:
            raise self._lost
        assert self._transport is not None
        self._transport.write(line + b"\n")

    def _receive(self, received: list[frames.Frame], frame_bytes: int) -> None:
        """Route a chunk: runs of events of one session, which is what a chunk mostly is, go in one piece.

        `frame_bytes`: of each frame, on the average.
        """
        session: str | None = None
        piece: list[AnyEvent] = []
        for frame in received:
            if type(frame) is frames.Answer:
                self._answer(frame)
                continue
            assert not isinstance(frame, frames.Answer)
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

    def _answer(self, answer: frames.Answer) -> None:
        if answer.is_of_unread_line:
            self._refused_unread(answer)
            return
        waiting = self._calls.get(answer.id) if isinstance(answer.id, int) else None
        if waiting is not None and not waiting.done():  # else nobody waits for it any more
            waiting.set_result(answer)

    def _refused_unread(self, answer: frames.Answer) -> None:
        """Fail the only call that waits; of several nobody knows which one was not read."""
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


async def open_connection(where: Place, *, start: bool) -> Connection:
    """A connection for the caller to close; with `start`, to a daemon that is started when none runs.

    Raises what `ensure` and `open` of the place raise. Safe to cancel.
    """
    opening = _in_thread(where.ensure if start else where.open)
    here = asyncio.wrap_future(opening)
    try:
        sock = await asyncio.shield(here)  # bounded by the limits in there
    except asyncio.CancelledError:
        opening.add_done_callback(_close_late)  # also when the loop is closed by then
        here.add_done_callback(_seen)
        raise
    try:
        _, connection = await asyncio.get_running_loop().create_unix_connection(Connection, sock=sock)
    except BaseException:
        sock.close()
        raise
    return connection


def _in_thread(work: Callable[[], socket.socket]) -> "Future[socket.socket]":
    """What `work` gives, in a thread that nobody waits for: for those of asyncio's pool a program's end does."""
    found: Future[socket.socket] = Future()
    found.set_running_or_notify_cancel()  # from now on it cannot be cancelled, and is found all the same

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # noqa: BLE001  (raised where it is waited for)
            found.set_exception(error)

    Thread(target=run, name="connecting", daemon=True).start()
    return found


def _seen(opening: "asyncio.Future[socket.socket]") -> None:
    """Nobody wants to know any more why it failed."""
    if not opening.cancelled():
        opening.exception()


def _close_late(opening: "Future[socket.socket]") -> None:
    if opening.exception() is None:
        opening.result().close()
