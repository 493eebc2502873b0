"""A listener on this machine, to which an authorization server sends the user's browser back (RFC 8252)."""

import asyncio
import hmac
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from zotd.oauth.protocol import OAuthError, Problem

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


class Redirect(NamedTuple):
    """What the server has sent with the browser."""

    code: str
    issuer: str
    """Who it says it is (RFC 9207); empty: it does not say."""


class RedirectListener:
    """Waits for one redirect; listens while it is entered."""

    def __init__(self, *, host: str = "127.0.0.1", ports: Sequence[int] = (0,), path: str = "/callback") -> None:
        """`ports`: which ones it may listen on, in order of preference; 0: any free one."""
        self._host = host
        self._ports = ports
        self._path = path
        self._state = ""
        self._redirected: asyncio.Future[Redirect] = asyncio.get_running_loop().create_future()
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._uri = ""

    @property
    def uri(self) -> str:
        """Where the browser is to be sent."""
        return self._uri

    @property
    def state(self) -> str:
        """The state that is expected."""
        return self._state

    def expect(self, state: str) -> None:
        """Take the redirect that has this state, which no other page knows; before, none is taken."""
        self._state = state

    async def __aenter__(self) -> Self:
        """Listen. Raises OAuthError `LOCAL` if no port is free."""
        self._uri = f"http://{self._host}:{await self._listen()}{self._path}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._redirected.cancel() and not self._redirected.cancelled():
            self._redirected.exception()  # seen, although `wait` may not have run
        for server in self._servers:
            server.close()
        for writer in self._open:
            writer.close()
        for server in self._servers:
            await server.wait_closed()

    async def wait(self) -> Redirect:
        """Wait for the redirect, at most `LOGIN_S`.

        Raises:
            OAuthError: the user refused, or did not finish in time.
        """
        try:
            async with asyncio.timeout(LOGIN_S):
                return await self._redirected
        except TimeoutError as error:
            raise OAuthError(Problem.EXPIRED, f"it was not completed within {LOGIN_S / 60:.0f} minutes") from error

    def take(self, target: str) -> tuple[str, str]:
        """Take the path and query of a request, or a whole address; return the status line and the words of the page."""
        try:
            parts = urlsplit(target)
            params = parse_qs(parts.query, max_num_fields=32)
        except ValueError:
            return "400 Bad Request", "This address cannot be read."
        if parts.path != self._path:
            return "404 Not Found", "There is nothing here."
        # Any page can make the browser open this address; only the one that was asked knows the state.
        is_asked = bool(self._state) and hmac.compare_digest(_one(params, "state").encode(), self._state.encode())
        if not is_asked:
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
        self._redirected.set_result(Redirect(code, _one(params, "iss")))
        return "200 OK", "You are logged in, or will be in a moment. You can close this page and go back to zot."

    async def _listen(self) -> int:
        for port in self._ports:
            try:
                server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=REQUEST_BYTES)
            except OSError:
                continue
            self._servers.append(server)
            found: int = server.sockets[0].getsockname()[1]
            if self._host == "localhost":
                await self._listen_v6(found)
            return found
        names = " or ".join(str(port) for port in self._ports)
        raise OAuthError(
            Problem.LOCAL,
            f"port {names} is in use by another program, maybe by another login; end it, or use another way",
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
        return self.take(target) if method == "GET" else ("404 Not Found", "There is nothing here.")


def _one(params: dict[str, list[str]], name: str) -> str:
    """The value of a parameter; empty if there is none, or several."""
    values = params.get(name, [])
    return values[0] if len(values) == 1 else ""


def _page(status: str, words: str) -> bytes:
    from html import escape  # noqa: PLC0415  (its table of entities takes a third of a MiB; few log in)

    body = f"<!doctype html><html lang=en><meta charset=utf-8><title>zot</title><p>{escape(words)}</p></html>".encode()
    return f"HTTP/1.1 {status}\r\n{HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body
