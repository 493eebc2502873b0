"""The part of HTTP that a proxy needs: CONNECT, and requests with a whole URL.

A connection is used for one request. For CONNECT the client then speaks with the host itself. Of other requests the head
is written again: the host of the URL counts, not the header `Host`, and `Connection: close` makes both sides end the
connection after the answer, so that no second request for another host follows on it.
"""

import asyncio
import re
from dataclasses import dataclass

from zotd.proxy.errors import BadRequestError, HostError
from zotd.proxy.hosts import HostPort, parse_authority
from zotd.proxy.outcomes import ProxyOutcome

HEAD_BYTES = 64 * 1024
"""Longest head of a request, request line and headers: the limit of the reader."""

_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) (HTTP/1\.[01])")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00\r\n]*)")
_URL = re.compile(r"http://([^/?#\\@]+)([/?].*)?", re.IGNORECASE)

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "upgrade",
    }
)
"""Headers that are for the proxy, or that it writes itself. `transfer-encoding` stays: the body is passed on as it is."""

_STATUS = {ProxyOutcome.ALLOWED: "200 OK", ProxyOutcome.REFUSED: "403", ProxyOutcome.UNREACHABLE: "502"}


@dataclass(frozen=True, slots=True)
class HttpProxyRequest:
    """A request in HTTP; see `ProxyRequest`."""

    remote: HostPort
    opening: bytes
    is_tunnel: bool

    def answer(self, outcome: ProxyOutcome, reason: str = "") -> bytes:
        """Return a response; nothing if the host itself will answer.

        The reason is in the status line too, because many clients show nothing else of an answer to CONNECT.
        """
        if outcome is ProxyOutcome.ALLOWED:
            return f"HTTP/1.1 {_STATUS[outcome]}\r\n\r\n".encode() if self.is_tunnel else b""
        return _response(_STATUS[outcome], reason)


async def read_http_request(first: bytes, reader: asyncio.StreamReader) -> HttpProxyRequest:
    """Read the head of a request, of which `first` has been read.

    Raises:
        BadRequestError: it is too long, or no request to a proxy.
        IncompleteReadError: the client has closed the connection.
    """
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise _bad("the head of the request is too long", "431") from error
    # Latin-1 keeps bytes of header values that are not ASCII as they are.
    line, *headers = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    found = _LINE.fullmatch(line)
    if found is None:
        raise _bad("the first line is no request of HTTP/1.1")
    method, target, version = found.groups()
    try:
        if method == "CONNECT":
            return HttpProxyRequest(parse_authority(target), b"", is_tunnel=True)
        return _plain(method, target, version, headers)
    except HostError as error:
        raise _bad(str(error)) from error


def _plain(method: str, target: str, version: str, headers: list[str]) -> HttpProxyRequest:
    url = _URL.fullmatch(target)
    if url is None:
        raise _bad("this is a proxy: the request needs a URL that begins with http:// and a host, or CONNECT")
    remote = parse_authority(url[1], 80)
    path = url[2] or "/"
    lines = [
        f"{method} {path if path.startswith('/') else '/' + path} {version}",
        f"Host: {str(remote).removesuffix(':80')}",
    ]
    fields = []
    for header in headers:
        found = _HEADER.fullmatch(header)
        if found is None:
            raise _bad("a header is malformed")
        fields.append((found[1].lower(), header, found[2]))
    dropped = {name.strip().lower() for kind, _, value in fields if kind == "connection" for name in value.split(",")}
    lines += [header for kind, header, _ in fields if kind not in _HOP_BY_HOP | dropped]
    lines += ["Connection: close", "", ""]
    return HttpProxyRequest(remote, "\r\n".join(lines).encode("latin-1"), is_tunnel=False)


def _bad(reason: str, status: str = "400") -> BadRequestError:
    return BadRequestError(reason, _response(status, reason))


def _response(status: str, reason: str) -> bytes:
    said = ascii(reason)[1:-1]
    body = f"zot: {said}\n"
    head = f"HTTP/1.1 {status} zot: {said}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()
