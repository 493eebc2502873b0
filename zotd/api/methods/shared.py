"""Functions for handlers in several modules."""

from zotd.api.connection import ServerConnection
from zotd.api.dispatch import Invocation
from zotd.core import permissions
from zotd.core.ports import NAME_CHARS
from zotd.core.records import Settings
from zotd.sessions.run_models import elsewhere
from zotd.sessions.session import Session
from zotd.wire.api import Role
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment

ENVELOPE_BYTES = 1024
"""Size of a frame's envelope around the data, estimated generously."""

CURSOR_DIGITS = 18
"""Largest position in the database: SQLite's largest integer."""

REASONING = ("off", "minimum", "low", "medium", "high", "xhigh", "max")


async def session_of(call: Invocation, session_id: str) -> Session:
    """Return the session that a command names, or the only one of `zot rpc`."""
    if call.door.stdio:
        return call.manager.loaded[0]
    return await call.manager.get(named(session_id))


def checked_name(name: str) -> str:
    """Return a session's name in its stored form; raises CommandError for one that lists cannot display."""
    kept = name.strip()
    if not kept or len(kept) > NAME_CHARS:
        raise CommandError(Code.BAD_REQUEST, f"a name has 1 to {NAME_CHARS} characters")
    return kept


def named(session_id: str) -> str:
    """Return the id; raises CommandError if the command has none."""
    if not session_id:
        raise CommandError(Code.BAD_REQUEST, "the field `session` is missing; session.list names the sessions")
    return session_id


async def loaded(call: Invocation, session_id: str) -> Session:
    """Like `session_of`, but with the transcript in memory."""
    session = await session_of(call, session_id)
    await session.load()
    return session


def connection_of(call: Invocation) -> ServerConnection:
    """Return the connection of a command that exists only in the daemon."""
    assert isinstance(call.door, ServerConnection)
    return call.door


def role_named(name: str) -> Role:
    """Return the role with this name; raises CommandError if there is none."""
    try:
        return Role[name.upper()]
    except KeyError as error:
        raise CommandError(
            Code.BAD_REQUEST, f'unknown role "{name}"; there are read, submit, approve, admin'
        ) from error


async def wait_for_room(call: Invocation) -> None:
    """Wait until the client has room for a long response; returns at once on stdio, where no client is disconnected."""
    if isinstance(call.door, ServerConnection):
        await call.door.room()


def place_of(cursor: str | None, command: str) -> int | None:
    """Return the position that a cursor of `command` stands for; raises CommandError if it is invalid."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= CURSOR_DIGITS):
        raise CommandError(Code.BAD_REQUEST, f"the cursor was not returned by {command}")
    return int(cursor)


def check_reasoning(level: str) -> None:
    """Raise CommandError for an unknown reasoning level."""
    if level not in REASONING:
        raise CommandError(Code.BAD_REQUEST, f'unknown reasoning "{level}"; there are {" ".join(REASONING)}')


def check_may_set(call: Invocation, mode: str, before: str) -> None:
    """Raise CommandError if the mode permits more than `before` and the client may not approve calls."""
    bounds = call.door.confinement
    is_decider = call.door.role >= Role.APPROVE or (bounds is not None and bounds.checks_modes)
    if not is_decider and permissions.narrowest(mode, before) != mode:
        sentence = f"the mode {mode} allows more than {before}, which requires the role approve; ask for it in hello"
        raise CommandError(Code.FORBIDDEN, sentence)


def switched(session: Session, provider: str, model: str) -> tuple[Settings, Environment]:
    """Return settings and environment for another model; another vendor does not get the URL or key of the old one."""
    return elsewhere(session.ledger.row.settings, session.environment, provider, model)
