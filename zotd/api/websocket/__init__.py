"""The WebSocket door: the frames of the Unix socket, as text messages, for whoever has a token (`docs/protocol.md`).

    bytes ─> visitor (aiohttp: HTTP) ─> site (gate, page, upgrade) ─> carrier (frames) ─> Connection
                  │                                                      ▲
                lobby: 10 s to show a token                    server: admits, counts, cuts

It is shut unless the configuration says where to listen. aiohttp, which takes 0.1 s to import, is not before that.
"""

import logging
from typing import Protocol

from zotd.api.context import DaemonContext
from zotd.api.dispatch import Dispatcher
from zotd.api.websocket.listening import ListenError, Listening

log = logging.getLogger(__name__)


class OpenDoor(Protocol):
    """A door that takes visitors in."""

    async def heartbeat(self) -> None:
        """What keeps its connections alive; run it in a task."""
        ...

    async def close(self) -> None:
        """Accept no more, tell everybody, and wait a moment until they are gone."""
        ...


async def opened(listening: Listening, context: DaemonContext, dispatcher: Dispatcher) -> OpenDoor | None:
    """The door, which `context` knows of from now on; None when its address is taken, which `status` then says."""
    try:
        bound = await listening.bind()
    except ListenError as error:
        context.warnings.append(str(error))
        log.warning("%s", error)
        return None
    tokens = context.doors.tokens
    assert tokens is not None
    from zotd.api.websocket.server import WebSocketServer  # noqa: PLC0415  (most daemons have no such door)

    server = WebSocketServer(context, dispatcher, tokens, listening=listening, bound=bound)
    log.info("the WebSocket door is open at %s", server.url)
    return server
