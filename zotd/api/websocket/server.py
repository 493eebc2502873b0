"""The open WebSocket door: accepts visitors, and creates connections for those that present a valid token."""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from zotd.api.connection import ForwardedClient, ServerConnection, UsedToken
from zotd.api.context import MAX_CONNECTIONS, DaemonContext
from zotd.api.dispatch import Dispatcher
from zotd.api.door import Door
from zotd.api.outbox import FAREWELL_S
from zotd.api.scope import TokenScope
from zotd.api.unix import HEARTBEAT_S
from zotd.api.websocket.carrier import FrameCarrier
from zotd.api.websocket.frames import CloseCode
from zotd.api.websocket.gate import OriginCheck
from zotd.api.websocket.listening import Listening
from zotd.api.websocket.site import AnonymousVisitor, Site, plain
from zotd.api.websocket.throttle import Throttle
from zotd.api.websocket.visitor import HELLO_S, Guest, Lobby, Visitor
from zotd.core.ports import StorageError
from zotd.store.tokens import Token, TokenStore
from zotd.wire.api import Envelope, FleetProof, Hello, HelloResult, Response
from zotd.wire.base import BadFrameError, decode, encode
from zotd.wire.version import PROTOCOL, VERSION

log = logging.getLogger(__name__)

RESERVED = 8
"""Number of connections reserved for the Unix socket, so that the user can always administer the daemon."""

FLEET = "fleet"
"""Stands for the name of a token where another daemon speaks for its client."""

CLOSING_S = 4 * FAREWELL_S
"""Timeout for clients when the daemon stops, in seconds: they may read what was sent, then they are disconnected."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A client that has authenticated with a token."""

    wire: FrameCarrier
    name: str
    token: Token | None
    """None: another daemon, which has the fleet key."""


