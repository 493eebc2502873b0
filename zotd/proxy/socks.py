"""SOCKS 5 (RFC 1928) as far as a proxy without passwords needs it: CONNECT, with names, IPv4 and IPv6 addresses."""

import asyncio
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from zotd.proxy.errors import BadRequestError, HostError
from zotd.proxy.hosts import HostPort, normal_host
from zotd.proxy.outcomes import ProxyOutcome

VERSION = 5
"""Also the first byte that a client sends, which no request of HTTP begins with."""

_NO_PASSWORD, _NO_METHOD = 0, 0xFF
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REPLIES = {ProxyOutcome.ALLOWED: 0, ProxyOutcome.REFUSED: 2, ProxyOutcome.UNREACHABLE: 4}
_GENERAL_FAILURE, _UNKNOWN_COMMAND, _UNKNOWN_ADDRESS = 1, 7, 8


@dataclass(frozen=True, slots=True)
class SocksProxyRequest:
    """A request in SOCKS 5; see `ProxyRequest`."""

    remote: HostPort
    opening: bytes = b""
    is_tunnel: bool = True

    def answer(self, outcome: ProxyOutcome, reason: str = "") -> bytes:  # noqa: ARG002  (the protocol has only numbers)
        """Return a reply; it has no room for the reason."""
        return _reply(_REPLIES[outcome])


async def read_socks_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> SocksProxyRequest:
    """Greet a client whose first byte, the version, has been read, and read its request.

    Raises:
        BadRequestError: it wants something else than a connection, or names no host.
        IncompleteReadError: the client has closed the connection.
    """
    methods = await reader.readexactly((await reader.readexactly(1))[0])
    if _NO_PASSWORD not in methods:
        raise BadRequestError("the SOCKS client wants to log in", bytes([VERSION, _NO_METHOD]))
    writer.write(bytes([VERSION, _NO_PASSWORD]))
    version, command, _, kind = await reader.readexactly(4)
    if version != VERSION:
        raise BadRequestError("the SOCKS request has another version", _reply(_GENERAL_FAILURE))
    host = await _host(kind, reader)
    port = int.from_bytes(await reader.readexactly(2), "big")
    if command != _CONNECT:
        raise BadRequestError("the SOCKS client wants something else than a connection", _reply(_UNKNOWN_COMMAND))
    if not port:
        raise BadRequestError("the SOCKS request has no port", _reply(_GENERAL_FAILURE))
    try:
        return SocksProxyRequest(HostPort(normal_host(host), port))
    except HostError as error:
        raise BadRequestError(str(error), _reply(_GENERAL_FAILURE)) from error


async def _host(kind: int, reader: asyncio.StreamReader) -> str:
    if kind == _IPV4:
        return str(IPv4Address(await reader.readexactly(4)))
    if kind == _IPV6:
        return str(IPv6Address(await reader.readexactly(16)))
    if kind == _NAME:
        return (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii", errors="replace")
    raise BadRequestError("the SOCKS request has an unknown kind of address", _reply(_UNKNOWN_ADDRESS))


def _reply(code: int) -> bytes:
    """The address in it, where the proxy has connected from, is for other commands than CONNECT."""
    return bytes([VERSION, code, 0, _IPV4, 0, 0, 0, 0, 0, 0])
