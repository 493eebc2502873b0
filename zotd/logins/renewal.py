"""Keeps the tokens of one vendor fresh, for all processes of a home. Blocks: call it in a thread.

A thread also because a cancelled run must not stop it: a server may accept a refresh token only once, so its answer has to
be stored even if nothing waits for it any more.
"""

import logging
from collections.abc import Callable

import msgspec

from zotd.logins.vendors import KeyExchange, LoginVendor
from zotd.oauth import protocol
from zotd.oauth.device import Send
from zotd.oauth.lifetime import ends_soon
from zotd.oauth.protocol import HttpRequest, OAuthError, Problem, TokenSet
from zotd.store.logins import LoginStore, VendorLogin

log = logging.getLogger(__name__)


class NotLoggedInError(Exception):
    """There is no login to this vendor."""


class _Exchanged(msgspec.Struct):
    token: str
    expires_at: float | None = None
    refresh_in: float | None = None
    endpoints: dict[str, object] = msgspec.field(default_factory=dict)


class Renewal:
    """The tokens of one vendor."""

    def __init__(self, vendor: LoginVendor, store: LoginStore, *, send: Send, clock: Callable[[], float]) -> None:
        """`clock` tells the time in seconds since 1970."""
        self._vendor = vendor
        self._store = store
        self._send = send
        self._clock = clock

    def usable(self) -> VendorLogin:
        """Return the login with a token that can be used; it is renewed shortly before its end.

        Raises:
            NotLoggedInError: there is no login.
            OAuthError: it has ended, or cannot be renewed now and the token is no longer valid.
            StorageError: the tokens cannot be read, or new ones could not be stored; then none were requested.
        """
        login = self._read()
        if not self.is_due(login):
            return login
        try:
            return self._renewed(self.is_due)
        except OAuthError as error:
            if error.problem is Problem.ENDED or self._has_expired(login):
                raise
            log.warning("the login to %s was not renewed: %s", self._vendor.name, error)
            return login

    def replaced(self, refused: str) -> VendorLogin:
        """Return the login with another token than the one that the vendor has refused. Raises like `usable`."""
        return self._renewed(lambda login: login.current.access_token == refused)

    def is_due(self, login: VendorLogin) -> bool:
        """Whether the token is to be renewed before the next request."""
        return ends_soon(login.current, self._clock()) or (self._vendor.exchange is not None and login.key is None)

    def _has_expired(self, login: VendorLogin) -> bool:
        ends_at = login.current.expires_at
        return (ends_at is not None and self._clock() >= ends_at) or self._vendor.exchange is not None is login.key

    def _read(self) -> VendorLogin:
        login = self._store.read(self._vendor.name)
        if login is None:
            raise NotLoggedInError
        if login.ended:
            raise OAuthError(Problem.ENDED, login.ended)
        return login

    def _renewed(self, is_due: Callable[[VendorLogin], bool]) -> VendorLogin:
        with self._store.renewing(self._vendor.name):
            login = self._read()  # again: another process may have renewed it while this one waited for the lock
            if not is_due(login):
                return login
            try:
                return self._renew(login)
            except OAuthError as error:
                if error.problem is Problem.ENDED:
                    # Stored, so that no other process asks again. The tokens stay: `logout` may still have to revoke them.
                    self._store.write(self._vendor.name, msgspec.structs.replace(login, ended=str(error)))
                raise

    def _renew(self, login: VendorLogin) -> VendorLogin:
        exchange = self._vendor.exchange
        if exchange is None or ends_soon(login.tokens, self._clock()):
            login = self._refreshed(login)
        return login if exchange is None else self._exchanged(login, exchange)

    def _refreshed(self, login: VendorLogin) -> VendorLogin:
        if not login.tokens.refresh_token:
            raise OAuthError(Problem.ENDED, "it has expired, and there is no token to renew it with")
        with self._store.reserved() as draft:  # before the request: from then on the old token may be worthless
            asked_at = self._clock()
            answer = self._send(protocol.refresh_request(self._vendor.client, login.tokens.refresh_token))
            tokens = protocol.tokens_of(answer, asked_at=asked_at, before=login.tokens)
            login = msgspec.structs.replace(login, tokens=tokens)
            draft.write(self._vendor.name, login)
        return login

    def _exchanged(self, login: VendorLogin, exchange: KeyExchange) -> VendorLogin:
        key, url = exchange_key(exchange, login.tokens, send=self._send, asked_at=self._clock())
        login = msgspec.structs.replace(login, key=key, key_url=url)
        self._store.write(self._vendor.name, login)
        return login


def exchange_key(exchange: KeyExchange, tokens: TokenSet, *, send: Send, asked_at: float) -> tuple[TokenSet, str]:
    """Return the token for requests in exchange for the granted one, and the base URL that came with it, or "".

    Raises:
        OAuthError: the vendor does not give one, for example because the account has no subscription.
    """
    headers = {**exchange.headers, "Accept": "application/json", "Authorization": f"token {tokens.access_token}"}
    answer = send(HttpRequest("GET", exchange.url, headers))
    if answer.status in {401, 403, 404}:
        refusal = protocol.refusal_of(answer)
        words = refusal.words or refusal.code if refusal else f"status {answer.status}"
        raise OAuthError(Problem.ENDED, words)
    refusal = protocol.refusal_of(answer)
    if refusal is not None:
        raise protocol.failure_of(answer.status, refusal)
    try:
        said = msgspec.json.decode(answer.body, type=_Exchanged)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise OAuthError(Problem.UNREACHABLE, "the server sent no token") from error
    # `refresh_in` counts from now, so it is right whatever this machine's clock says.
    ends_at = said.expires_at if said.refresh_in is None else asked_at + said.refresh_in
    key = TokenSet(protocol.checked(said.token), obtained_at=asked_at, expires_at=ends_at)
    return key, _url_of(said.endpoints.get("api"), exchange.url_domain)


def _url_of(url: object, domain: str) -> str:
    """Return a base URL from an answer if it belongs to the vendor, else ""."""
    if not isinstance(url, str) or not domain:
        return ""
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    return url.rstrip("/") if scheme == "https" and host.endswith(f".{domain}") and "@" not in host else ""
