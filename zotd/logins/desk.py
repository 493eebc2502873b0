"""Logging in to vendors and out again; one object for each process."""

import asyncio
import importlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack

import msgspec

from zotd import ids
from zotd.config.current import CurrentConfig
from zotd.core.ports import StorageError
from zotd.logins.access import LoginAccess
from zotd.logins.renewal import Renewal, exchange_key
from zotd.logins.vendors import LOGINS, LoginVendor
from zotd.oauth import protocol
from zotd.oauth.browser import BrowserLogin
from zotd.oauth.device import DeviceLogin
from zotd.oauth.protocol import HttpAnswer, HttpRequest, OAuthError, Problem, TokenSet
from zotd.oauth.redirect import LOGIN_S
from zotd.store.logins import LoginStore, VendorLogin

log = logging.getLogger(__name__)

BEGIN_S = 45.0
"""Longest wait for a device code."""

CANCELLED = "it was cancelled"

ACCOUNT_CHARS = 200
"""How much of an account's name is kept."""


class LoginPrompt(msgspec.Struct, frozen=True):
    """What the user has to do."""

    id: str
    vendor: str
    method: str
    url: str
    """The page to open."""
    full_url: str
    """The same with the code already in it; empty if there is no such page."""
    code: str
    """What to enter there; empty: nothing."""
    lifetime_s: float
    """How long there is for it."""


