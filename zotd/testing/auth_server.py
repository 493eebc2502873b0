"""An authorization server that a test controls, over real HTTP: PKCE, device codes, rotating refresh tokens, revocation.

    async with AuthServer() as server:
        vendor = LOGINS["copilot"].at(server.url, None)

It has the paths of all vendors in `zotd.logins.vendors`, with the same behaviour behind them, and registers programs that
find it by its metadata (RFC 8414, RFC 7591).
"""

import asyncio
import base64
import hashlib
import secrets
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import web

from zotd.testing.http_site import listening

CLIENT_SECRET = "the secret of the program"  # noqa: S105
"""What a program that registers gets, if it gets one."""

BASIC = "Basic " + base64.b64encode(f"registered:{quote(CLIENT_SECRET)}".encode()).decode()
"""The same as a header."""

PENDING = "authorization_pending"


@dataclass
class Device:
    """A device code and what its user has done."""

    device_code: str
    user_code: str
    state: str = PENDING
    """`authorization_pending`, `granted`, or the error that the next poll gets."""
    polls: int = 0


@dataclass
class AuthorizationCode:
    """An authorization code."""

    redirect_uri: str
    challenge: str
    is_used: bool = False


@dataclass
class AuthServer:
    """Serves on loopback while it is entered."""

    lifetime_s: float = 3600.0
    """Of the tokens that it grants."""
    interval_s: float = 1.0
    """Between polls of a device code."""
    redirects: frozenset[str] | None = None
    """The redirect URIs that it allows; None: any on loopback."""
    registers: bool = True
    """Whether programs can register themselves."""
    client_auth: str = "none"
    """How programs that register have to send the secret that they get; `none`: they get none."""
    consent: str = "grant"
    """What the user does on the authorization page: `grant` or `deny`."""
    status: int = 200
    """Status of the next answers of the token endpoints if it is an error."""
    slow_downs: int = 0
    """How many of the next polls are answered with `slow_down`."""
    account: str = "octocat"
    subscribed: bool = True
    """Whether the account gets keys in exchange for tokens."""
    key_url: str | None = None
    """The base URL that comes with a key."""
    hold: asyncio.Event | None = None
    """Refreshes are answered when it is set."""
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has gone away while its refresh was held."""
    url: str = ""
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Path and parameters of what came in."""
    devices: dict[str, Device] = field(default_factory=dict)
    """By user code."""
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    refresh_tokens: set[str] = field(default_factory=set)
    """Those that are valid; each can be used once."""
    used_refresh_tokens: set[str] = field(default_factory=set)
    access_tokens: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    """Valid tokens for model requests that were exchanged for an access token."""
    refreshes: int = 0
    exchanges: int = 0
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    """Notified at each request."""
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        for path in ("/oauth/token", "/api/oauth/token", "/login/oauth/access_token"):
            app.router.add_post(path, self._token)
        for path in ("/api/oauth/device_authorization", "/login/device/code"):
            app.router.add_post(path, self._device)
        app.router.add_get("/oauth/authorize", self._authorize)
        app.router.add_post("/oauth/revoke", self._revoke)
        app.router.add_get("/.well-known/oauth-authorization-server", self._metadata)
        app.router.add_post("/oauth/register", self._register)
        app.router.add_get("/copilot_internal/v2/token", self._exchange)
        app.router.add_get("/user", self._user)
        app.router.add_post("/api/accounts/deviceauth/usercode", self._usercode)
        app.router.add_post("/api/accounts/deviceauth/token", self._entered)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)
        self.url = await listening(self._runner)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def enter(self, user_code: str, state: str = "granted") -> None:
        """Do what the user does with a device code: `granted`, `access_denied`, or let it expire: `expired_token`."""
        self.devices[user_code].state = state

    async def asked(self, path: str, count: int = 1) -> None:
        """Wait until `count` requests to a path have come in."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: sum(where == path for where, _ in self.requests) >= count)

    def accepts(self, authorization: str | None) -> bool:
        """Whether a model request with this `Authorization` may be answered."""
        return (authorization or "").removeprefix("Bearer ") in self.access_tokens | self.keys

    def revoke_all(self) -> None:
        """Accept no token any more."""
        for tokens in (self.access_tokens, self.refresh_tokens, self.keys):
            tokens.clear()

    async def _note(self, request: web.Request) -> dict[str, str]:
        if request.content_type == "application/json":
            params = msgspec.json.decode(await request.read(), type=dict[str, str])
        else:
            params = {name: str(value) for name, value in (await request.post()).items()} or dict(request.query)
        self.requests.append((request.path, params))
        async with self.arrived:
            self.arrived.notify_all()
        return params

    async def _authorize(self, request: web.Request) -> web.Response:
        params = await self._note(request)
        redirect_uri = params.get("redirect_uri", "")
        is_allowed = redirect_uri in self.redirects if self.redirects is not None else "://" in redirect_uri
        if params.get("response_type") != "code" or params.get("code_challenge_method") != "S256" or not is_allowed:
            return _error("invalid_request")
        found = {"state": params["state"], "error": "access_denied"}
        if self.consent == "grant":
            code = secrets.token_urlsafe(8)
            self.codes[code] = AuthorizationCode(redirect_uri, params["code_challenge"])
            found = {"state": params["state"], "code": code}
        return web.Response(status=302, headers={"Location": f"{redirect_uri}?{urlencode(found)}"})

    async def _metadata(self, _: web.Request) -> web.Response:
        paths = {"authorization": "authorize", "token": "token", "revocation": "revoke"}
        if self.registers:
            paths["registration"] = "register"
        found = {f"{name}_endpoint": f"{self.url}/oauth/{path}" for name, path in paths.items()}
        return web.json_response({"issuer": self.url, "response_types_supported": ["code"], **found})

    async def _register(self, request: web.Request) -> web.Response:
        wanted = msgspec.json.decode(await request.read())
        method = {"token_endpoint_auth_method": self.client_auth}
        secret = {} if self.client_auth == "none" else {"client_secret": CLIENT_SECRET}
        return web.json_response({**wanted, **method, **secret, "client_id": "registered"}, status=201)

    def _knows(self, request: web.Request, params: dict[str, str]) -> bool:
        """Whether a program has sent the secret that it was given."""
        match self.client_auth:
            case "client_secret_basic":
                return request.headers.get("Authorization") == BASIC
            case "client_secret_post":
                return params.get("client_secret") == CLIENT_SECRET
            case _:
                return True

    async def _token(self, request: web.Request) -> web.Response:
        params = await self._note(request)
        if not self._knows(request, params):
            return _error("invalid_client", 401)
        if self.status != 200:
            return _error("server_error", self.status)
        match params.get("grant_type"):
            case "authorization_code":
                return self._redeem(params)
            case "refresh_token":
                return await self._refresh(params.get("refresh_token", ""))
            case "urn:ietf:params:oauth:grant-type:device_code":
                return self._poll(params.get("device_code", ""))
            case _:
                return _error("unsupported_grant_type")

    def _redeem(self, params: dict[str, str]) -> web.Response:
        code = self.codes.get(params.get("code", ""))
        digest = hashlib.sha256(params.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if code is None or code.is_used or code.challenge != challenge or code.redirect_uri != params["redirect_uri"]:
            return _error("invalid_grant")
        code.is_used = True
        return self._granted()

    async def _refresh(self, token: str) -> web.Response:
        self.refreshes += 1
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:  # the client is gone, and its token was not used
                self.abandoned.set()
                raise
        if token in self.used_refresh_tokens:
            self.refresh_tokens.clear()  # one of two that have it is a thief, so the whole family ends
        if token not in self.refresh_tokens:
            return _error("invalid_grant")
        self.refresh_tokens.discard(token)
        self.used_refresh_tokens.add(token)
        return self._granted()

    async def _device(self, request: web.Request) -> web.Response:
        await self._note(request)
        device = self._new_device()
        page = f"{self.url}/enter"
        return web.json_response(
            {
                "device_code": device.device_code,
                "user_code": device.user_code,
                "verification_uri": page,
                "verification_uri_complete": f"{page}?code={device.user_code}",
                "expires_in": 900,
                "interval": self.interval_s,
            }
        )

    def _poll(self, device_code: str) -> web.Response:
        device = next((one for one in self.devices.values() if one.device_code == device_code), None)
        if device is None:
            return _error("invalid_grant")
        device.polls += 1
        if self.slow_downs:
            self.slow_downs -= 1
            return _error("slow_down")
        if device.state != "granted":
            return _error(device.state)
        device.state = "expired_token"  # a code is used once
        return self._granted()

    async def _revoke(self, request: web.Request) -> web.Response:
        token = (await self._note(request)).get("token", "")
        self.refresh_tokens.discard(token)
        self.access_tokens.discard(token)
        return web.Response()

    async def _exchange(self, request: web.Request) -> web.Response:
        await self._note(request)
        self.exchanges += 1
        if self.status != 200:
            return _error("server_error", self.status)
        token = request.headers.get("Authorization", "").removeprefix("token ")
        if token not in self.access_tokens or not self.subscribed:
            return web.json_response({"message": "no access to Copilot"}, status=403)
        key = f"key-{secrets.token_urlsafe(8)}"
        self.keys.add(key)
        ends_at = time.time() + self.lifetime_s
        endpoints = {"api": self.key_url} if self.key_url else {}
        said = {"token": key, "expires_at": ends_at, "refresh_in": self.lifetime_s, "endpoints": endpoints}
        return web.json_response(said)

    async def _user(self, request: web.Request) -> web.Response:
        await self._note(request)
        return web.json_response({"login": self.account})

    async def _usercode(self, request: web.Request) -> web.Response:
        await self._note(request)
        device = self._new_device()
        return web.json_response(
            {"device_auth_id": device.device_code, "user_code": device.user_code, "interval": str(self.interval_s)}
        )

    async def _entered(self, request: web.Request) -> web.Response:
        params = await self._note(request)
        device = self.devices[params["user_code"]]
        device.polls += 1
        if device.state != "granted":
            return web.json_response({}, status=403)
        verifier, code = secrets.token_urlsafe(48), secrets.token_urlsafe(8)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        self.codes[code] = AuthorizationCode(f"{self.url}/deviceauth/callback", challenge)
        return web.json_response({"authorization_code": code, "code_verifier": verifier, "code_challenge": challenge})

    def _new_device(self) -> Device:
        user_code = f"{secrets.token_hex(2)}-{secrets.token_hex(2)}".upper()
        self.devices[user_code] = Device(secrets.token_urlsafe(16), user_code)
        return self.devices[user_code]

    def _granted(self) -> web.Response:
        claims = {
            "email": f"{self.account}@example.org",
            "https://api.openai.com/auth": {"chatgpt_account_id": "acc-1"},
        }
        access, refresh = f"access-{secrets.token_urlsafe(8)}", f"refresh-{secrets.token_urlsafe(8)}"
        self.access_tokens.add(access)
        self.refresh_tokens.add(refresh)
        payload = base64.urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b"=").decode()
        said = {"access_token": access, "refresh_token": refresh, "expires_in": self.lifetime_s, "token_type": "bearer"}
        return web.json_response({**said, "id_token": f"e30.{payload}.sig"})


def _error(code: str, status: int = 400) -> web.Response:
    return web.json_response({"error": code, "error_description": f"the server says {code}"}, status=status)
