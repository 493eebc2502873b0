"""What the WebSocket door answers in HTTP: the page, `/healthz`, `/metrics`, and the upgrade of `/v1`.

Every request is looked at in the same order: the gate (Host, Origin, no query), the method, the path. Nothing here says
which version this is, and no answer lets a page of somebody else read it: there is no CORS header at all.
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
from zotd.api.websocket import figures
from zotd.api.websocket.gate import OriginCheck
from zotd.api.websocket.throttle import Throttle
from zotd.store.tokens import Token, TokenStore

log = logging.getLogger(__name__)

PATH = "/v1"
"""Of the WebSocket; another version of the protocol would have another one."""

SECURITY: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "zotd",
}
"""Of every answer, unless the page says more."""

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455, 1.3."""

_KEY_BYTES = 16

Upgrade = Callable[[web.BaseRequest, web.StreamResponse], Awaitable[None]]
"""Carries out an upgrade with this answer, and returns when the connection has ended."""


@dataclass(frozen=True, slots=True)
class AnonymousVisitor:
    """Somebody who has shown no token that counts."""

    delay_s: float
    """Before they may hear so; not 0 when too many wrong tokens came from there."""


class Site:
    """Answers requests."""

    def __init__(
        self, context: DaemonContext, tokens: TokenStore, gate: OriginCheck, *, throttle: Throttle, upgrade: Upgrade
    ) -> None:
        self._context = context
        self._tokens = tokens
        self._gate = gate
        self._throttle = throttle
        self._upgrade = upgrade

    async def answer(self, request: web.BaseRequest, source: str) -> web.StreamResponse:
        """The answer to one request from `source`, after which the connection is closed."""
        try:
            return await self._answer(request, source)
        except ConnectionError:  # gone meanwhile, which aiohttp takes note of
            raise
        except Exception:  # a fault of ours must cost this request only
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
        if request.raw_path == PATH:
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
            if found.delay_s:  # instead of waiting: each answer that waits would hold a task
                retry = {"Retry-After": f"{found.delay_s:.0f}"}
                return plain(429, "too many wrong tokens from this address; try again with a valid one", **retry)
            return plain(401, "a token is required", **{"WWW-Authenticate": "Bearer"})
        if found[1].sessions:
            return plain(403, "this token is limited to some sessions")
        return _response(200, figures.exposition(await self._context.metrics()), figures.CONTENT_TYPE, {})

    def admitted(self, given: str | None, source: str) -> tuple[str, Token] | AnonymousVisitor:
        """The name and the token that somebody from `source` has shown.

        The token decides before the throttle is asked: nobody is refused for the failures of others at the same address.
        """
        found = None if given is None else self._tokens.admitted(given)
        if found is not None:
            return found
        # One line in the sources for all of them: so the log's own bound on floods holds for the sum.
        why = "no token was sent" if given is None else "no such token"
        log.warning("authentication failed for %s: %s", source, why)
        return AnonymousVisitor(self._throttle.failed(source))


def plain(status: int, sentence: str, **headers: str) -> web.Response:
    """An answer in words."""
    return _response(status, f"{sentence}\n".encode(), "text/plain; charset=utf-8", headers)


def _response(status: int, body: bytes, kind: str, headers: Mapping[str, str]) -> web.Response:
    response = web.Response(status=status, body=body, headers={**SECURITY, **headers, "Content-Type": kind})
    response.force_close()  # a connection lives for one answer, which bounds how long a stranger holds one
    return response


def _asks_for_websocket(request: web.BaseRequest) -> bool:
    wants = {word.strip().lower() for word in request.headers.get("Connection", "").split(",")}
    is_named = "upgrade" in wants and request.headers.get("Upgrade", "").lower() == "websocket"
    # With a body, a proxy between us and the client could take other bytes for the first frame than we do.
    return is_named and request.version >= HttpVersion11 and not request.body_exists


def _is_key(key: str) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False
