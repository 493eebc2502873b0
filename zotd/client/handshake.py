"""Connects to a daemon on another machine: name resolution, TLS, upgrade to WebSocket, and the errors of each step.

aiohttp's optional features are disabled: redirects, proxies, cookies, passwords of ~/.netrc.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from zotd.client.blocking import FRAME_LIMIT
from zotd.client.errors import ClientError, NoAnswerError, NotRunningError
from zotd.client.origin import TokenAudience
from zotd.loopback import is_loopback
from zotd.wire.version import VERSION, WEBSOCKET_PATH

HANDSHAKE_S = 10.0
"""Timeout for the whole handshake in seconds: ten round trips over a satellite, and a user waits for it."""

PING_S = 15.0
"""Silence in seconds after which the daemon is pinged; half as much later the connection counts as dead. Routers drop
idle connections after minutes, and a sleeping machine sends no notice."""

REASON_CHARS = 200
"""Limit for quoting aiohttp's message about an invalid response, because it contains data of an unknown server."""

CLOSE_S = 2.0
"""Timeout for the other side's close frame, in seconds; the caller does not wait for it."""


async def connected(
    session: aiohttp.ClientSession, where: TokenAudience, context: ssl.SSLContext | None, limit_s: float
) -> aiohttp.ClientWebSocketResponse:
    """Return a WebSocket to the daemon, for the caller to close; nothing was sent on it. Raises `ClientError`."""
    try:
        async with asyncio.timeout(limit_s):
            return await session.ws_connect(
                where.url,
                ssl=context or True,
                heartbeat=PING_S,
                max_msg_size=FRAME_LIMIT + 1,  # aiohttp rejects messages of exactly this size
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
            )
    except TimeoutError as error:
        raise too_late(where, limit_s) from error
    except aiohttp.ClientError as error:
        raise _sentence(error, where.name) from error


@asynccontextmanager
async def ended(there: aiohttp.ClientWebSocketResponse) -> AsyncIterator[None]:
    """Close the WebSocket and its socket at the end of the block.

    Without `shutdown`, TLS would send a close alert that aiohttp does not wait for, and the event loop would end with
    an open transport.
    """
    network = there.get_extra_info("socket")
    try:
        async with there:
            yield
    finally:
        with suppress(OSError, AttributeError):  # it may be closed already
            network.shutdown(socket.SHUT_RDWR)


def too_late(where: TokenAudience, limit_s: float) -> NoAnswerError:
    """Return the error for a handshake that took longer than `limit_s`."""
    return NoAnswerError(f"{where.name} has not answered within {limit_s:g} s")


def trusting(ca_path: str) -> ssl.SSLContext:
    """Return a context that trusts `ca_path`, or the system's certificates if it is empty. Raises `ClientError`."""
    try:
        return ssl.create_default_context(cafile=ca_path or None)
    except OSError as error:  # includes SSLError for a file without certificates
        raise ClientError(f"cannot use the CA file {ca_path}: {error.strerror or error}") from error


def session(where: TokenAudience) -> aiohttp.ClientSession:
    """Return an HTTP session for a single connection to `where`; the caller closes it."""

    async def refuse(_: object, __: object, ___: object) -> None:
        raise ClientError(
            f"{where.name} answered with a redirect, which is not followed; use the URL of the daemon itself"
        )

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(refuse)  # ws_connect would follow a redirect and send the token there
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=_Resolver(is_local=not where.is_tls), limit=1),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": f"zot/{VERSION}"},
        timeout=aiohttp.ClientTimeout(total=None),  # `connected` has its own
        trust_env=False,
        trace_configs=[trace],
    )


class _Resolver(AbstractResolver):
    """Resolves names in this thread: asyncio would use a thread pool, which delays the exit of the program."""

    def __init__(self, *, is_local: bool) -> None:
        """With `is_local`, names that resolve to another machine are refused, whatever `/etc/hosts` says."""
        self._is_local = is_local

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of `host`. Raises `OSError`."""
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        addresses = [(kind, proto, str(address[0])) for kind, _, proto, _, address in found]
        if self._is_local and not all(is_loopback(address) for *_, address in addresses):
            raise OSError(f"{host} is another machine, and ws:// would send the token in the clear")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=proto, flags=socket.AI_NUMERICHOST)
            for kind, proto, address in addresses
        ]

    async def close(self) -> None:
        """Do nothing: the resolver holds no resources, but aiohttp requires the method."""


def _sentence(error: aiohttp.ClientError, name: str) -> ClientError:
    """Convert an error of aiohttp, in the order of the steps from the name to the daemon."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return ClientError(f"cannot resolve {name}: {error.strerror or error.os_error}")
        case aiohttp.ClientConnectorCertificateError():
            why = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
            return ClientError(f"the certificate of {name} is not trusted: {why}; for a private CA use --ca-file")
        case aiohttp.ClientSSLError():
            return ClientError(f"the TLS handshake with {name} failed: {error.strerror}")
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            return NotRunningError(f"zotd is not running: nothing listens at {name}")
        case aiohttp.ClientConnectorError():
            return ClientError(f"cannot reach {name}: {error.strerror}")
        case aiohttp.WSServerHandshakeError():
            return ClientError(_answered(error, name))
        case _:
            said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
            reason = " ".join(said.split())[:REASON_CHARS] or type(error).__name__
            return ClientError(f"{name} does not answer like zotd: {reason}")


def _answered(error: aiohttp.WSServerHandshakeError, name: str) -> str:
    match error.status:
        case 403:
            return f"{name} does not accept this host name (403); add it to websocket.hosts in its configuration"
        case 429:
            wait = error.headers.get("Retry-After", "") if error.headers else ""
            later = f"in {wait} s" if wait.isdigit() else "later"
            return f"{name} refuses this machine after too many failed attempts (429); try again {later}"
        case 503:
            return f"{name} has reached its limit of connections (503); try again later"
        case status:
            return f"{name} does not run zotd: {WEBSOCKET_PATH} answers with HTTP status {status}"
