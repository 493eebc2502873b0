"""Commands about the clients of a session and their users."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import connection_of, session_of
from zotd.api.presence import Presences
from zotd.wire import api
from zotd.wire.errors import Code, CommandError


async def listing(presences: Presences, call: Invocation, params: api.OfSession) -> api.PresenceList:
    """List the attached clients."""
    session = await session_of(call, params.session)
    return api.PresenceList(presences.of(session.id), you=connection_of(call).id)


async def update(presences: Presences, call: Invocation, params: api.PresenceUpdate) -> None:
    """Record whether a user is looking at this client."""
    connection = connection_of(call)
    if params.focused and connection.role < api.Role.SUBMIT:
        sentence = (
            "focused suppresses notifications for other clients, which requires the role submit; ask for it in hello"
        )
        raise CommandError(Code.FORBIDDEN, sentence)
    session = await session_of(call, params.session)
    if not presences.update(session, connection.id, focused=params.focused, typing=params.typing):
        raise CommandError(Code.CONFLICT, f"this client is not attached to {session.id}; attach first")
