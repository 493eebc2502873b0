"""Tracks which clients are attached to which session, and sends the list to all of them when it changes.

Changes within one iteration of the event loop are sent together: when 200 clients attach at once, each gets a few
lists, not 200.

Clients may report whether a user is looking at them (`presence.update`). If no client is focused, the one that was
focused last is notified of important events (`zotd.api.attention`).
"""

import asyncio
from collections.abc import Callable

import msgspec
from msgspec import Struct

from zotd.api.attention import AttentionWatcher
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.events import ClientInfo

Write = Callable[[events.Event], None]


class _Seat(Struct):
    """An attached client."""

    info: ClientInfo
    write: Write
    last_used: int = 0
    """Rank of the last use by a person; greater means later, 0 never."""


class Presences:
    """The clients of every session."""

    def __init__(self, attention_s: Callable[[], float] = lambda: 0.0) -> None:
        """`attention_s` returns the shortest run, in seconds, whose end is reported.

        It is called for each session when one of its clients first reports its focus.
        """
        self._attention_s = attention_s
        self._seats: dict[str, dict[str, _Seat]] = {}
        self._calls: dict[str, AttentionWatcher] = {}
        """Watchers of the sessions that have a client which reports its focus."""
        self._changed: dict[str, Session] = {}
        """Sessions whose new list has not been sent yet."""
        self._uses = 0

    def enter(self, session: Session, client: ClientInfo, write: Write) -> None:
        """Add a client that has attached; `write` sends it an event."""
        self._seats.setdefault(session.id, {})[client.id] = _Seat(client, write)
        self._tell_soon(session)

    def leave(self, session: Session, client_id: str) -> None:
        """Remove a client that has detached; does nothing if it was not attached."""
        seats = self._seats.get(session.id, {})
        if seats.pop(client_id, None) is None:
            return
        if not seats:
            del self._seats[session.id]
            if session.id in self._calls:
                self._calls.pop(session.id).stop()
        self._tell_soon(session)

    def update(self, session: Session, client_id: str, *, focused: bool, typing: bool) -> bool:
        """Record a client's report about its user; False if the client is not attached."""
        seat = self._seats.get(session.id, {}).get(client_id)
        if seat is None:
            return False
        if session.id not in self._calls:
            self._calls[session.id] = AttentionWatcher(session, lambda: self._free(session.id), self._attention_s())
        if focused or typing or seat.info.focused:  # losing the focus counts as well: the user was there until now
            self._uses += 1
            seat.last_used = self._uses
        if (seat.info.focused, seat.info.typing) != (focused, typing):
            seat.info = msgspec.structs.replace(seat.info, focused=focused, typing=typing)
            self._tell_soon(session)
        return True

    def of(self, session_id: str) -> list[ClientInfo]:
        """Return the clients attached to the session, in the order in which they attached."""
        return [seat.info for seat in self._seats.get(session_id, {}).values()]

    def _free(self, session_id: str) -> Write | None:
        """Return how to reach the client to notify; None if a client is focused, or none reports its focus."""
        seats = [seat for seat in self._seats.get(session_id, {}).values() if seat.info.focused is not None]
        if not seats or any(seat.info.focused for seat in seats):
            return None
        # Of clients that were never used, the one that attached last.
        return max(reversed(seats), key=lambda seat: seat.last_used).write

    def _tell_soon(self, session: Session) -> None:
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._tell)
        self._changed[session.id] = session

    def _tell(self) -> None:
        changed, self._changed = self._changed, {}
        for session in changed.values():
            session.ledger.live([events.Presence(self.of(session.id), session=session.id)])
