"""Follows a session across lost connections, without gaps or duplicates.

    connect -> attach(cursor) -> Attached -> batches ... -> Disconnected -> wait -> connect -> ...

The cursor advances only past events that the reader has applied: requesting the next item acknowledges the one before.
A daemon that has ended is not started again, because it may have been stopped on purpose.
"""

import asyncio
import math
import os
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Unpack

from zotd.client import settings
from zotd.client.client import Client
from zotd.client.connection import AsyncFeed
from zotd.client.errors import CallError, ClientError, ConnectionLostError, NoAnswerError
from zotd.wire.api import Attached, Cursor
from zotd.wire.errors import Code
from zotd.wire.events import AnyEvent, ReplayComplete

DEAD_S = 35.0
"""Silence after which a connection counts as dead: two heartbeats of 15 s were missed, with room to spare."""

BACKOFF_FIRST_S = 0.25
"""Upper bound of the first delay: a daemon that restarts is back in less than a second."""

BACKOFF_CAP_S = 10.0
"""Upper bound of every delay. The number of attempts is unlimited."""

PASSING = (Code.STORAGE_BLOCKED, Code.SHUTTING_DOWN)
"""Refusals that come to an end: the database is away, or the daemon is being stopped."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection is lost; the next attempt follows in `retry_s` seconds."""

    reason: str
    retry_s: float


Item = Attached | Disconnected | list[AnyEvent]
"""Items of a `Follow`.

`Attached` follows each connection. Its `run.partial` and panels replace what the reader displays of them, because live
events are not repeated. If its `mode` is `snapshot`, it replaces everything displayed.
"""


def backoff_s(attempt: int, chance: float) -> float:
    """Return the delay after `attempt` consecutive failures (from 1), in seconds; `chance` is in [0, 1).

    Full jitter, so that clients that lost their daemon together do not reconnect together.
    """
    return chance * min(BACKOFF_CAP_S, BACKOFF_FIRST_S * math.pow(2, min(attempt, 10) - 1))


class Follower:
    """Follows one session until it is closed, over connections of its own."""

    def __init__(
        self,
        session_id: str,
        *,
        after: Cursor | None = None,
        env: Mapping[str, str] | None = None,
        name: str = "python",
        can_approve: bool = False,
        **where: Unpack[settings.Where],
    ) -> None:
        """`after` is the cursor of an earlier follower of this session. The others are as for `Client.connect`."""
        self.cursor = after
        """The reader has applied all events up to here; None before the first snapshot."""
        self.client: Client | None = None
        """Client for sending commands; None while disconnected."""
        self._session = session_id
        self._where = where
        self._env = os.environ if env is None else env
        self._name = name
        self._can_approve = can_approve
        self._failures = 0
        self._delay_s = 0.0
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Connect again now, if the reader waits for the next attempt: the daemon is known to be back."""
        self._hurried.set()

    async def items(self) -> AsyncGenerator[Item, None]:
        """Yield snapshots, batches of at least one event (oldest first), and lost connections.

        Close it with `aclosing`. Raises `CallError` if the daemon refuses the session for good, e.g. because it was deleted.
        """
        while True:
            async with aclosing(self._one_connection()) as items:
                async for item in items:
                    yield item
            with suppress(TimeoutError):
                async with asyncio.timeout(self._delay_s):
                    await self._hurried.wait()

    async def _one_connection(self) -> AsyncGenerator[Item, None]:
        """Yield items until the connection is lost; the last item has the reason."""
        self._hurried.clear()
        try:
            async with aclosing(self._connected()) as items:
                async for item in items:
                    yield item
        except ClientError as error:
            if isinstance(error, CallError) and error.code not in PASSING:
                raise
            self._failures += 1
            self._delay_s = backoff_s(self._failures, random.random())  # noqa: S311  (no secret)
            yield Disconnected(str(error), self._delay_s)
        finally:
            self.client = None

    async def _connected(self) -> AsyncGenerator[Item, None]:
        connecting = Client.connect(
            env=self._env, autostart=False, name=self._name, can_approve=self._can_approve, **self._where
        )
        async with connecting as client:
            with client.connection.feed(self._session) as feed:
                snapshot = await client.attach(self._session, after=self.cursor)
                self.client = client
                self._failures = 0
                yield snapshot
                if snapshot.mode == "snapshot" or self.cursor is None:
                    self.cursor = Cursor(snapshot.epoch, snapshot.seq)
                while True:
                    batch, last = await _next(feed, self.cursor.seq)
                    yield batch
                    self.cursor = Cursor(snapshot.epoch, last)


def fresh(received: list[AnyEvent], last: int) -> tuple[list[AnyEvent], int]:
    """Return the events after `seq` `last`, and the `seq` that they reach.

    Raises:
        ConnectionLostError: events in between are missing. Reconnecting with the cursor gets them.
    """
    batch: list[AnyEvent] = []
    for event in received:
        seq = event.seq
        if seq is None or seq <= last:
            if seq is None or isinstance(event, ReplayComplete):
                batch.append(event)
            continue
        if seq > last + 1 or isinstance(event, ReplayComplete):
            raise ConnectionLostError(f"events from {last + 1} on are missing")
        batch.append(event)
        last = seq
    return batch, last


async def _next(feed: AsyncFeed, last: int) -> tuple[list[AnyEvent], int]:
    """Wait for the next batch; any event, even one that is dropped as old, shows that the connection is alive."""
    while True:
        try:
            async with asyncio.timeout(DEAD_S):
                received = await feed.batch()
        except TimeoutError as error:
            raise NoAnswerError(f"zotd has been silent for {DEAD_S:g} s") from error
        batch, reached = fresh(received, last)
        if batch:
            return batch, reached
