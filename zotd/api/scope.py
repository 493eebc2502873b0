"""Restrictions of a token that is limited to some sessions: it has its role's rights there, and none elsewhere.

It cannot create a session, nor copy one of its own (`session.fork`), because the result would be another session. It
can neither see nor change anything about all sessions or the daemon, whatever its role. It gets no log and no frames of
an extension either, because an extension may serve other sessions as well.
"""

from collections.abc import Collection

from zotd.api.confinement import ABOUT_NONE, Confinement
from zotd.api.context import DaemonContext
from zotd.wire.api import Approve, CommandSpec, Fork, Role
from zotd.wire.base import Frozen
from zotd.wire.errors import Code, CommandError

SHARED = frozenset({"ext.logs", "ext.tap"})
"""Commands that show output of an extension, which may be about other sessions."""


class TokenScope(Confinement):
    """The restrictions of a connection with such a token."""

    checks_modes = False

    def __init__(self, sessions: Collection[str], context: DaemonContext, name: str) -> None:
        """`sessions` are ids; `name` is the token's name, for error messages."""
        super().__init__(frozenset(sessions), context)
        self._name = name

    def opened(self, session: str) -> None:
        """Do nothing: `admit` lets no such connection open a session."""

    def check(self, role: Role, what: str) -> None:
        """Do nothing: the token itself limits the role."""

    def admit(self, command: CommandSpec, params: Frozen) -> Frozen:
        """Return the parameters, or raise CommandError if the command concerns more than the token's sessions."""
        session: str | None = getattr(params, "session", None)
        if not session and command.name in ABOUT_NONE:
            return params
        if not (session and self.sees(session) and _concerns_it_alone(command, params)):
            sentence = f'the token "{self._name}" is limited to {", ".join(sorted(self._own))}'
            raise CommandError(Code.FORBIDDEN, f"{command.name}: {sentence}; use another token")
        return params


def _concerns_it_alone(command: CommandSpec, params: Frozen) -> bool:
    """Whether a command about one session affects nothing else."""
    if isinstance(params, Fork) or command.name in SHARED or getattr(params, "cwd", None) is not None:
        return False
    if isinstance(params, Approve) and params.scope == "always":  # a rule for all sessions
        return False
    return command.role < Role.ADMIN or command.name == "session.delete"
