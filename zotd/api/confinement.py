"""Restricts what a connection may see and do, in addition to its role.

There are two kinds: for programs that the daemon has started (`zotd.api.descendants`), and for tokens that are limited
to some sessions (`zotd.api.scope`). Restrictions are checked before a command runs, and again by the few commands whose
response covers several sessions.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection

from zotd.api.context import DaemonContext
from zotd.sessions.session import Session
from zotd.wire.api import CommandSpec, Role
from zotd.wire.base import Frozen
from zotd.wire.errors import Code, CommandError
from zotd.wire.events import Event

ABOUT_NONE = frozenset({"hello", "ping", "subscribe", "session.list", "get_models", "daemon.status", "daemon.metrics"})
"""Commands without a session that reveal nothing about others, or omit it. All others are refused, so a new command is
refused until it is added here."""


class Confinement(ABC):
    """The restrictions of one connection."""

    checks_modes: bool
    """Whether `admit` rejects approval modes that are too permissive; else setting one needs the role `approve`."""

    def __init__(self, own: Collection[str], context: DaemonContext) -> None:
        """Allow the sessions whose ids are in `own`; the collection may change later."""
        self._own = own
        self._context = context

    @property
    def user(self) -> str:
        """The user of its own sessions that are in memory; empty: none. Raises CommandError if they have several."""
        users = sorted({session.ledger.row.user for session in self._own_sessions()})
        if len(users) > 1:
            named = ", ".join(user or "none" for user in users)
            sentence = (
                f"this program works for sessions of several users ({named}), so it cannot create any for one of them"
            )
            raise CommandError(Code.FORBIDDEN, f"{sentence} (rule: a session has one user); use your own terminal")
        return users[0] if users else ""

    def sees(self, session: str) -> bool:
        """Return whether the connection may see this session."""
        return session in self._own

    def concerns(self, event: Event) -> bool:
        """Return whether it may see an event of a topic, by the event's session or else its working directory."""
        cwd: str | None = getattr(event, "cwd", None)
        return self.sees(event.session) if event.session is not None else self._works_in(cwd)

    @abstractmethod
    def opened(self, session: str) -> None:
        """Record a session that it has opened after `admit` allowed it."""

    @abstractmethod
    def check(self, role: Role, what: str) -> None:
        """Raise CommandError if it may not use this role; `what` names the purpose in the message."""

    @abstractmethod
    def admit(self, command: CommandSpec, params: Frozen) -> Frozen:
        """Return the parameters that may be executed, possibly restricted; raises CommandError if none may."""

    # --- for subclasses -------------------------------------------------------------------------------------------

    def _own_sessions(self) -> list[Session]:
        return [session for session in self._context.manager.loaded if session.id in self._own]

    def _works_in(self, cwd: str | None) -> bool:
        return cwd is not None and any(session.ledger.row.cwd == cwd for session in self._own_sessions())
