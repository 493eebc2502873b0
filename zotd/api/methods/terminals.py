"""Commands of clients that are editors: terminals that they have."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import connection_of, session_of
from zotd.wire import api, events
from zotd.wire.base import encode


async def offer(call: Invocation, params: api.TerminalsOffer) -> None:
    """Have commands of the session run in terminals of the client, as long as its connection lasts."""
    session, connection = await session_of(call, params.session), connection_of(call)
    if not params.offered:
        session.editors.terminals.withdraw(connection.id)
        return

    def send(request: events.TerminalRequest) -> None:
        connection.write(encode(request) + b"\n")

    session.editors.terminals.offer(connection.id, send)
    connection.at_end(lambda: session.editors.terminals.withdraw(connection.id))


async def answer(call: Invocation, params: api.TerminalAnswer) -> None:
    """Take the answer to a `terminal_request`."""
    session = await session_of(call, params.session)
    session.editors.terminals.answer(connection_of(call).id, params)
