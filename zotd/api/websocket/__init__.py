"""The WebSocket door: the frames of the Unix socket as text messages, for clients with a token (`docs/protocol.md`).

    bytes ─> visitor (aiohttp: HTTP) ─> site (gate, page, upgrade) ─> carrier (frames) ─> ServerConnection
                  │                                                      ▲
                lobby: 10 s to present a token                  server: admits, counts, disconnects

It is closed unless the configuration has an address to listen at. Only then is aiohttp imported, which takes 0.1 s.
"""

import logging
from typing import Protocol

from zotd.api.context import DaemonContext
from zotd.api.dispatch import Dispatcher
from zotd.api.websocket.listening import ListenError, Listening

log = logging.getLogger(__name__)


class OpenDoor(Protocol):
    """An open WebSocket door."""

    async def heartbeat(self) -> None:
        """Send heartbeats and check the tokens of connected clients; run it in a task."""
        ...

    async def close(self) -> None:
        """Stop accepting, close all connections, and wait briefly until they have ended."""
        ...


async def opened(listening: Listening, context: DaemonContext, dispatcher: Dispatcher) -> OpenDoor | None:
    """Open the door and register it in `context`; None if its address is in use, which `daemon.status` then reports."""
    try:
        bound = await listening.bind()
    except ListenError as error:
        context.warnings.append(str(error))
        log.warning("%s", error)
        return None
    tokens = context.doors.tokens
    assert tokens is not None
    from zotd.api.websocket.server import WebSocketServer  # noqa: PLC0415  (imports aiohttp, which most daemons do not need)

    server = WebSocketServer(context, dispatcher, tokens, listening=listening, bound=bound)
    log.info("the WebSocket door is open at %s", server.url)
    return server
