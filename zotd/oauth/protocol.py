"""Requests to an authorization server and their answers (RFC 6749, 7009, 7636, 8628), without I/O.

Tokens are never part of an error's message.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

TOKEN_CHARS = 64 * 1024
"""Longest token; those with claims in them have a few thousand characters."""

WORDS_CHARS = 200
"""How much of a server's own words goes into a message."""

LIFETIME_S = 10 * 365 * 24 * 3600.0
"""Longest lifetime that is believed; what is longer counts as this."""

DEVICE_S = 15 * 60.0
"""Lifetime of a device code whose server does not tell one."""

INTERVAL_S = 5.0
"""Pause between two polls if the server does not tell one, and what `slow_down` adds (RFC 8628, 3.2 and 3.5)."""

SHORTEST_INTERVAL_S = 1.0
"""A server cannot make us poll more often."""

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

FORM = "application/x-www-form-urlencoded"


class Problem(StrEnum):
    """What went wrong, as far as callers distinguish it."""

    DENIED = "denied"
    """The user or the server refused the login."""
    EXPIRED = "expired"
    """The login was not completed in time."""
    ENDED = "ended"
    """The server no longer accepts the refresh token: it was revoked, used before, or has expired."""
    UNREACHABLE = "unreachable"
    """No usable answer; the same request may succeed later."""
    REFUSED = "refused"
    """The server refuses the request for another reason; repeating it does not help."""
    LOCAL = "local"
    """Something on this machine prevents the login, such as a port that is in use."""


class OAuthError(Exception):
    """A request to an authorization server failed. The message completes "the login failed: …" and has no secret."""

    def __init__(self, problem: Problem, sentence: str) -> None:
        """`sentence`: a part of a sentence for the user."""
        super().__init__(sentence)
        self.problem = problem


class HttpRequest(NamedTuple):
    """A request to send."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class HttpAnswer(NamedTuple):
    """Its answer."""

    status: int
    body: bytes


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """How this program is registered with one authorization server. All clients are public: they have no secret."""

    client_id: str
    token_url: str
    authorize_url: str = ""
    """Empty: no login with a browser and a redirect."""
    device_url: str = ""
    """Empty: no device flow."""
    revoke_url: str = ""
    """Empty: tokens cannot be revoked."""
    scope: str = ""
    redirect_host: str = "127.0.0.1"
    redirect_ports: tuple[int, ...] = (0,)
    """Ports that the redirect may use, in order of preference; 0: any free one."""
    redirect_path: str = "/callback"
    authorize_params: dict[str, str] = msgspec.field(default_factory=dict)
    """Further parameters of the authorization request."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers of every request."""

    def at(self, origin: str) -> "OAuthClient":
        """Return the same client at another server: `origin` replaces scheme and host of its URLs."""
        fields = ("token_url", "authorize_url", "device_url", "revoke_url")
        return msgspec.structs.replace(self, **{name: moved(getattr(self, name), origin) for name in fields})


class TokenSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server has granted."""

    access_token: str
    refresh_token: str = ""
    id_token: str = ""
    scope: str = ""
    obtained_at: float = 0.0
    """When it was requested, in seconds since 1970 by the clock of this machine."""
    expires_at: float | None = None
    """When the access token ends, by the same clock; None: the server did not say."""


class DeviceCode(NamedTuple):
    """A device flow that has begun."""

    device_code: str
    user_code: str
    url: str
    """Where the user enters the code."""
    full_url: str
    """The same with the code already in it; empty if the server has none."""
    lifetime_s: float
    interval_s: float


class Pkce(NamedTuple):
    """Verifier and challenge of one login (RFC 7636, S256)."""

    verifier: str
    challenge: str

    @classmethod
    def new(cls) -> "Pkce":
        """Return a new random pair."""
        return cls.of(secrets.token_urlsafe(64))

    @classmethod
    def of(cls, verifier: str) -> "Pkce":
        """Return the pair of a known verifier."""
        digest = hashlib.sha256(verifier.encode()).digest()
        return cls(verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode())


def moved(url: str, origin: str) -> str:
    """Return `url` with scheme and host of `origin`; an empty one stays empty."""
    if not url:
        return ""
    parts, other = urlsplit(url), urlsplit(origin)
    return parts._replace(scheme=other.scheme, netloc=other.netloc).geturl()


def authorization_url(client: OAuthClient, *, redirect_uri: str, pkce: Pkce, state: str) -> str:
    """Return the URL that the user's browser opens."""
    params = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        **({"scope": client.scope} if client.scope else {}),
        "code_challenge": pkce.challenge,
        "code_challenge_method": "S256",
        "state": state,
        **client.authorize_params,
    }
    return f"{client.authorize_url}{'&' if '?' in client.authorize_url else '?'}{urlencode(params)}"


