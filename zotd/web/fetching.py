"""Fetches one page over HTTP: no cookies, no scripts, and nothing beyond a size and a time.

url ──> may the host be reached? ──> its addresses ──> GET ──> redirect? ──> the next URL, asked about like the first
                                                         └──> the body, decoded, up to its limit
"""

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Sequence

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct
from yarl import URL

from zotd.core.web_access import WebAccess, WebConnection
from zotd.proxy.errors import HostError, RefusedHostError, UnreachableError
from zotd.web.errors import WebError
from zotd.web.tls import tls_context

URL_CHARS = 8_000
"""Longest URL."""

REDIRECTS_MAX = 10
"""Most redirects that are followed."""

BODY_BYTES = 10_000_000
"""Most bytes of a body that are read, after decoding."""

CONNECT_S = 15.0
"""How long a connection may take to be made, TLS included."""

SILENCE_S = 20.0
"""How long a host may send nothing."""

PAGE_S = 60.0
"""How long one request may take. The wait for a person's decision about its host is not counted."""

PIECE_BYTES = 64 * 1024

_PORTS = {"http": 80, "https": 443}

_WINDOW_BITS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
"""Encodings that are decoded though none is asked for: some servers compress everything."""


class WebPage(Struct, frozen=True):
    """What a host has answered."""

    url: str
    """Where it was in the end, after redirects."""
    status: int
    media_type: str
    """In lower case, without parameters; empty: the host has not said."""
    charset: str
    """As the host says; may be empty, or none that there is."""
    body: bytes
    is_cut: bool
    """The body has more than `BODY_BYTES`."""


def page_url(text: str) -> str:
    """Return the URL that a page is fetched from, from what a model has written. Raises WebError."""
    text = text.strip()
    if len(text) > URL_CHARS:
        raise WebError(f"the URL has more than {URL_CHARS:,} characters")
    return str(_checked(text if "://" in text else f"https://{text}"))


async def fetch_page(url: str, access: WebAccess) -> WebPage:
    """Fetch what is at `url`, as `page_url` returned it.

    Raises WebError: it cannot be had. An answer with an error status is a page, too.
    """
    here = URL(url)
    tls = await asyncio.to_thread(tls_context)
    for _ in range(REDIRECTS_MAX + 1):
        host, port = here.host or "", here.port or _PORTS[here.scheme]
        try:
            async with access.connection(host, port) as connection, asyncio.timeout(PAGE_S):
                found = await _requested(here, connection, tls)
        except HostError as error:
            raise WebError(f"{here} has no valid host: {error}") from error
        except RefusedHostError as error:
            raise WebError(f"{here} may not be fetched: {error}") from error
        except UnreachableError as error:
            raise WebError(f"{here} cannot be fetched: {error}") from error
        except aiohttp.ServerTimeoutError as error:
            raise WebError(f"{here} cannot be fetched: the host does not answer, or sends nothing any more") from error
        except TimeoutError as error:
            raise WebError(f"{here} was not fetched within {PAGE_S:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise WebError(f"{here} cannot be fetched: {_reason(error)}") from error
        if isinstance(found, WebPage):
            return found
        here = _checked(found, "the page redirects to a URL that is not followed: ")
    raise WebError(f"{url} redirects more than {REDIRECTS_MAX} times")


async def _requested(url: URL, connection: WebConnection, tls: ssl.SSLContext) -> WebPage | str:
    """Return the page, or where it redirects to."""
    connector = aiohttp.TCPConnector(resolver=_Known(connection.addresses), ssl=tls, limit=1)
    limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
    async with (
        aiohttp.ClientSession(
            connector=connector,
            timeout=limits,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": "zot (a coding agent; the request of a person)", "Accept-Encoding": "identity"},
        ) as client,
        client.get(url, allow_redirects=False, headers={"Accept": "text/html, text/*, */*;q=0.8"}) as answer,
    ):
        location = answer.headers.get("Location")
        if answer.status in {301, 302, 303, 307, 308} and location:
            return str(url.join(URL(location[:URL_CHARS])))
        body, is_cut = await _body(answer, connection)
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return WebPage(str(url), answer.status, kind, answer.charset or "", body, is_cut)


async def _body(answer: aiohttp.ClientResponse, connection: WebConnection) -> tuple[bytes, bool]:
    """Return the decoded body up to its limit, and whether there is more."""
    encoding = answer.headers.get("Content-Encoding", "").strip().lower()
    body = bytearray()
    async for piece in _decoded(_counted(answer, connection), encoding):
        body += piece
        if len(body) > BODY_BYTES:
            return bytes(body[:BODY_BYTES]), True
    return bytes(body), False


async def _counted(answer: aiohttp.ClientResponse, connection: WebConnection) -> AsyncIterator[bytes]:
    async for piece in answer.content.iter_chunked(PIECE_BYTES):
        connection.received += len(piece)
        yield piece


async def _decoded(pieces: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield pieces of at most `PIECE_BYTES`: a kilobyte of gzip can become a megabyte."""
    if encoding in {"", "identity"}:
        async for piece in pieces:
            yield piece
        return
    if encoding not in _WINDOW_BITS:
        raise WebError(f"the page is encoded as {encoding!a}, which was not asked for")
    decoder = zlib.decompressobj(_WINDOW_BITS[encoding])
    async for piece in pieces:
        waiting = piece
        while waiting:
            try:
                yield decoder.decompress(waiting, PIECE_BYTES)
            except zlib.error as error:
                raise WebError(f"the page is not what it says: it cannot be decoded as {encoding}") from error
            waiting = decoder.unconsumed_tail
    yield decoder.flush(PIECE_BYTES)


class _Known(AbstractResolver):
    """Resolves every name to the addresses that were checked: nothing is looked up a second time."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _checked(text: str, before: str = "") -> URL:
    try:
        url = URL(text)
        port = url.port
    except ValueError as error:
        raise WebError(f"{before}{text[:200]!a} is not a URL: {error}") from error
    if url.scheme not in _PORTS:
        raise WebError(f"{before}{text[:200]!a} is neither http:// nor https://")
    if not url.host or not port:
        raise WebError(f"{before}{text[:200]!a} names no host")
    if url.user is not None or url.password is not None:
        raise WebError(f"{before}a URL with a user or a password is not fetched; use a command for it")
    return url.with_fragment(None)


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not valid: {error.certificate_error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
