"""The login to a server with a URL: its token goes with each request, and is renewed when that is due or it is refused."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import httpx2

from zotd.oauth import transport
from zotd.oauth.protocol import OAuthError, Problem
from zotd.oauth.server_login_renewal import ServerLoginRenewal
from zotd.oauth.server_logins import ServerLogin, ServerLoginFile

OWN_TOKEN = "refused the request as unauthorized (HTTP 401); its `headers` need a valid token"  # noqa: S105
"""Why a server is lost whose entry brings the token; continues "the MCP server NAME"."""


class ServerAccess:
    """The login to one server, for requests of one client."""

    def __init__(self, name: str, url: str, logins: Path) -> None:
        """`logins`: the file with all logins."""
        self._name = name
        self._file = ServerLoginFile(logins)
        self._renewal = ServerLoginRenewal(self._file, url, send=transport.send, clock=time.time)
        self._login: ServerLogin | None = None
        self._stamp: tuple[int, int] | None = None
        """Of the file from which `_login` was read."""
        # One thread at a time: the requests of a server whose token ends must not occupy many.
        self._looking = asyncio.Lock()

    async def token(self) -> str:
        """Return the token for a request; empty if there is no login.

        Raises:
            OAuthError: the login has ended, or cannot be renewed now.
        """
        async with self._looking:
            stamp = self._file.stamp
            if stamp is None:
                return ""
            if stamp != self._stamp or (self._login is not None and self._renewal.is_due(self._login)):
                await self._look(self._renewal.usable)
            return self._current

    async def renewed(self, refused: str) -> str:
        """Return another token than this one, which the server has refused. Raises like `token`."""
        async with self._looking:
            if self._current == refused:  # another request may have been faster
                await self._look(lambda: self._renewal.replaced(refused))
            return self._current

    def sentence(self, error: OAuthError) -> str:
        """Return why the server is lost; continues "the MCP server NAME"."""
        if error.problem in {Problem.UNREACHABLE, Problem.LOCAL}:
            return f"has a login that cannot be used now: {error}"
        return f"no longer accepts the login ({error}); run: zotctl mcp login {self._name}"

    @property
    def missing(self) -> str:
        """The same, of one that wants a login and has none."""
        return f"needs a login (HTTP 401); run: zotctl mcp login {self._name}"

    @property
    def _current(self) -> str:
        return self._login.tokens.access_token if self._login is not None else ""

    async def _look(self, look: Callable[[], ServerLogin | None]) -> None:
        stamp = self._file.stamp  # before the file is read: a change in between must be noticed
        self._login = await asyncio.to_thread(look)
        self._stamp = stamp


class LoginAuth(httpx2.Auth):
    """Puts the token of the login into requests that have none of their own."""

    def __init__(
        self, access: ServerAccess | None, lose: Callable[[str], None], *, loses: Callable[[str], bool]
    ) -> None:
        """`access` None: there are no logins. `lose` is called when the server refuses a request whose method `loses` it."""
        self._access = access
        self._lose = lose
        self._loses = loses

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request, and again with a new token if that has been refused."""
        access = self._access
        if access is None or "Authorization" in request.headers:
            response = yield request
            if self._is_refusal(response):
                self._lose(OWN_TOKEN)
            return
        try:
            token = await access.token()
            response = yield _with(request, token)
            if response.status_code == httpx2.codes.UNAUTHORIZED and token:
                response = yield _with(request, await access.renewed(token))
        except OAuthError as error:
            self._lose(access.sentence(error))
            raise httpx2.RequestError(str(error), request=request) from error
        if self._is_refusal(response):
            self._lose(access.missing)

    def _is_refusal(self, response: httpx2.Response) -> bool:
        return response.status_code == httpx2.codes.UNAUTHORIZED and self._loses(response.request.method)


def _with(request: httpx2.Request, token: str) -> httpx2.Request:
    if token:
        request.headers["Authorization"] = f"Bearer {token}"
    return request
