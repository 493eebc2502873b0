"""Limits for data of an untrusted peer, and for waiting."""

import asyncio
import gc
import socket
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest

from zotd.client.blocking import FRAME_LIMIT, Connection
from zotd.client.connection import AsyncFeed, open_connection
from zotd.client.core import FEED_BYTES
from zotd.client.errors import FellBehindError, NoAnswerError, NotRunningError
from zotd.wire import events

WAIT_S = 60


async def test_unread_events_are_limited_in_bytes():
    feed, event = AsyncFeed(), events.Done()
    feed.add([event], FEED_BYTES)
    feed.add([event], 1)
    assert await feed.batch() == [event, event]
    with pytest.raises(FellBehindError):
        await feed.batch()


def test_events_before_a_response_are_limited_in_bytes():
    ours, theirs = socket.socketpair()
    line = b'{"type":"heartbeat","more":"' + b"x" * (FRAME_LIMIT // 2) + b'"}\n'

    def flood():
        with suppress(ConnectionError):
            while True:
                theirs.sendall(line)

    flooding = threading.Thread(target=flood)
    flooding.start()
    with Connection(ours) as connection, pytest.raises(NoAnswerError, match="without a response"):
        connection.call("ping")
    flooding.join(WAIT_S)
    theirs.close()
    assert not flooding.is_alive()


def test_a_cancelled_connect_returns_at_once_and_closes_the_socket_later():
    ours, theirs = socket.socketpair()
    may_open = threading.Event()
    opened = []

    def slow():
        may_open.wait(WAIT_S)
        opened.append(ours)
        return ours

    async def leave():
        async with asyncio.timeout(0):
            await open_connection(SimpleNamespace(open=slow), start=False)  # type: ignore[arg-type]  # all that it needs

    with pytest.raises(TimeoutError):
        asyncio.run(leave())
    assert opened == []
    may_open.set()
    assert theirs.recv(1) == b""  # closed as soon as it was connected
    theirs.close()


async def test_a_connect_that_fails_after_its_cancellation_is_not_logged():
    loop, told, may_fail = asyncio.get_running_loop(), [], threading.Event()
    loop.set_exception_handler(lambda _, context: told.append(context))

    def slow():
        may_fail.wait(WAIT_S)
        raise NotRunningError("no process listens")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await open_connection(SimpleNamespace(open=slow), start=False)  # type: ignore[arg-type]  # all that it needs
    may_fail.set()
    for thread in threading.enumerate():
        if thread.name == "connecting":
            await asyncio.to_thread(thread.join, WAIT_S)
    await asyncio.sleep(0)
    gc.collect()
    assert told == []