def exchange_request(client: OAuthClient, *, code: str, verifier: str, redirect_uri: str) -> HttpRequest:
    """Return the request that exchanges an authorization code for tokens."""
    params = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
    return _form(client, client.token_url, params)


def refresh_request(client: OAuthClient, refresh_token: str) -> HttpRequest:
    """Return the request for a new access token."""
    return _form(client, client.token_url, {"grant_type": "refresh_token", "refresh_token": refresh_token})


def revoke_request(client: OAuthClient, tokens: TokenSet) -> HttpRequest:
    """Return the request that ends a grant: of its refresh token if there is one (RFC 7009)."""
    token, kind = tokens.refresh_token, "refresh_token"
    if not token:
        token, kind = tokens.access_token, "access_token"
    return _form(client, client.revoke_url, {"token": token, "token_type_hint": kind})


def device_request(client: OAuthClient) -> HttpRequest:
    """Return the request that begins a device flow."""
    return _form(client, client.device_url, {"scope": client.scope} if client.scope else {})


def poll_request(client: OAuthClient, device_code: str) -> HttpRequest:
    """Return the request that asks whether the user has entered the code."""
    return _form(client, client.token_url, {"grant_type": DEVICE_GRANT, "device_code": device_code})


def _form(client: OAuthClient, url: str, params: Mapping[str, str]) -> HttpRequest:
    body = urlencode({"client_id": client.client_id, **params}).encode()
    return HttpRequest("POST", url, {**client.headers, "Accept": "application/json", "Content-Type": FORM}, body)


# --- answers ----------------------------------------------------------------------------------------------------------


class _Granted(msgspec.Struct):
    access_token: str
    refresh_token: str | None = None
    id_token: str | None = None
    scope: str | None = None
    expires_in: float | str | None = None


class _Failed(msgspec.Struct):
    error: object = None
    error_description: object = None
    code: object = None
    message: object = None


class _Device(msgspec.Struct):
    device_code: str
    user_code: str
    verification_uri: str = ""
    verification_url: str = ""  # what some servers call it, from before the RFC
    verification_uri_complete: str | None = None
    expires_in: float | str | None = None
    interval: float | str | None = None


class ServerRefusal(NamedTuple):
    """A server's error answer."""

    code: str
    words: str
    """Its description, on one line."""

    @property
    def text(self) -> str:
        """Code and description, for a message."""
        return f"{self.code}: {self.words}" if self.words else self.code


ENDED_CODES = frozenset(
    {"invalid_grant", "refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated", "bad_refresh_token"}
)
"""Codes that say that a grant is no longer valid: the RFC's, OpenAI's and GitHub's."""


def tokens_of(answer: HttpAnswer, *, asked_at: float, before: TokenSet | None = None) -> TokenSet:
    """Read the answer of the token endpoint.

    Args:
        answer: the answer.
        asked_at: time of the request; lifetimes count from it, so that a slow answer is not believed for too long.
        before: the tokens that were refreshed; what the answer does not have stays as it was.

    Raises:
        OAuthError: the server refused, or its answer is unusable.
    """
    refusal = refusal_of(answer)
    if refusal is not None:
        raise failure_of(answer.status, refusal)
    try:
        granted = msgspec.json.decode(answer.body, type=_Granted)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise OAuthError(Problem.UNREACHABLE, "the server sent no token") from error
    old = before or TokenSet("")
    found = TokenSet(
        checked(granted.access_token),
        checked(granted.refresh_token or old.refresh_token, may_be_empty=True),
        checked(granted.id_token or old.id_token, may_be_empty=True),
        (granted.scope or old.scope)[:TOKEN_CHARS],
        asked_at,
    )
    lifetime_s = seconds(granted.expires_in)
    expires_at = expiry_claim(found.access_token) if lifetime_s is None else asked_at + lifetime_s
    return msgspec.structs.replace(found, expires_at=expires_at)


