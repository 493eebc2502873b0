"""A push service on loopback, as browsers use them: real HTTP, and the browsers whose part a test plays.

    async with PushServer() as service:                 # push.services = [service.url] in config.toml
        browser = service.browser()                     # browser.endpoint, .public, .auth: what it sends to the daemon
        await service.arrived(1)                        -> [PushedMessage(browser, {"text": ...}, urgency, ...)]

It refuses what a real one refuses: a request without a valid signature (RFC 8292), without TTL, or too long (RFC 8030).
Messages are decrypted with the browser's keys (RFC 8291), by code that shares nothing with that of the daemon.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, cast

from aiohttp import web
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from zotd.testing.http_site import listening

MOST_BYTES = 4096
"""Longest body that push services have to take."""

MOST_VALID_S = 24 * 3600
"""Longest validity of a signature."""

WAIT_S = 30.0
"""How long a test waits for a message."""

CLOSE_S = 1.0
"""How long open requests have to notice that the server closes."""

HEAD_BYTES = 86
"""Salt, record size, length of the key, and the key."""


@dataclass(frozen=True, slots=True, eq=False)
class Browser:
    """A subscription as a browser has it."""

    endpoint: str
    public: str
    auth: str
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class PushedMessage:
    """A message that was accepted."""

    browser: Browser
    content: Mapping[str, object]
    urgency: str
    topic: str
    ttl: int
    sender: str
    """The public key of the sender."""
    body: bytes
    """What the push service has seen."""


@dataclass(frozen=True, slots=True)
class PushRefusal:
    """The response to a request that fails."""

    status: int
    retry_after: str | None = None


class PushServer:
    """Serves while it is entered."""

    def __init__(self) -> None:
        self.url = ""
        self.messages: list[PushedMessage] = []
        self.refusals: deque[PushRefusal] = deque()
        """How the next requests fail, in order."""
        self.requests = 0
        """Number of requests, refused ones included."""
        self.faults: list[str] = []
        """Why requests were refused that a daemon should not have sent."""
        self._gone: set[Browser] = set()
        self._browsers: dict[str, Browser] = {}
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/push/{name}", self._push)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_S)
        self.url = await listening(self._runner)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def browser(self) -> Browser:
        """A new subscription."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = f"b{len(self._browsers) + 1}"
        browser = Browser(f"{self.url}/push/{name}", _text(_point(key.public_key())), _text(os.urandom(16)), key)
        self._browsers[name] = browser
        return browser

    def end(self, browser: Browser) -> None:
        """The browser has ended its subscription."""
        self._gone.add(browser)

    async def arrived(self, count: int) -> list[PushedMessage]:
        """Wait until so many messages were accepted; all of them."""
        await self._until(lambda: len(self.messages) >= count)
        return list(self.messages)

    async def asked(self, count: int) -> None:
        """Wait until there were so many requests."""
        await self._until(lambda: self.requests >= count)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(holds)

    async def _push(self, request: web.Request) -> web.Response:
        try:
            return await self._answer(request)
        finally:
            async with self._changed:
                self.requests += 1
                self._changed.notify_all()

    async def _answer(self, request: web.Request) -> web.Response:
        browser = self._browsers.get(request.match_info["name"])
        if browser is None:
            return web.Response(status=404)
        if browser in self._gone:
            return web.Response(status=410)
        if self.refusals:
            refusal = self.refusals.popleft()
            hints = {} if refusal.retry_after is None else {"Retry-After": refusal.retry_after}
            return web.Response(status=refusal.status, headers=hints)
        body = await request.read()
        try:
            sender = _sender(request.headers.get("Authorization", ""), self.url)
            ttl = int(request.headers["TTL"])
            content = _opened(body, browser, request.headers.get("Content-Encoding", ""))
        except (ValueError, KeyError, InvalidSignature, InvalidTag) as error:
            self.faults.append(repr(error))
            return web.Response(status=400)
        urgency, topic = request.headers.get("Urgency", "normal"), request.headers.get("Topic", "")
        self.messages.append(PushedMessage(browser, content, urgency, topic, ttl, sender, body))
        return web.Response(status=201, headers={"Location": f"{self.url}/message/{len(self.messages)}"})


def _sender(header: str, origin: str) -> str:
    """Return the public key of the one who has signed; raises ValueError or InvalidSignature."""
    scheme, _, rest = header.partition(" ")
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    signed, _, signature = fields["t"].rpartition(".")
    head, claims = (cast("dict[str, object]", json.loads(_bytes(part))) for part in signed.split("."))
    raw = _bytes(signature)
    if scheme != "vapid" or head.get("alg") != "ES256" or len(raw) != 64:
        raise ValueError("not a signature of VAPID")
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _bytes(fields["k"]))
    pair = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key.verify(pair, signed.encode(), ec.ECDSA(SHA256()))
    valid_s = float(cast("int", claims["exp"])) - time.time()
    if claims["aud"] != origin or not 0 < valid_s <= MOST_VALID_S:
        raise ValueError(f"the signature is for {claims['aud']} and {valid_s} s")
    if not str(claims.get("sub", "")).startswith(("mailto:", "https:")):
        raise ValueError("nobody is named")
    return fields["k"]


def _opened(body: bytes, browser: Browser, coding: str) -> Mapping[str, object]:
    """Decrypt a message; raises ValueError or InvalidTag."""
    if coding != "aes128gcm" or not HEAD_BYTES < len(body) <= MOST_BYTES:
        raise ValueError(f"{len(body)} bytes in {coding}")
    salt, sender, sealed = body[:16], body[21:HEAD_BYTES], body[HEAD_BYTES:]
    if int.from_bytes(body[16:20]) < len(sealed) or body[20] != len(sender):
        raise ValueError("the message has more than one record")
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
    shared = browser.key.exchange(ec.ECDH(), key)
    info = b"WebPush: info\0" + _point(browser.key.public_key()) + sender
    secret = _hkdf(_bytes(browser.auth), shared, info, 32)
    opening = AESGCM(_hkdf(salt, secret, b"Content-Encoding: aes128gcm\0", 16))
    text = opening.decrypt(_hkdf(salt, secret, b"Content-Encoding: nonce\0", 12), sealed, None).rstrip(b"\0")
    if text[-1:] != b"\x02":
        raise ValueError("the last record is not marked")
    return cast("dict[str, object]", json.loads(text[:-1]))


def _hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, for at most one block."""
    key = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(key, info + b"\x01", hashlib.sha256)[:length]


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
