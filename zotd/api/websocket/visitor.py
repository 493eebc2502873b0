"""A network connection from its first byte on: HTTP, parsed by aiohttp, until it becomes a WebSocket.

A visitor has 10 s in total to present a token, and waits in a lobby of bounded size. If the lobby is full, the visitor
that has waited longest is disconnected, after those with a wrong token that wait for their refusal. Idle or failing
connections therefore cannot keep valid clients out.
"""

import asyncio
import logging
import socket
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from zotd.api.websocket.carrier import FrameCarrier
from zotd.api.websocket.frames import CloseCode
from zotd.api.websocket.throttle import source_of

HELLO_S = 10.0
"""Time from accepting a connection to a hello with a token, in seconds; the handshakes take four round trips."""

MAX_VISITORS = 128
"""Maximum number of visitors without a token; each takes 20 kB, with TLS 280 kB. A client authenticates within
milliseconds, so it is only displaced if this many others arrive in that time."""

SPARE_S = 90.0
"""How long another daemon of the fleet may keep a connection for a client that comes later; it ends it sooner itself."""

MAX_SPARES = 32
"""Most connections of that kind. Further daemons connect when they have a client."""

QUIET = logging.getLogger(f"{__name__}.http")
"""Silences aiohttp's own log messages, which quote unknown clients."""
QUIET.setLevel(logging.CRITICAL + 1)

Errors = Callable[[int], web.Response]
"""Returns the response to malformed HTTP, by its status."""


class Guest:
    """A visitor's place in the lobby."""

    def __init__(self, peer: socket.socket, lobby: "Lobby") -> None:
        """Use `Lobby.enter` instead."""
        self.source = source_of(str(peer.getpeername()[0]))
        """Address of the visitor, for the log and the throttle."""
        self.wire: FrameCarrier | None = None
        """Set after the upgrade to WebSocket."""
        self._peer = peer
        self._lobby = lobby
        self._timer = asyncio.get_running_loop().call_later(HELLO_S, self.dismiss)

    def dismiss(self) -> None:
        """Disconnect the visitor because its time is over."""
        self.leave()
        if self.wire is None:
            self._hang_up()
        else:
            self.wire.leave(CloseCode.UNAUTHORIZED)

    def give_way(self) -> None:
        """Disconnect at once to make room; waiting for the client to read a close code would occupy a descriptor."""
        self.dismiss()
        self._hang_up()

    def yield_first(self) -> None:
        """Make this the next one to be displaced, because its token is wrong."""
        self._lobby.put_first(self)

    def wait_for_client(self) -> bool:
        """Let another daemon of the fleet wait until it has a client; False, and nothing changes, if too many do."""
        if not self._lobby.make_spare(self):
            return False
        self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(SPARE_S, self.dismiss)
        return True

    def leave(self) -> None:
        """Give up the place in the lobby; may be called again."""
        self._timer.cancel()
        self._lobby.forget(self)

    def _hang_up(self) -> None:
        with suppress(OSError):  # the peer has disconnected already
            self._peer.shutdown(socket.SHUT_RDWR)  # ends both TLS and HTTP, whichever reads from the socket


class Lobby:
    """Visitors without a valid token, in the order in which they are displaced; and daemons of the fleet without a client."""

    def __init__(self) -> None:
        self._guests: OrderedDict[Guest, None] = OrderedDict()
        self._spares: set[Guest] = set()  # strangers cannot displace them

    def enter(self, peer: socket.socket) -> Guest:
        """Add a new visitor; raises OSError if it has disconnected already."""
        guest = Guest(peer, self)
        if len(self._guests) >= MAX_VISITORS:
            next(iter(self._guests)).give_way()
        self._guests[guest] = None
        return guest

    def put_first(self, guest: Guest) -> None:
        """Move a visitor to the front; does nothing if it has left."""
        if guest in self._guests:
            self._guests.move_to_end(guest, last=False)

    def make_spare(self, guest: Guest) -> bool:
        """Keep a visitor that has the fleet key apart from strangers; False if too many are."""
        if guest not in self._spares and len(self._spares) >= MAX_SPARES:
            return False
        self._guests.pop(guest, None)
        self._spares.add(guest)
        return True

    def forget(self, guest: Guest) -> None:
        """Remove a visitor."""
        self._guests.pop(guest, None)
        self._spares.discard(guest)

    def clear(self) -> None:
        """Disconnect all visitors."""
        for guest in [*self._guests, *self._spares]:
            guest.dismiss()


class Visitor(web.RequestHandler):
    """aiohttp's protocol of a connection; after the upgrade it passes everything to its `FrameCarrier`."""

    def __init__(self, http: web.Server, guest: Guest, *, errors: Errors, gone: Callable[["Visitor"], None]) -> None:
        """`gone` is called when the connection has ended."""
        super().__init__(http, loop=asyncio.get_running_loop(), logger=QUIET, access_log=QUIET)
        self.guest = guest
        self._errors = errors
        self._gone = gone

    def become(self, wire: FrameCarrier) -> None:
        """Pass all further bytes to `wire`; the upgrade has been answered."""
        self.guest.wire = wire
        # aiohttp's annotation names one of its own classes, but only `feed_data` and `feed_eof` are called.
        self.set_parser(wire)  # type: ignore[arg-type]

    def pause_writing(self) -> None:
        """Queue output: the transport's buffer is full."""
        super().pause_writing()
        if self.guest.wire is not None:
            self.guest.wire.paused()

    def resume_writing(self) -> None:
        """Send queued output: the transport's buffer has room."""
        super().resume_writing()
        if self.guest.wire is not None:
            self.guest.wire.resumed()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the visitor: the connection has ended."""
        super().connection_lost(exc)
        self.guest.leave()
        if self.guest.wire is not None:
            self.guest.wire.lost()
        self._gone(self)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer malformed HTTP without quoting it and without naming the server software."""
        del request, exc, message
        return self._errors(status)
