"""What handlers of several nouns need."""

import msgspec

from zotd.api.connection import ServerConnection
from zotd.api.dispatch import Invocation
from zotd.core.ports import NAME_CHARS
from zotd.core.records import Settings
from zotd.sessions.session import Session
from zotd.wire.api import Role
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment

ENVELOPE_BYTES = 1024
"""Of a frame, besides what the answer holds."""

CURSOR_DIGITS = 18
"""Of a place in the database: what SQLite can count to."""

REASONING = ("off", "minimum", "low", "medium", "high", "xhigh", "max")


async def session_of(call: Invocation, session_id: str) -> Session:
    """The session that a command is about: the one it names, or the only one of `zot rpc`."""
    if call.door.stdio:
        return call.manager.loaded[0]
    return await call.manager.get(named(session_id))


def checked_name(name: str) -> str:
    """A session's name as it is kept; raises CommandError for one that no list could show."""
    kept = name.strip()
    if not kept or len(kept) > NAME_CHARS:
        raise CommandError(Code.BAD_REQUEST, f"a name has 1 to {NAME_CHARS} characters")
    return kept


def named(session_id: str) -> str:
    """The id; raises CommandError when the command came without one."""
    if not session_id:
        raise CommandError(Code.BAD_REQUEST, "the field `session` is missing; session.list names the sessions")
    return session_id


async def loaded(call: Invocation, session_id: str) -> Session:
    """The same, with its transcript in memory."""
    session = await session_of(call, session_id)
    await session.load()
    return session


def connection_of(call: Invocation) -> ServerConnection:
    """The connection of a command that only the daemon has."""
    assert isinstance(call.door, ServerConnection)
    return call.door


def role_named(name: str) -> Role:
    """The role; raises CommandError for a word that is none."""
    try:
        return Role[name.upper()]
    except KeyError as error:
        raise CommandError(
            Code.BAD_REQUEST, f'unknown role "{name}"; there are read, submit, approve, admin'
        ) from error


async def wait_for_room(call: Invocation) -> None:
    """Wait until the client has room for a long answer; on stdio, where nobody is cut, not at all."""
    if isinstance(call.door, ServerConnection):
        await call.door.room()


def place_of(cursor: str | None, command: str) -> int | None:
    """The place that a cursor of `command` stands for; raises CommandError for one that it cannot have given."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= CURSOR_DIGITS):
        raise CommandError(Code.BAD_REQUEST, f"the cursor was not returned by {command}")
    return int(cursor)


def check_reasoning(level: str) -> None:
    """Raise CommandError for a level that does not exist."""
    if level not in REASONING:
        raise CommandError(Code.BAD_REQUEST, f'unknown reasoning "{level}"; there are {" ".join(REASONING)}')


def switched(session: Session, provider: str, model: str) -> tuple[Settings, Environment]:
    """Settings and environment with another model; another vendor gets neither the URL nor the key of the old one."""
    old, environment = session.ledger.row.settings, session.environment
    if provider == old.provider:
        return msgspec.structs.replace(old, model=model), environment
    settings = msgspec.structs.replace(old, provider=provider, model=model, base_url=None, own_key=False)
    return settings, environment.without_own_key()
