"""HTTP side of the WebSocket door: the page, `/healthz`, `/metrics`, and the upgrade of `/v1`.

Every request is checked in the same order: gate (Host, Origin, no query), method, path. No response reveals the
version, and none has a CORS header, so pages of other origins cannot read any.
"""

import base64
import binascii
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiohttp import HttpVersion11, web

from zotd.api import page
from zotd.api.context import DaemonContext
from zotd.api.websocket.gate import OriginCheck
from zotd.api.websocket.throttle import Throttle
from zotd.store.tokens import Token, TokenStore
from zotd.wire import exposition
from zotd.wire.version import WEBSOCKET_PATH

log = logging.getLogger(__name__)

SECURITY: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "zotd",
}
"""Headers of every response, unless the page sets stricter ones."""

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""Constant of the handshake (RFC 6455, 1.3)."""

_KEY_BYTES = 16

Upgrade = Callable[[web.BaseRequest, web.StreamResponse], Awaitable[None]]
"""Performs an upgrade with the given response; returns when the connection has ended."""


@dataclass(frozen=True, slots=True)
class AnonymousVisitor:
    """A client that has not presented a valid token."""

    delay_s: float
    """Delay before the refusal in seconds; not 0 if its address has sent too many wrong tokens."""


class Site:
    """Answers HTTP requests."""

    def __init__(
        self, context: DaemonContext, tokens: TokenStore, gate: OriginCheck, *, throttle: Throttle, upgrade: Upgrade
    ) -> None:
        self._context = context
        self._tokens = tokens
        self._gate = gate
        self._throttle = throttle
        self._upgrade = upgrade

    async def answer(self, request: web.BaseRequest, source: str) -> web.StreamResponse:
        """Return the response to a request from `source`; the connection is closed afterwards."""
        try:
            return await self._answer(request, source)
        except ConnectionError:  # the client has disconnected; aiohttp handles that
            raise
        except Exception:  # a bug must affect this request only
            log.exception("a request failed")
            return plain(500, "internal error; see the log of zotd")

    async def _answer(self, request: web.BaseRequest, source: str) -> web.StreamResponse:
        hosts, origins = request.headers.getall("Host", []), request.headers.getall("Origin", [])
        refusal = self._gate.refusal(request.raw_path, hosts, origins)
        if refusal is not None:
            log.warning("a request from %s was refused: %s", source, refusal.sentence)
            return plain(refusal.status, refusal.sentence)
        if request.method != "GET":
            return plain(405, "only GET is allowed", Allow="GET")
        if request.raw_path == WEBSOCKET_PATH:
            return await self._websocket(request)
        if request.raw_path == "/healthz":
            return plain(503, "stopping") if self._context.stopping else plain(200, "ok")
        if request.raw_path == "/metrics":
            return await self._metrics(request, source)
        if request.raw_path in page.FILES:
            kind, body = page.FILES[request.raw_path]
            return _response(200, body, kind, page.HEADERS)
        return plain(404, "not found")

    async def _websocket(self, request: web.BaseRequest) -> web.StreamResponse:
        if not _asks_for_websocket(request):
            return plain(426, "this path requires a WebSocket", Upgrade="websocket", Connection="Upgrade")
        keys = request.headers.getall("Sec-WebSocket-Key", [])
        if request.headers.get("Sec-WebSocket-Version") != "13" or len(keys) != 1 or not _is_key(keys[0]):
            return plain(400, "only version 13 of WebSocket is supported", **{"Sec-WebSocket-Version": "13"})
        accept = base64.b64encode(hashlib.sha1(f"{keys[0]}{_GUID}".encode(), usedforsecurity=False).digest()).decode()
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept, "Server": "zotd"}
        response = web.StreamResponse(status=101, headers=headers)
        response.force_close()
        await self._upgrade(request, response)
        return response

    async def _metrics(self, request: web.BaseRequest, source: str) -> web.StreamResponse:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        found = self.admitted(given.strip() if scheme.lower() == "bearer" else None, source)
        if isinstance(found, AnonymousVisitor):
            if found.delay_s:  # refused with 429 instead of waiting: a delayed response would occupy a task
                retry = {"Retry-After": f"{found.delay_s:.0f}"}
                return plain(429, "too many wrong tokens from this address; try again with a valid one", **retry)
            return plain(401, "a token is required", **{"WWW-Authenticate": "Bearer"})
        if found[1].sessions:
            return plain(403, "this token is limited to some sessions")
        return _response(200, exposition.exposition(await self._context.metrics()), exposition.CONTENT_TYPE, {})

    def admitted(self, given: str | None, source: str) -> tuple[str, Token] | AnonymousVisitor:
        """Return name and data of the token that a client from `source` presents, or an `AnonymousVisitor`.

        The token is checked before the throttle, so failures of others at the same address never affect a valid client.
        """
        found = None if given is None else self._tokens.admitted(given)
        if found is not None:
            return found
        # A single log statement for all failures, so that the log's rate limit applies to their sum.
        why = "no token was sent" if given is None else "no such token"
        log.warning("authentication failed for %s: %s", source, why)
        return AnonymousVisitor(self._throttle.failed(source))


def plain(status: int, sentence: str, **headers: str) -> web.Response:
    """Return a plain-text response."""
    return _response(status, f"{sentence}\n".encode(), "text/plain; charset=utf-8", headers)


def _response(status: int, body: bytes, kind: str, headers: Mapping[str, str]) -> web.Response:
    response = web.Response(status=status, body=body, headers={**SECURITY, **headers, "Content-Type": kind})
    response.force_close()  # one response per connection bounds how long an unknown client can occupy one
    return response


def _asks_for_websocket(request: web.BaseRequest) -> bool:
    wants = {word.strip().lower() for word in request.headers.get("Connection", "").split(",")}
    is_named = "upgrade" in wants and request.headers.get("Upgrade", "").lower() == "websocket"
    # A GET with a body could make a proxy and us disagree about where the first WebSocket frame begins.
    return is_named and request.version >= HttpVersion11 and not request.body_exists


def _is_key(key: str) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False
