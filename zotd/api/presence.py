"""Who is attached to which session; everybody attached is told when that changes."""

from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.events import ClientInfo


class Presences:
    """The clients of every session."""

    def __init__(self) -> None:
        self._clients: dict[str, dict[str, ClientInfo]] = {}

    def enter(self, session: Session, client: ClientInfo) -> None:
        """`client` has attached."""
        self._clients.setdefault(session.id, {})[client.id] = client
        self._tell(session)

    def leave(self, session: Session, client_id: str) -> None:
        """It has left; harmless when it was not there."""
        clients = self._clients.get(session.id, {})
        if clients.pop(client_id, None) is None:
            return
        if not clients:
            del self._clients[session.id]
        self._tell(session)

    def of(self, session_id: str) -> list[ClientInfo]:
        """Everybody attached to the session, longest first."""
        return list(self._clients.get(session_id, {}).values())

    def _tell(self, session: Session) -> None:
        session.ledger.live([events.Presence(self.of(session.id), session=session.id)])
