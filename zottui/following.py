"""Follows the session on the screen: opens it, passes its events on, switches to another one."""

import asyncio
import shlex
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from typing import Protocol

from zotd.client.blocking import Connection
from zotd.client.errors import ClientError, ConnectionLostError
from zotd.client.follow import Disconnected, Item
from zotd.wire.api import Attached
from zotd.wire.events import AnyEvent
from zottui.link import SessionLink
from zottui.recap import Reading
from zottui.startup import Startup
from zottui.ui_context import UiContext
from zottui.widgets.cells import clean, cut

PATIENCE = 4
"""Failed attempts to connect, about one second, before a note says why. A restarting daemon is back by then."""


NAME_CELLS = 20
"""Columns for the name of each other session, so that all of them fit on a line of 80 columns."""


class FollowerContext(UiContext, Protocol):
    """What `SessionFollower` needs of the application besides `UiContext`."""

    def begin(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Start a task that ends with the application at the latest."""
        ...

    def take(self, item: Item) -> None:
        """Take a snapshot, events or a disconnect of the session."""
        ...

    def hear(self, event: AnyEvent) -> None:
        """Take an event of the daemon's topics."""
        ...

    def fail(self, error: ClientError) -> None:
        """End the client with this error: there is no session to show."""
        ...


class SessionFollower:
    """Follows one session at a time."""

    def __init__(self, app: FollowerContext, link: SessionLink) -> None:
        """Follow nothing before `open`."""
        self._app = app
        self._link = link
        self._task: asyncio.Task[None] | None = None
        self._reading: Reading | None = None
        # Connection that keeps an ephemeral session alive until this client is attached to it.
        self._holding: Connection | None = None
        # Failed attempts to connect since the connection was lost.
        self._failures = 0

    def open(self, opening: "asyncio.Future[Startup]", *, goes_on: bool) -> None:
        """Follow the session that `opening` finds; with `goes_on`, continue it if it is held."""
        self._task = self._app.begin(self._open(opening, goes_on=goes_on))

    def switch(self, session_id: str) -> None:
        """Follow another session instead."""
        if self._task is not None:
            self._task.cancel()
        self.close()
        self._task = self._app.begin(self._follow(session_id))

    def close(self) -> None:
        """Store how far the user has read. Blocks for about a millisecond."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def attached(self, snapshot: Attached) -> None:
        """React to an attach: release the startup connection, subscribe to the daemon's topics, print the recap."""
        self._let_go()
        self._app.spawn(self._listen())
        if self._reading is not None:
            self._reading.attached(snapshot)

    def see(self) -> None:
        """Note that the latest events are on the screen."""
        if self._reading is not None:
            self._reading.shown(self._app.state.last_seq)

    def farewell(self) -> str:
        """Return how to reopen the session, for the end; empty if there is nothing to return to."""
        state = self._app.state
        session = state.session
        if session is None or session.ephemeral:
            return ""
        if state.run is None and not session.name and not session.message_count:
            return ""  # an unused session: the daemon discards it
        what = "the run continues" if state.run is not None else "the session is kept"
        return f"{what}; return with: zot --session {shlex.quote(session.name or session.id)}"

    async def _open(self, opening: "asyncio.Future[Startup]", *, goes_on: bool) -> None:
        try:
            found = await opening
        except ClientError as error:
            self._app.fail(error)
            return
        if found.greeting:
            self._app.say(found.greeting)
        if found.warning:
            self._app.say(found.warning)
        if found.skew:
            self._app.say(found.skew)
        if found.others:
            names = ", ".join(cut(clean(name), NAME_CELLS) for name in found.others)
            self._app.say(f"other sessions here: {names} (/sessions)")
        if goes_on and found.is_held:
            self._app.submit("/continue")
        self._holding = found.connection
        if found.secrets is not None:
            self._link.keep(found.session, found.secrets)
        try:
            await self._follow(found.session)
        finally:
            self._let_go()  # the client may leave before it was ever attached

    def _let_go(self) -> None:
        if self._holding is not None:
            self._holding.close()
            self._holding = None

    async def _follow(self, session_id: str) -> None:
        """Pass the session's items on until it is deleted or the task is cancelled."""
        # Before the attach: `Reading` must know the old position when the snapshot arrives, for the recap.
        self._reading = await asyncio.to_thread(Reading, self._app, session_id)
        self._failures = 0
        try:
            async with aclosing(self._link.items(session_id)) as items:
                async for item in items:
                    self._app.take(item)
                    self._complain(item)
        except ClientError as error:
            # The session was deleted, for example. Without a session there is no connection to list others.
            self._app.fail(error)

    def _complain(self, item: Item) -> None:
        """After `PATIENCE` failed attempts, print once why there is no connection."""
        if not isinstance(item, Disconnected):
            self._failures = 0
            return
        self._failures += 1
        if self._failures == PATIENCE:
            reason = (self._link.trouble or item.reason).rstrip(".")
            self._app.say(f"{reason}; what you send waits until zotd is back{self._link.remedy}", "warn")

    async def _listen(self) -> None:
        """Pass the events of the daemon's topics on until the connection is lost; `attached` starts this again."""
        with suppress(ConnectionLostError):
            async for event in self._link.topics():
                self._app.hear(event)
