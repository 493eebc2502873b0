"""The session that is shown: opened, followed, left for another one or for good."""

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
"""Attempts to connect that fail before a line says why: a daemon that restarts is back by then, in about a second."""


NAME_CELLS = 20
"""Of each other session that is named: all of them fit on one line of 80 columns."""


class FollowerContext(UiContext, Protocol):
    """What following needs besides the desk."""

    def begin(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """A task that ends with the application, at the latest."""
        ...

    def take(self, item: Item) -> None:
        """Something of the session has come."""
        ...

    def hear(self, event: AnyEvent) -> None:
        """Something of the daemon has come that is no session's, or of any session."""
        ...

    def fail(self, error: ClientError) -> None:
        """Leave: there is no session that could be shown."""
        ...


class SessionFollower:
    """One session at a time."""

    def __init__(self, place: FollowerContext, link: SessionLink) -> None:
        """None yet."""
        self._place = place
        self._link = link
        self._task: asyncio.Task[None] | None = None
        self._reading: Reading | None = None
        self._holding: Connection | None = None
        """Keeps a session that ends with its last client, until this one is attached to it."""
        self._failures = 0
        """Attempts to connect since there was a connection."""

    def open(self, opening: "asyncio.Future[Startup]", *, goes_on: bool) -> None:
        """Follow the session that `opening` finds; `goes_on`: one that stopped in the middle goes on."""
        self._task = self._place.begin(self._open(opening, goes_on=goes_on))

    def switch(self, session_id: str) -> None:
        """Follow that one instead."""
        if self._task is not None:
            self._task.cancel()
        self.close()
        self._task = self._place.begin(self._follow(session_id))

    def close(self) -> None:
        """The session is left; blocks for a millisecond."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def attached(self, snapshot: Attached) -> None:
        """This client is attached to it, and shows what was said in it."""
        self._let_go()
        self._place.spawn(self._listen())
        if self._reading is not None:
            self._reading.attached(snapshot)

    def see(self) -> None:
        """Events were taken, and what they say is shown."""
        if self._reading is not None:
            self._reading.shown(self._place.state.last_seq)

    def farewell(self) -> str:
        """What to say at the end: how to come back, when there is something to come back to."""
        state = self._place.state
        session = state.session
        if session is None or session.ephemeral:
            return ""
        if state.run is None and not session.name and not session.message_count:
            return ""  # nothing was said
        what = "the run continues" if state.run is not None else "the session is kept"
        return f"{what}; return with: zot --session {shlex.quote(session.name or session.id)}"

    async def _open(self, opening: "asyncio.Future[Startup]", *, goes_on: bool) -> None:
        try:
            found = await opening
        except ClientError as error:
            self._place.fail(error)
            return
        if found.greeting:
            self._place.say(found.greeting)
        if found.skew:
            self._place.say(found.skew)
        if found.others:
            names = ", ".join(cut(clean(name), NAME_CELLS) for name in found.others)
            self._place.say(f"other sessions here: {names} (/sessions)")
        if goes_on and found.is_held:
            self._place.submit("/continue")
        self._holding = found.connection
        if found.secrets is not None:
            self._link.keep(found.session, found.secrets)
        try:
            await self._follow(found.session)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._holding is not None:
            self._holding.close()
            self._holding = None

    async def _follow(self, session_id: str) -> None:
        """Show a session for as long as it is there."""
        self._reading = await asyncio.to_thread(Reading, self._place, session_id)
        self._failures = 0
        try:
            async with aclosing(self._link.items(session_id)) as items:
                async for item in items:
                    self._place.take(item)
                    self._complain(item)
        except ClientError as error:
            self._place.fail(error)  # it was deleted, say; without it there is no connection by which to choose another

    def _complain(self, item: Item) -> None:
        """Say once why there is no connection, when that does not pass by itself."""
        if not isinstance(item, Disconnected):
            self._failures = 0
            return
        self._failures += 1
        if self._failures == PATIENCE:
            reason = (self._link.trouble or item.reason).rstrip(".")
            self._place.say(f"{reason}; what you send waits until zotd is back{self._link.remedy}", "warn")

    async def _listen(self) -> None:
        """Pass on what happens in the daemon, as long as there is a connection."""
        with suppress(ConnectionLostError):
            async for event in self._link.topics():
                self._place.hear(event)
