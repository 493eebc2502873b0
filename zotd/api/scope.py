"""What a token may do that is for some sessions only: what its role allows, there and nowhere else.

It opens no session, for that would be another one, and a copy of one of its own (`session.fork`) would be, too. What
concerns all sessions, or the daemon, it neither sees nor changes, whatever its role is; nor the log and the frames of an
extension, whose process serves other sessions, too.
"""

from collections.abc import Collection

from zotd.api.confinement import ABOUT_NONE, Confinement
from zotd.api.context import DaemonContext
from zotd.wire.api import Approve, CommandSpec, Fork, Role
from zotd.wire.base import Frozen
from zotd.wire.errors import Code, CommandError

SHARED = frozenset({"ext.logs", "ext.tap"})
"""They show what an extension says, which serves other sessions, too."""


class TokenScope(Confinement):
    """The bounds of a connection that came in with such a token."""

    checks_modes = False

    def __init__(self, sessions: Collection[str], context: DaemonContext, name: str) -> None:
        """`sessions`: their ids. `name`: of the token, for the person who reads why something is refused."""
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
    """Whether a command about a session is about nothing else."""
    if isinstance(params, Fork) or command.name in SHARED or getattr(params, "cwd", None) is not None:
        return False
    if isinstance(params, Approve) and params.scope == "always":  # a rule for all sessions
        return False
    return command.role < Role.ADMIN or command.name == "session.delete"
