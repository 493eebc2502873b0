"""Who is attached to which session; everybody attached is told when that changes.

They are told of all of them, once for all that has changed in a turn of the event loop: when 200 clients attach at once
everybody gets a few lists, and not 200 of them.
"""

import asyncio

from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.events import ClientInfo


class Presences:
    """The clients of every session."""

    def __init__(self) -> None:
        self._clients: dict[str, dict[str, ClientInfo]] = {}
        self._changed: dict[str, Session] = {}
        """Of which nobody has been told yet."""

    def enter(self, session: Session, client: ClientInfo) -> None:
        """`client` has attached."""
        self._clients.setdefault(session.id, {})[client.id] = client
        self._tell_soon(session)

    def leave(self, session: Session, client_id: str) -> None:
        """It has left; harmless when it was not there."""
        clients = self._clients.get(session.id, {})
        if clients.pop(client_id, None) is None:
            return
        if not clients:
            del self._clients[session.id]
        self._tell_soon(session)

    def of(self, session_id: str) -> list[ClientInfo]:
        """Everybody attached to the session, longest first."""
        return list(self._clients.get(session_id, {}).values())

    def _tell_soon(self, session: Session) -> None:
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._tell)
        self._changed[session.id] = session

    def _tell(self) -> None:
        changed, self._changed = self._changed, {}
        for session in changed.values():
            session.ledger.live([events.Presence(self.of(session.id), session=session.id)])
