"""The authorization code flow: the user's browser logs in, and is sent back to a listener on this machine."""

import asyncio
import secrets
from collections.abc import Callable
from types import TracebackType
from typing import Self

from zotd.oauth.device import Send
from zotd.oauth.protocol import (
    OAuthClient,
    OAuthError,
    Pkce,
    Problem,
    TokenSet,
    authorization_url,
    exchange_request,
    tokens_of,
)
from zotd.oauth.redirect import RedirectListener


class BrowserLogin:
    """One login with a browser; listens while it is entered.

    async with BrowserLogin(client, send, clock=time.time) as login:
        webbrowser.open(login.url)
        tokens = await login.finish()
    """

    def __init__(self, client: OAuthClient, send: Send, *, clock: Callable[[], float]) -> None:
        """`clock` tells the time in seconds since 1970."""
        self._client = client
        self._send = send
        self._clock = clock
        self._pkce = Pkce.new()
        self._state = secrets.token_urlsafe(32)
        self._listener = RedirectListener(
            host=client.redirect_host, ports=client.redirect_ports, path=client.redirect_path
        )
        self._listener.expect(self._state)

    @property
    def url(self) -> str:
        """The address that the browser opens."""
        return authorization_url(self._client, redirect_uri=self._listener.uri, pkce=self._pkce, state=self._state)

    async def __aenter__(self) -> Self:
        """Listen. Raises OAuthError `LOCAL` if no port is free."""
        await self._listener.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.__aexit__(kind, error, trace)

    async def finish(self) -> TokenSet:
        """Wait for the redirect, at most `redirect.LOGIN_S`, and exchange its code.

        Raises:
            OAuthError: the user refused, did not finish in time, or the server refuses the code.
        """
        code = (await self._listener.wait()).code
        request = exchange_request(
            self._client, code=code, verifier=self._pkce.verifier, redirect_uri=self._listener.uri
        )
        asked_at = self._clock()
        answer = await asyncio.to_thread(self._send, request)
        try:
            return tokens_of(answer, asked_at=asked_at)
        except OAuthError as error:
            if error.problem is not Problem.ENDED:
                raise
            raise OAuthError(Problem.REFUSED, str(error)) from error  # a code, not a token, was refused