class WebSocketServer:
    """Accepts clients until it is closed."""

    def __init__(
        self,
        context: DaemonContext,
        dispatcher: Dispatcher,
        tokens: TokenStore,
        *,
        listening: Listening,
        bound: Sequence[socket.socket],
    ) -> None:
        """`bound` are the sockets of `listening`; `close` closes them."""
        port = bound[0].getsockname()[1]
        gate = OriginCheck.of(listening.settings, port)
        self._context = context
        self._dispatcher = dispatcher
        self._tokens = tokens
        self._tls: ssl.SSLContext | None = listening.tls
        self._site = Site(context, tokens, gate, throttle=Throttle(time.monotonic), upgrade=self._upgrade)
        self._http = web.Server(self._request)
        self._lobby = Lobby()
        self._visitors: set[Visitor] = set()
        self._empty = asyncio.Event()
        self._members: dict[ServerConnection, _Member] = {}
        self._bound = bound
        self._doors = [Door(listener, self._enter) for listener in bound]
        host = str(listening.settings.listen).rpartition(":")[0]
        self.url = f"{gate.scheme.replace('http', 'ws')}://{host}:{port}/v1"
        context.doors.websocket_opened(self.url, check_tokens=self.look)

    async def heartbeat(self) -> None:
        """Send heartbeats and check the tokens of connected clients; run it in a task."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            self.look()
            for member in list(self._members.values()):
                member.wire.beat()

    def look(self) -> None:
        """Disconnect clients whose token was revoked or has expired."""
        for connection, member in list(self._members.items()):
            if member.token is not None and not self._tokens.stands(member.name, member.token):
                member.wire.close_with(CloseCode.UNAUTHORIZED)
                connection.end(f'the token "{member.name}" is no longer valid')

    async def close(self) -> None:
        """Stop accepting, close all connections, and wait up to `CLOSING_S` until they have ended."""
        self._context.doors.websocket_closed()
        for door, listener in zip(self._doors, self._bound, strict=True):
            door.close()
            listener.close()
        self._lobby.clear()
        for connection in list(self._members):
            connection.end()
        try:
            async with asyncio.timeout(CLOSING_S):
                while self._visitors:
                    self._empty.clear()
                    await self._empty.wait()
        except TimeoutError:
            log.warning("%s connections were still open", len(self._visitors))
        await self._http.shutdown(CLOSING_S)

    # --- accepting ------------------------------------------------------------------------------------------------

    def _enter(self, peer: socket.socket) -> None:
        self._context.spawn("a visitor", self._receive(peer))

    async def _receive(self, peer: socket.socket) -> None:
        try:
            guest = self._lobby.enter(peer)
        except OSError:  # it has disconnected already
            peer.close()
            return
        visitor = Visitor(self._http, guest, errors=_malformed, gone=self._gone)
        limit_s = HELLO_S if self._tls else None
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: visitor, peer, ssl=self._tls, ssl_handshake_timeout=limit_s)
        except OSError as error:  # includes a failed TLS handshake
            log.debug("no TLS with %s: %s", guest.source, error)
            guest.leave()
            peer.close()
            return
        if visitor.transport is not None:
            self._visitors.add(visitor)

    def _gone(self, visitor: Visitor) -> None:
        self._visitors.discard(visitor)
        wire = visitor.guest.wire
        if wire is not None and wire.connection is not None:
            del self._members[wire.connection]
            self._context.went()
        self._empty.set()
        for door in self._doors:
            door.freed()

    async def _request(self, request: web.BaseRequest) -> web.StreamResponse:
        visitor = request.protocol
        assert isinstance(visitor, Visitor)
        return await self._site.answer(request, visitor.guest.source)

    async def _upgrade(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        visitor, network = request.protocol, request.transport
        assert isinstance(visitor, Visitor)
        await response.prepare(request)
        if network is None or visitor.transport is None:  # disconnected meanwhile
            return
        wire = FrameCarrier(network, admit=lambda wire, line: self._admit(visitor.guest, wire, line))
        visitor.become(wire)
        await wire.ended.wait()

    # --- authentication -------------------------------------------------------------------------------------------

    def _admit(self, guest: Guest, wire: FrameCarrier, line: bytes) -> ServerConnection | None:
        """Authenticate a client by its first message; returns its connection, or None if it was refused."""
        proof = self._proof(line)
        if proof is not None and proof.spare:
            self._keep(proof, guest, wire, line)
            return None
        found = None if proof is not None else self._site.admitted(_token(line), guest.source)
        if isinstance(found, AnonymousVisitor):
            guest.yield_first()
            wire.refuse(found.delay_s)
            return None
        if self._context.connections >= MAX_CONNECTIONS - RESERVED:
            log.warning(
                "refused a connection from %s: %s connections are open, which is the limit",
                guest.source,
                self._context.connections,
            )
            wire.leave(CloseCode.TRY_LATER)
            return None
        guest.leave()
        self._context.came()
        if proof is not None:
            return self._welcome_forwarded(proof, guest, wire)
        assert found is not None
        return self._welcome(guest, wire, *found)

    def _welcome(self, guest: Guest, wire: FrameCarrier, name: str, token: Token) -> ServerConnection:
        connection = ServerConnection(
            wire.carrier,
            context=self._context,
            dispatcher=self._dispatcher,
            peer=f"{guest.source} token:{name}",
            ceiling=token.ceiling,
            confinement=TokenScope(token.sessions, self._context, name) if token.sessions else None,
            admitted=UsedToken(name, token.digest, token.user),
        )
        self._members[connection] = _Member(wire, name, token)
        self._context.spawn("the use of a token", self._note_use(name))
        return connection

    def _welcome_forwarded(self, proof: FleetProof, guest: Guest, wire: FrameCarrier) -> ServerConnection:
        """Return the connection of another daemon's client, which has the role that it has there."""
        assert self._context.fleet is not None
        client = ForwardedClient(proof.connection, self._context.fleet.answer(proof), proof.account, proof.user)
        connection = ServerConnection(
            wire.carrier,
            context=self._context,
            dispatcher=self._dispatcher,
            peer=f"{guest.source} fleet:{client.id}",
            admitted=client,
        )
        self._members[connection] = _Member(wire, FLEET, None)
        return connection

    def _keep(self, proof: FleetProof, guest: Guest, wire: FrameCarrier, line: bytes) -> None:
        """Let another daemon wait for a client, which it introduces in another hello."""
        assert self._context.fleet is not None
        if not guest.wait_for_client():
            wire.leave(CloseCode.TRY_LATER)
            return
        answer = HelloResult(PROTOCOL, VERSION, proof=self._context.fleet.answer(proof), spare=True)
        response = Response("hello", success=True, id=decode(line, Envelope).id, data=answer)
        wire.carrier.write(encode(response) + b"\n")

    def _proof(self, line: bytes) -> FleetProof | None:
        """Return what another daemon of the fleet says of its client; None if the line is not its hello."""
        hello, fleet = _hello(line), self._context.fleet
        if hello is None or hello.fleet is None or fleet is None or not fleet.admits(hello.fleet):
            return None
        return hello.fleet

    async def _note_use(self, name: str) -> None:
        try:
            await asyncio.to_thread(self._tokens.use, name)
        except StorageError as error:  # only the time of the last use is lost
            log.warning("%s", error)


def _token(line: bytes) -> str | None:
    """Return the token of a hello; None if the line is no hello or has no token."""
    hello = _hello(line)
    return None if hello is None else hello.token


def _hello(line: bytes) -> Hello | None:
    try:
        return decode(line, Hello) if decode(line, Envelope).type == "hello" else None
    except BadFrameError:
        return None


def _malformed(status: int) -> web.Response:
    return plain(status, "malformed request")
