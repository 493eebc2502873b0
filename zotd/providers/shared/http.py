"""Bounds the HTTP answers of model servers before a vendor's SDK reads them.

The SDKs read the body of an error themselves, whole and decompressed: 2 MB of gzip become gigabytes. So compression
is neither asked for nor left to the HTTP library, and an error's body ends after `ERROR_BODY_BYTES`. Response headers
are bounded by h11 (100 KiB). What a reply may have is counted in `streaming`.

Imports the HTTP library of the SDKs: only the API modules import this one.
"""

import asyncio
import os
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import lru_cache
from pathlib import Path

import httpx2

from zotd.providers.shared.limits import ERROR_BODY_BYTES, ERROR_BODY_S, PIECE_BYTES
from zotd.providers.shared.vendors import KeyHeader

_WINDOW_BITS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
"""Encodings that are decoded though they were not asked for: some proxies compress everything."""


_PLAIN = frozenset({"", "identity"})

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name the certificates to trust instead of the system's."""


def tls_context() -> ssl.SSLContext:
    """Return the TLS context of all clients; takes 20 ms the first time, and after a change of the certificates."""
    return _tls_context(*map(_stamp, _CERTIFICATES))


@lru_cache(maxsize=1)
def _tls_context(*_: object) -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def _stamp(variable: str) -> object:
    """Return what changes when the named certificates do."""
    path = os.environ.get(variable)
    try:
        found = Path(path or "").stat() if path else None
    except OSError:
        found = None
    return path, found and (found.st_ino, found.st_mtime_ns)


_SDK_KEY_HEADERS = {"authorization": "Bearer ", "x-api-key": ""}
"""The headers in which the SDKs send keys, and what stands before the key."""


def renamer(key_header: KeyHeader) -> Callable[[httpx2.Request], Awaitable[None]]:
    """Return a hook that moves the key of a request into `key_header`."""

    async def rename(request: httpx2.Request) -> None:
        for name, prefix in _SDK_KEY_HEADERS.items():
            value = request.headers.get(name)
            if value is not None and value.startswith(prefix) and not _is_own(name, value):
                del request.headers[name]
                request.headers[key_header.name] = key_header.prefix + value.removeprefix(prefix)

    def _is_own(name: str, value: str) -> bool:
        """The header has been renamed already: a repeated request has the headers of the first."""
        return name == key_header.name.lower() and value.startswith(key_header.prefix)

    return rename


def bound(response: httpx2.Response) -> None:
    """Have an unread response body decoded piece by piece, and the body of an error cut."""
    stream = response.stream
    if not isinstance(stream, httpx2.AsyncByteStream):
        return
    encoding = response.headers.pop("content-encoding", "").strip().lower()
    if not response.is_success or encoding not in _PLAIN:
        response.stream = _Body(stream, encoding, is_error=not response.is_success)


class _Body(httpx2.AsyncByteStream):
    """A response's body, decoded."""

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: str, *, is_error: bool) -> None:
        self._stream = stream
        self._encoding = encoding
        self._is_error = is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._is_error:
            yield await self._beginning()
            return
        async with aclosing(self._decoded()) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _beginning(self) -> bytes:
        """Return the beginning of an error's body; a failure behind it is ignored."""
        found = bytearray()
        with suppress(TimeoutError, httpx2.HTTPError):
            async with asyncio.timeout(ERROR_BODY_S):
                await self._fill(found)
        return bytes(found[:ERROR_BODY_BYTES])

    async def _fill(self, found: bytearray) -> None:
        async with aclosing(self._decoded()) as pieces:
            async for piece in pieces:
                found += piece
                if len(found) >= ERROR_BODY_BYTES:
                    return

    async def _decoded(self) -> AsyncGenerator[bytes, None]:
        if self._encoding in _PLAIN:
            async for chunk in self._stream:
                yield chunk
            return
        if self._encoding not in _WINDOW_BITS:
            raise httpx2.DecodingError(f"the answer is encoded with {self._encoding[:40]!r}, which was not requested")
        decoder = zlib.decompressobj(_WINDOW_BITS[self._encoding])
        async for chunk in self._stream:
            left = chunk
            while left and not decoder.eof:
                try:
                    piece = decoder.decompress(left, PIECE_BYTES)
                except zlib.error as error:
                    raise httpx2.DecodingError(f"the answer is not {self._encoding}: {error}") from error
                left = decoder.unconsumed_tail
                if piece:
                    yield piece
                if left:
                    await asyncio.sleep(0)
