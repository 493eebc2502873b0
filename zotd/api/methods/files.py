"""Commands of clients that are editors: files that they have open."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import connection_of, session_of
from zotd.wire import api, events
from zotd.wire.base import encode


async def offer(call: Invocation, params: api.FilesOffer) -> None:
    """Have files of the session read and written through the client, as long as its connection lasts."""
    session, connection = await session_of(call, params.session), connection_of(call)
    if not (params.read or params.write):
        session.editors.files.withdraw(connection.id)
        return

    def send(request: events.FileRequest) -> None:
        connection.write(encode(request) + b"\n")

    session.editors.files.offer(connection.id, send, reads=params.read, writes=params.write)
    connection.at_end(lambda: session.editors.files.withdraw(connection.id))


async def answer(call: Invocation, params: api.FileAnswer) -> None:
    """Take the answer to a `file_request`."""
    session = await session_of(call, params.session)
    session.editors.files.answer(connection_of(call).id, params)
