"""A connection of the network from its first byte on: HTTP, as aiohttp reads it, until it becomes a WebSocket.

A visitor has 10 s to show a token, however it spends them, and waits in a lobby of bounded size: when that is full, the
one that has waited longest has to leave, after those that have shown a wrong token and wait to be refused. So whoever
opens connections and says nothing, or something wrong, keeps nobody out.
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
"""From the accepting to a hello with a token: TLS, the upgrade and the hello take four round trips."""

MAX_VISITORS = 128
"""Who has shown no token yet, 20 kB each, with TLS 280 kB. A client does so within milliseconds; as many would have to come in between."""

QUIET = logging.getLogger(f"{__name__}.http")
"""For aiohttp, which logs what strangers send: we have lines of our own, which hold nothing of that."""
QUIET.setLevel(logging.CRITICAL + 1)

Errors = Callable[[int], web.Response]
"""The answer to what was no HTTP, by its status."""


class Guest:
    """A place in the lobby."""

    def __init__(self, peer: socket.socket, lobby: "Lobby") -> None:
        """Use `Lobby.enter`."""
        self.source = source_of(str(peer.getpeername()[0]))
        """Where it comes from, for the log and the throttle."""
        self.wire: FrameCarrier | None = None
        """Once it is a WebSocket."""
        self._peer = peer
        self._lobby = lobby
        self._timer = asyncio.get_running_loop().call_later(HELLO_S, self.dismiss)

    def dismiss(self) -> None:
        """Its time is over."""
        self.leave()
        if self.wire is None:
            self._hang_up()
        else:
            self.wire.leave(CloseCode.UNAUTHORIZED)

    def give_way(self) -> None:
        """Its place is wanted now: the moment in which others may read why they go would cost a descriptor each."""
        self.dismiss()
        self._hang_up()

    def yield_first(self) -> None:
        """It will not come in: its place is the first that somebody else gets."""
        self._lobby.put_first(self)

    def leave(self) -> None:
        """It waits no longer: it is in, or gone. Harmless when it has left."""
        self._timer.cancel()
        self._lobby.forget(self)

    def _hang_up(self) -> None:
        with suppress(OSError):  # it has gone by itself
            self._peer.shutdown(socket.SHUT_RDWR)  # whatever reads from it, TLS or HTTP, ends by that


class Lobby:
    """Those who have shown no token that counts, in the order in which they have to leave when it is full."""

    def __init__(self) -> None:
        self._guests: OrderedDict[Guest, None] = OrderedDict()

    def enter(self, peer: socket.socket) -> Guest:
        """A place for somebody who has just come; OSError when it has gone already."""
        guest = Guest(peer, self)
        if len(self._guests) >= MAX_VISITORS:
            next(iter(self._guests)).give_way()
        self._guests[guest] = None
        return guest

    def put_first(self, guest: Guest) -> None:
        """It leaves before all others; harmless when it has left."""
        if guest in self._guests:
            self._guests.move_to_end(guest, last=False)

    def forget(self, guest: Guest) -> None:
        """It has left."""
        self._guests.pop(guest, None)

    def clear(self) -> None:
        """Dismiss everybody."""
        for guest in list(self._guests):
            guest.dismiss()


class Visitor(web.RequestHandler):
    """aiohttp's end of a connection, and after the upgrade the way to its `FrameCarrier`."""

    def __init__(self, http: web.Server, guest: Guest, *, errors: Errors, gone: Callable[["Visitor"], None]) -> None:
        """`gone` is called when the connection has ended."""
        super().__init__(http, loop=asyncio.get_running_loop(), logger=QUIET, access_log=QUIET)
        self.guest = guest
        self._errors = errors
        self._gone = gone

    def become(self, wire: FrameCarrier) -> None:
        """From here on the bytes are a WebSocket's; the upgrade has been answered."""
        self.guest.wire = wire
        # It wants an object that takes bytes, and names one of its own classes.
        self.set_parser(wire)  # type: ignore[arg-type]

    def pause_writing(self) -> None:
        """The network takes no more."""
        super().pause_writing()
        if self.guest.wire is not None:
            self.guest.wire.paused()

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        if self.guest.wire is not None:
            self.guest.wire.resumed()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client is gone."""
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
        """An answer that repeats nothing of what was no HTTP, nor says by what program it was read."""
        del request, exc, message
        return self._errors(status)
