"""Names of hosts, in one spelling: lower case, ASCII, without a trailing dot, and addresses as `ipaddress` writes them.

Resolvers read `2130706433`, `0x7f.1` and `0177.0.0.1` as 127.0.0.1. What may be such an address is turned into one here,
so that no spelling is compared as a name and then resolved as an address.
"""

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from zotd.proxy.errors import HostError

Address = IPv4Address | IPv6Address

MAX_NAME = 253
"""Longest name of a host in characters (RFC 1035)."""

_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")

_NUMBER = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)")
"""A name whose last label is a number is an address for browsers and resolvers, or nothing."""

_DEVIATIONS = frozenset("ßς\u200c\u200d")
"""Characters that Python's IDNA (2003) maps to others, and current resolvers (2008) do not: another host would be meant."""


class HostPort(NamedTuple):
    """Where a command wants to connect."""

    host: str
    """A name or an address, as `normal_host` returns it."""
    port: int

    def __str__(self) -> str:
        """As in a URL, with an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def normal_host(text: str) -> str:
    """Return a name or an address in the only spelling that is compared.

    Raises:
        HostError: it is neither.
    """
    shown = ascii(text)
    if text.startswith("[") and text.endswith("]"):
        return str(_ipv6(text[1:-1], shown))
    if ":" in text:
        return str(_ipv6(text, shown))
    name = _ascii(text, shown).removesuffix(".")
    if _NUMBER.fullmatch(name):
        return _ipv4(name, shown)
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise HostError(f"{shown} is not a name of a host")
    return name


def parse_authority(text: str, default_port: int | None = None) -> HostPort:
    """Return what `host:port` means; without a port `default_port`, if there is one. Raises HostError."""
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        if default_port is None:
            raise HostError(f"{text!a} has no port")
        return HostPort(normal_host(text), default_port)
    if ":" in host and not host.startswith("["):
        raise HostError(f"{text!a} is an IPv6 address without brackets")
    return HostPort(normal_host(host), parse_port(port))


def parse_port(text: str) -> int:
    """Return a number from 1 to 65535. Raises HostError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise HostError(f"{text!a} is not a port")
    return int(text)


def address_of(host: str) -> Address | None:
    """Return the address that a normal host is; None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _ascii(text: str, shown: str) -> str:
    if text.isascii():
        return text.lower()
    if _DEVIATIONS & set(text.lower()):
        raise HostError(f"{shown} means different hosts to different programs; write it in ASCII, with xn--")
    try:
        return text.encode("idna").decode().lower()
    except UnicodeError as error:
        raise HostError(f"{shown} is not a name of a host") from error


def _ipv4(name: str, shown: str) -> str:
    try:
        return str(IPv4Address(socket.inet_aton(name)))
    except OSError as error:
        raise HostError(f"{shown} is not an address") from error


def _ipv6(text: str, shown: str) -> Address:
    """An IPv4 address that is written as IPv6 is the IPv4 address: the kernel connects to it."""
    try:
        address = IPv6Address(text)
    except ValueError as error:
        raise HostError(f"{shown} is not an address") from error
    if address.scope_id is not None:
        raise HostError(f"{shown} names an interface of this machine")
    return address.ipv4_mapped or address