class LoginRun:
    """A login that has begun: waits for the user in a task of its own."""

    def __init__(self, vendor: str) -> None:
        self.vendor = vendor
        self.prompt: asyncio.Future[LoginPrompt] = asyncio.get_running_loop().create_future()
        """What to tell the user; an OAuthError if the login could not begin."""
        self.ended = asyncio.Event()
        """Set when it has succeeded or failed."""
        self.failure = ""
        """Why it failed, for the user; empty: it did not."""
        self._task: asyncio.Task[object] | None = None
        self._is_cancelled = False

    async def carry_out(self, work: Callable[["LoginRun"], Coroutine[object, object, None]]) -> None:
        """Run `work`, which tells `prompt` what the user has to do, and keep how it ended."""
        self._task, self.failure = asyncio.current_task(), "internal error; see the log of zotd"
        try:
            if self._is_cancelled:  # before it could begin
                self.failure = CANCELLED
            else:
                await work(self)
                self.failure = ""
        except (OAuthError, StorageError) as error:
            self.failure = str(error)
        except asyncio.CancelledError:
            self.failure = CANCELLED
            raise
        finally:
            if not self.prompt.done():
                self.prompt.set_exception(OAuthError(Problem.LOCAL, self.failure))
                self.prompt.exception()  # seen, although `begin` may have been cancelled
            self.ended.set()

    def cancel(self) -> None:
        """End it."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()


class Logins:
    """The logins of this home."""

    def __init__(
        self,
        store: LoginStore,
        config: CurrentConfig,
        *,
        titles: Callable[[str], str],
        spawn: Callable[[str, Coroutine[object, object, None]], None],
    ) -> None:
        """`titles`: the name of a vendor in messages; `spawn` runs a named coroutine until it or the program ends."""
        self._store = store
        self._config = config
        self._titles = titles
        self._spawn = spawn
        self._access: dict[str, tuple[LoginVendor, LoginAccess]] = {}
        self._runs: dict[str, LoginRun] = {}

    def vendor(self, name: str) -> LoginVendor | None:
        """Return how to log in to a vendor; None if it offers no login."""
        found = LOGINS.get(name)
        section = self._config.value.providers.get(name)
        if found is None or section is None:
            return found
        return found.at(section.login_url, section.client_id)

    def listed(self) -> Mapping[str, VendorLogin]:
        """Return the logins by vendor. Raises StorageError."""
        return self._store.listed()

    def access(self, name: str) -> LoginAccess | None:
        """Return the login to a vendor for model requests; None if it offers none."""
        vendor = self.vendor(name)
        if vendor is None:
            return None
        known = self._access.get(name)
        if known is None or known[0] != vendor:  # the configuration was changed
            renewal = Renewal(vendor, self._store, send=send, clock=time.time)
            known = vendor, LoginAccess(vendor, self._titles(name), self._store, renewal)
            self._access[name] = known
        return known[1]

    async def begin(self, vendor: LoginVendor, method: str) -> LoginPrompt:
        """Begin a login, `browser` or `device`; one to the same vendor that has not ended is cancelled.

        Raises:
            OAuthError: it cannot begin.
        """
        for old in [run for run in self._runs.values() if run.vendor == vendor.name]:
            old.cancel()
            await old.ended.wait()  # its port is free again
        self._runs = {key: run for key, run in self._runs.items() if run.vendor != vendor.name}
        run, login_id = LoginRun(vendor.name), ids.new("login")
        self._runs[login_id] = run
        way = self._with_browser if method == "browser" else self._with_device

        async def work(run: LoginRun) -> None:
            await way(vendor, login_id, run)

        self._spawn(f"login to {vendor.name}", run.carry_out(work))
        try:
            async with asyncio.timeout(BEGIN_S):
                return await asyncio.shield(run.prompt)
        except TimeoutError as error:
            run.cancel()
            raise OAuthError(Problem.UNREACHABLE, f"no answer within {BEGIN_S:.0f} s") from error

    def run(self, login_id: str) -> LoginRun | None:
        """Return a login that has begun; None if there is none with this id."""
        return self._runs.get(login_id)

    def log_out(self, name: str) -> str | None:
        """Forget the login to a vendor, and revoke it there if the vendor has a way. Blocks.

        Returns what the user should know about the revocation, or "" if it succeeded; None if there was no login.

        Raises:
            StorageError: the login cannot be read or removed.
        """
        vendor = self.vendor(name)
        with self._store.renewing(name):  # a renewal that runs would bring it back
            login = self._store.listed().get(name)
            if login is None or vendor is None:
                return None
            try:
                login = self._store.read(name)
            except StorageError as error:
                self._store.remove(name)
                return f"the tokens were not revoked: {error}"
            self._store.remove(name)
        if login is None or not vendor.client.revoke_url:
            return (
                f"{self._titles(name)} has no way to revoke a token; it ends by itself, or in your account's settings"
            )
        try:
            answer = send(protocol.revoke_request(vendor.client, login.tokens))
        except OAuthError as error:
            return f"the tokens were not revoked: {error}"
        return "" if answer.status < 300 else f"the tokens were not revoked: status {answer.status}"

    async def _with_browser(self, vendor: LoginVendor, login_id: str, run: LoginRun) -> None:
        async with AsyncExitStack() as stack:
            login = await stack.enter_async_context(BrowserLogin(vendor.client, send, clock=time.time))
            run.prompt.set_result(LoginPrompt(login_id, vendor.name, "browser", login.url, "", "", LOGIN_S))
            await self._keep(vendor, await login.finish())

    async def _with_device(self, vendor: LoginVendor, login_id: str, run: LoginRun) -> None:
        login = DeviceLogin(vendor.client, send, clock=time.time, dialect=vendor.device)
        code = await login.begin()
        prompt = LoginPrompt(login_id, vendor.name, "device", code.url, code.full_url, code.user_code, code.lifetime_s)
        run.prompt.set_result(prompt)
        await self._keep(vendor, await login.finish(code))

    async def _keep(self, vendor: LoginVendor, tokens: TokenSet) -> None:
        await asyncio.to_thread(self._store_new, vendor, tokens)
        log.info("logged in to %s", vendor.name)

    def _store_new(self, vendor: LoginVendor, tokens: TokenSet) -> None:
        """Make a login of granted tokens and store it. Blocks."""
        login = VendorLogin(
            account=account_of(vendor, tokens),
            account_id=claim(vendor.account_id_claims, tokens)[:ACCOUNT_CHARS],
            logged_in_at=time.time(),
            tokens=tokens,
        )
        if vendor.exchange is not None:
            # At once, because it shows whether the account has a subscription.
            try:
                key, url = exchange_key(vendor.exchange, tokens, send=send, asked_at=time.time())
            except OAuthError as error:
                raise OAuthError(
                    error.problem, f"{self._titles(vendor.name)} gives this account no access ({error})"
                ) from error
            login = msgspec.structs.replace(login, key=key, key_url=url)
        with self._store.renewing(vendor.name):
            self._store.write(vendor.name, login)


def send(request: HttpRequest) -> HttpAnswer:
    """Send a request; see `oauth.transport.send`, which is loaded with the first one: it takes a tenth of a second."""
    answer: HttpAnswer = importlib.import_module("zotd.oauth.transport").send(request)
    return answer


class _User(msgspec.Struct):
    login: str = ""


def account_of(vendor: LoginVendor, tokens: TokenSet) -> str:
    """Return the user's name, for display; empty if the vendor does not tell it. Blocks."""
    name = claim(vendor.account_claims, tokens)
    if vendor.account_url:
        headers = {
            **vendor.client.headers,
            "Accept": "application/json",
            "Authorization": f"token {tokens.access_token}",
        }
        try:
            name = msgspec.json.decode(send(HttpRequest("GET", vendor.account_url, headers)).body, type=_User).login
        except (OAuthError, msgspec.MsgspecError, UnicodeDecodeError):
            name = ""  # the login works without it
    return " ".join(name.split())[:ACCOUNT_CHARS]


def claim(paths: tuple[str, ...], tokens: TokenSet) -> str:
    """Return the first of these claims that a token has, or ""."""
    for token in (tokens.id_token, tokens.access_token):
        claims = protocol.claims_of(token)
        for path in paths:
            found: object = claims
            for name in path.split():
                found = found.get(name) if isinstance(found, dict) else None
            if isinstance(found, str) and found.isprintable():
                return found
    return ""
