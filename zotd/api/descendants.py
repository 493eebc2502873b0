"""What a program may do that descends from the daemon: a tool's command, an extension, or what these start.

| it may | of |
|---|---|
| read, and reload or tap extensions | the session that it was started for |
| read and submit | ephemeral sessions that it has opened on this connection, if the configuration permits opening them |
| approve, administer, see other sessions | nothing |

Otherwise the model could approve its own calls by running `zotctl`. This prevents accidents, not attacks: a program of
this user can get the rights of its user in other ways (`docs/durability.md`, Who may decide).
"""

import logging
from collections.abc import Collection

import msgspec

from zotd.api.confinement import ABOUT_NONE, Confinement
from zotd.api.context import DaemonContext
from zotd.core.permissions import MODES, WORKSPACE, narrowest
from zotd.sessions.session_limits import has_quota
from zotd.wire.api import Attach, CommandSpec, Fork, Role, SessionConfigure, SessionCreate
from zotd.wire.base import Frozen
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import TRUST

log = logging.getLogger(__name__)

ROLE = Role.SUBMIT
"""The highest role of a descendant."""

FOR_PEOPLE = frozenset({"presence.update", "push.subscribe", "push.unsubscribe", "session.plan_edit"})
"""Commands that need a low role but are refused: a program that reports a present user would suppress notifications, and so would one
that ends the subscription of a browser; one that subscribes would be told of all sessions. An edit of the plan counts as a person's."""

OWN_EXTENSIONS = frozenset({"ext.reload", "ext.tap"})
"""Commands that an agent needs to develop an extension; the extensions run anyway."""


class Descendant(Confinement):
    """The restrictions of a descendant's connection."""

    checks_modes = True

    def __init__(self, own: Collection[str], context: DaemonContext, peer: str) -> None:
        """`own` has the ids of the sessions that the program was started for, and may change. `peer` is for the log."""
        super().__init__(own, context)
        self._peer = peer
        self._opened: set[str] = set()

    def sees(self, session: str) -> bool:
        """Whether it may see this session: one that it was started for, or that it has opened."""
        return super().sees(session) or session in self._opened

    def opened(self, session: str) -> None:
        """Record a session that it has opened."""
        self._opened.add(session)

    def check(self, role: Role, what: str) -> None:
        """Raise CommandError if this role, or the command `what`, is not allowed for descendants."""
        if role > ROLE or what in FOR_PEOPLE:
            log.warning("%s was refused: %s descends from this daemon", what, self._peer)
            sentence = "is not allowed for programs started by zotd (rule: descendants never decide)"
            raise _forbidden(f"{what} {sentence}; run it in your own terminal")

    def admit(self, command: CommandSpec, params: Frozen) -> Frozen:
        """Return the parameters with the restrictions applied; raises CommandError if the command is not allowed."""
        self.check(command.role, command.name)
        if isinstance(params, SessionCreate):
            return self._creation(params)
        session: str | None = getattr(params, "session", None)
        if not session and command.name in ABOUT_NONE:
            return params
        if not (self.sees(session) if session else self._works_in(getattr(params, "cwd", None))):
            raise self._sees_no_other()
        if session in self._opened:
            return self._change(params)
        if command.role >= Role.SUBMIT and command.name not in OWN_EXTENSIONS:
            sentence = "would change the session that runs this program (rule: descendants only read their own session)"
            raise _forbidden(f"{command.name} {sentence}; an extension can use `submit`, a user a terminal")
        # Attaching must not replace the environment of the session that runs this program.
        return msgspec.structs.replace(params, env=None) if isinstance(params, Attach) else params

    # --- inside -----------------------------------------------------------------------------------------------

    def _creation(self, params: SessionCreate) -> SessionCreate:
        if self._context.manager.config.value.nested != "submit":
            sentence = "a program started by zotd cannot create sessions (rule: descendants only read their own)"
            raise _forbidden(f'{sentence}; nested = "submit" in the configuration allows ephemeral ones')
        own = self._own_sessions()
        if not own:
            raise self._sees_no_other()
        if any(session.ephemeral and session not in self._context.opened_by_people for session in own):
            sentence = "a program of a nested session cannot create sessions (rule: one level deep)"
            raise _forbidden(f"{sentence}; use the existing session")
        if WORKSPACE in self._modes():
            sentence = "a program of a session in the mode workspace cannot create sessions"
            raise _forbidden(f"{sentence} (rule: what a jail refuses, no other session does); use your own terminal")
        if has_quota(self._context.manager.config.value, self.user):
            sentence = f"a program of a session of {self.user} cannot create sessions, because this user has a quota"
            raise _forbidden(
                f"{sentence} (rule: nested sessions are not stored, so not counted); use your own terminal"
            )
        if not params.ephemeral:
            sentence = "a program started by zotd can only create ephemeral sessions"
            raise _forbidden(f"{sentence} (rule: nested sessions are not stored); set `ephemeral`: zot --no-session")
        self._check_mode(params.mode)
        mode = params.mode or narrowest(self._context.manager.config.value.approval.mode, *self._modes())
        return msgspec.structs.replace(params, mode=mode, env=_without_trust(params.env))

    def _change(self, params: Frozen) -> Frozen:
        """Restrict a command about a session that it has opened."""
        if isinstance(params, Fork):
            raise _forbidden(
                "session.fork creates a stored session (rule: nested sessions are not stored); create another one"
            )
        if isinstance(params, SessionConfigure):
            self._check_mode(params.mode)
        if isinstance(params, Attach | SessionConfigure):
            return msgspec.structs.replace(params, env=_without_trust(params.env))
        return params

    def _check_mode(self, mode: str | None) -> None:
        """Raise CommandError if the mode permits more than that of the sessions that the program works for."""
        if mode is not None and narrowest(mode, *self._modes()) != mode:
            sentence = "permits more than the session that runs this program does (rule: descendants never decide)"
            raise _forbidden(f"the mode {mode} {sentence}; leave it out")

    def _modes(self) -> list[str]:
        """Return the modes of its own sessions; the most restrictive mode if they have ended."""
        return [session.ledger.row.settings.mode for session in self._own_sessions()] or [MODES[-1]]

    def _sees_no_other(self) -> CommandError:
        own = ", ".join(sorted(self._own))
        what = (
            f"was started for {own} and cannot see other sessions"
            if own
            else "belongs to no session and cannot see any"
        )
        return _forbidden(f"this program was started by zotd: it {what} (rule: descendants see their own session)")


def _without_trust(env: dict[str, str] | None) -> dict[str, str] | None:
    """Remove the variable that trusts a workspace, which only a person may do."""
    return None if env is None else {name: value for name, value in env.items() if name != TRUST}


def _forbidden(sentence: str) -> CommandError:
    return CommandError(Code.FORBIDDEN, sentence)