def refusal_of(answer: HttpAnswer) -> ServerRefusal | None:
    """Return the error in an answer, None if there is none. GitHub sends errors with status 200."""
    try:
        failed = msgspec.json.decode(answer.body, type=_Failed)
        if isinstance(failed.error, dict):
            failed = msgspec.convert(failed.error, _Failed)
            failed.error = failed.code
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        failed = _Failed()
    said = failed.error if isinstance(failed.error, str) else ""
    if not said and 200 <= answer.status < 300:
        return None
    words = next((one for one in (failed.error_description, failed.message) if isinstance(one, str)), "")
    return ServerRefusal(_short(said) or f"status {answer.status}", _short(words))


def failure_of(status: int, refusal: ServerRefusal) -> OAuthError:
    """Return the error for a refused request of the token endpoint."""
    if refusal.code in ENDED_CODES:
        return OAuthError(Problem.ENDED, refusal.text)
    if refusal.code == "access_denied":
        return OAuthError(Problem.DENIED, f"it was refused ({refusal.text})")
    if refusal.code == "expired_token":
        return OAuthError(Problem.EXPIRED, "the code has expired")
    if status in {408, 429} or status >= 500 or refusal.code in {"temporarily_unavailable", "server_error"}:
        return OAuthError(Problem.UNREACHABLE, f"the server cannot answer now ({refusal.text})")
    # A token endpoint that answers 401 without a code of the RFC means the token: there is no secret to be wrong.
    problem = Problem.ENDED if status in {401, 403} and refusal.code != "invalid_client" else Problem.REFUSED
    return OAuthError(problem, refusal.text)


def device_code_of(answer: HttpAnswer) -> DeviceCode:
    """Read the answer to `device_request`. Raises OAuthError as `tokens_of` does."""
    refusal = refusal_of(answer)
    if refusal is not None:
        if answer.status >= 500 or answer.status == 429:
            raise failure_of(answer.status, refusal)
        raise OAuthError(Problem.REFUSED, refusal.text)
    try:
        said = msgspec.json.decode(answer.body, type=_Device)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise OAuthError(Problem.UNREACHABLE, "the server sent no device code") from error
    interval_s = seconds(said.interval)
    return DeviceCode(
        checked(said.device_code),
        shown_code(said.user_code),
        page(said.verification_uri or said.verification_url),
        page(said.verification_uri_complete) if said.verification_uri_complete else "",
        min(seconds(said.expires_in) or DEVICE_S, DEVICE_S * 4),
        max(SHORTEST_INTERVAL_S, INTERVAL_S if interval_s is None else interval_s),
    )


def checked(token: str, *, may_be_empty: bool = False) -> str:
    """Return the token if it can stand in an HTTP header. Raises OAuthError."""
    if (not token and not may_be_empty) or len(token) > TOKEN_CHARS or not all("!" <= char <= "~" for char in token):
        raise OAuthError(Problem.UNREACHABLE, "the server sent something that is no token")
    return token


def shown_code(code: str) -> str:
    """Return a code that a user types. Raises OAuthError if it could not be typed."""
    if not 0 < len(code) <= 64 or not all("!" <= char <= "~" for char in code):
        raise OAuthError(Problem.UNREACHABLE, "the server sent a code that cannot be typed")
    return code


def page(url: str) -> str:
    """Return the URL of a page for the user's browser. Raises OAuthError unless it is HTTPS, or on this machine."""
    try:
        parts = urlsplit(url)
        host, scheme = parts.hostname or "", parts.scheme
    except ValueError:
        host, scheme = "", ""
    at_home = scheme == "http" and host in {"localhost", "127.0.0.1", "::1"}
    if not host or not (scheme == "https" or at_home) or not all("!" <= char <= "~" for char in url):
        raise OAuthError(Problem.UNREACHABLE, "the server sent an address that is not HTTPS")
    return url


def seconds(value: float | str | None) -> float | None:
    """Return a duration from an answer; some servers send a string. None: none, or not one."""
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return min(number, LIFETIME_S) if number >= 0 else None


def claims_of(token: str) -> Mapping[str, object]:
    """Return the claims of a JSON Web Token; empty if it is none.

    Its signature is not checked: the token came over TLS from the server that issued it, and nothing here is decided by it.
    """
    part = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        found: object = msgspec.json.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def expiry_claim(token: str) -> float | None:
    """Return the `exp` of a JSON Web Token, in seconds since 1970."""
    found = claims_of(token).get("exp")
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _short(text: str) -> str:
    """A server's own words, on one line and of bounded length."""
    return " ".join(text[: 4 * WORDS_CHARS].split())[:WORDS_CHARS].rstrip(".")
