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
from zotd.client.core import ClientCore, Feed
from zotd.client.errors import ClientError, ConnectionLostError, NoAnswerError
from zotd.client.place import Place
from zotd.wire.base import Frozen
from zotd.wire.events import AnyEvent

CALL_S = blocking.CALL_S
"""Default timeout of a command in seconds."""


class AsyncFeed(Feed):
    """A feed whose reader is a task."""

    def __init__(self) -> None:
        super().__init__()
        self._wake: asyncio.Future[None] | None = None

    async def batch(self) -> list[AnyEvent]:
        """Wait for at least one event and return all unread ones, oldest first. Raises like `take`. Safe to cancel."""
        while self.is_empty:
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None
        return self.take()

    def add(self, events: list[AnyEvent], event_bytes: int = 0) -> None:
        """Add events and wake the reader; `event_bytes` is the approximate length of each one's line."""
        super().add(events, event_bytes)
        self._notify()

    def end(self, error: ClientError) -> None:
        """End the feed: the reader gets the remaining events, then `error`."""
        super().end(error)
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class ClientConnection(asyncio.Protocol):
    """A connection to the daemon; created by `open_connection`, ended by `close`."""

    def __init__(self) -> None:
        self._core = ClientCore()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = asyncio.Event()

    async def call(self, command: str, params: Frozen, *, timeout_s: float | None = CALL_S) -> Frozen:
        """Send a request and return its data as the Struct that the command table names.

        Raises `CallError` if the daemon refuses it, `NoAnswerError` after `timeout_s`, `ConnectionLostError`. After a
        timeout or a cancellation, a late response is dropped; the command may still be executed.
        """
        answer: asyncio.Future[frames.ResponseFrame] = asyncio.get_running_loop().create_future()
        with self._core.call(command, params, answer) as line:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._send(line)
                    return frames.unpack(await answer, command)
            except TimeoutError as error:
                raise NoAnswerError(f"zotd did not answer `{command}` within {timeout_s:g} s") from error

    @contextmanager
    def feed(self, session: str | None) -> Iterator[AsyncFeed]:
        """Open a feed of the session's events from now on; each reader can have its own.

        With None, the feed has the events of subscribed topics, for all sessions.
        """
        feed = AsyncFeed()
        with self._core.registered(session, feed):
            yield feed

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended."""
        return self._core.lost is not None

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
        self._core.receive(data)
        if self._core.lost is not None:
            self._drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all pending calls and end all feeds."""
        reason = f"the connection to zotd ended: {exc}" if exc else "zotd closed the connection"
        self._core.end(ConnectionLostError(reason))
        self._drop()
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
        if self._core.lost is not None:
            raise self._core.lost
        assert self._transport is not None
        self._transport.write(line + b"\n")

    def _drop(self) -> None:
        self._writable.set()  # requests that wait to be sent find that the connection is lost
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
