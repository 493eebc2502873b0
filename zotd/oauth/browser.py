"""The authorization code flow: the user's browser is redirected to a listener on this machine (RFC 8252)."""

import asyncio
import hmac
import secrets
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

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

LOGIN_S = 10 * 60.0
"""Longest time from opening the browser to the redirect."""

REQUEST_BYTES = 16 * 1024
"""Longest request of a browser that is read; cookies of other programs on `localhost` come with it."""

REQUEST_S = 10.0
"""Longest time for a browser to send it, and to take the page."""

MAX_CONNECTIONS = 16
"""Connections at once; a browser makes two or three."""

HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\n"
    "Content-Security-Policy: default-src 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n"
)


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
        self._redirected: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._redirect_uri = ""

    @property
    def url(self) -> str:
        """The address that the browser opens."""
        return authorization_url(self._client, redirect_uri=self._redirect_uri, pkce=self._pkce, state=self._state)

    async def __aenter__(self) -> Self:
        """Listen. Raises OAuthError `LOCAL` if no port is free."""
        port = await self._listen(self._client.redirect_ports)
        self._redirect_uri = f"http://{self._client.redirect_host}:{port}{self._client.redirect_path}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._redirected.cancel() and not self._redirected.cancelled():
            self._redirected.exception()  # seen, although `finish` may not have run
        for server in self._servers:
            server.close()
        for writer in self._open:
            writer.close()
        for server in self._servers:
            await server.wait_closed()

    async def finish(self) -> TokenSet:
        """Wait for the redirect, at most `LOGIN_S`, and exchange its code.

        Raises:
            OAuthError: the user refused, did not finish in time, or the server refuses the code.
        """
        try:
            async with asyncio.timeout(LOGIN_S):
                code = await self._redirected
        except TimeoutError as error:
            raise OAuthError(Problem.EXPIRED, f"it was not completed within {LOGIN_S / 60:.0f} minutes") from error
        request = exchange_request(
            self._client, code=code, verifier=self._pkce.verifier, redirect_uri=self._redirect_uri
        )
        asked_at = self._clock()
        answer = await asyncio.to_thread(self._send, request)
        try:
            return tokens_of(answer, asked_at=asked_at)
        except OAuthError as error:
            if error.problem is not Problem.ENDED:
                raise
            raise OAuthError(Problem.REFUSED, str(error)) from error  # a code, not a token, was refused

    async def _listen(self, ports: Sequence[int]) -> int:
        for port in ports:
            try:
                server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=REQUEST_BYTES)
            except OSError:
                continue
            self._servers.append(server)
            found: int = server.sockets[0].getsockname()[1]
            if self._client.redirect_host == "localhost":
                await self._listen_v6(found)
            return found
        names = " or ".join(str(port) for port in ports)
        raise OAuthError(
            Problem.LOCAL, f"port {names} is in use by another program, maybe by another login; end it, or use --device"
        )

    async def _listen_v6(self, port: int) -> None:
        """A browser may take `localhost` for the other address; a machine without it needs no listener there."""
        try:
            self._servers.append(await asyncio.start_server(self._serve, "::1", port, limit=REQUEST_BYTES))
        except OSError:
            return

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open.add(writer)
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, words = self._answer(head)
                writer.write(_page(status, words))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a port scanner, or a browser that has gone away
        finally:
            self._open.discard(writer)
            writer.close()

    def _answer(self, head: bytes) -> tuple[str, str]:
        """Take a request; return the status line and the words of the page."""
        method, target = (*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", "")[:2]
        try:
            parts = urlsplit(target)
            params = parse_qs(parts.query, max_num_fields=32)
        except ValueError:
            return "400 Bad Request", "This address cannot be read."
        if method != "GET" or parts.path != self._client.redirect_path:
            return "404 Not Found", "There is nothing here."
        # Any page can make the browser open this address; only the one that was asked knows the state.
        if not hmac.compare_digest(_one(params, "state").encode(), self._state.encode()):
            return "400 Bad Request", "This is not the answer to the login that zot waits for. Open the address again."
        if self._redirected.done():
            return "410 Gone", "This login was already answered."
        if error := _one(params, "error"):
            words = " ".join(f"{error} {_one(params, 'error_description')}".split())[:200]
            problem = Problem.DENIED if error == "access_denied" else Problem.REFUSED
            self._redirected.set_exception(OAuthError(problem, f"it was refused ({words})"))
            return "200 OK", f"The login was refused: {words}."
        if not (code := _one(params, "code")):
            return "400 Bad Request", "The code is missing."
        self._redirected.set_result(code)
        return "200 OK", "You are logged in, or will be in a moment. You can close this page and go back to zot."


def _one(params: dict[str, list[str]], name: str) -> str:
    """The value of a parameter; empty if there is none, or several."""
    values = params.get(name, [])
    return values[0] if len(values) == 1 else ""


def _page(status: str, words: str) -> bytes:
    from html import escape  # noqa: PLC0415  (its table of entities takes a third of a MiB; few log in)

    body = f"<!doctype html><html lang=en><meta charset=utf-8><title>zot</title><p>{escape(words)}</p></html>".encode()
    return f"HTTP/1.1 {status}\r\n{HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body
