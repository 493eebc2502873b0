"""What handlers of several nouns need."""

from zotd.api.connection import Connection
from zotd.api.dispatch import Call
from zotd.sessions.session import Session
from zotd.wire.errors import Code, CommandError

REASONING = ("off", "minimum", "low", "medium", "high", "xhigh", "max")


async def session_of(call: Call, session_id: str) -> Session:
    """The session that a command is about: the one it names, or the only one of `zot rpc`."""
    if call.door.stdio:
        return call.manager.loaded[0]
    return await call.manager.get(named(session_id))


def named(session_id: str) -> str:
    """The id; raises CommandError when the command came without one."""
    if not session_id:
        raise CommandError(Code.BAD_REQUEST, "the field `session` is missing; session.list names the sessions")
    return session_id


async def loaded(call: Call, session_id: str) -> Session:
    """The same, with its transcript in memory."""
    session = await session_of(call, session_id)
    await session.load()
    return session


def connection_of(call: Call) -> Connection:
    """The connection of a command that only the daemon has."""
    assert isinstance(call.door, Connection)
    return call.door


async def wait_for_room(call: Call) -> None:
    """Wait until the client has room for a long answer; on stdio, where nobody is cut, not at all."""
    if isinstance(call.door, Connection):
        await call.door.room()


def check_reasoning(level: str) -> None:
    """Raise CommandError for a level that does not exist."""
    if level not in REASONING:
        raise CommandError(Code.BAD_REQUEST, f'unknown reasoning "{level}"; there are {" ".join(REASONING)}')
