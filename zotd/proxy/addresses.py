"""Which addresses are not simply a machine on the Internet."""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from zotd.proxy.hosts import Address

SPECIAL: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "an unspecified address"),
    ("10.0.0.0/8", "a private address"),
    ("100.64.0.0/10", "a private address"),  # of providers; the metadata of Alibaba are at 100.100.100.200
    ("127.0.0.0/8", "a loopback address"),
    ("168.63.129.16/32", "an address of a cloud's metadata"),  # Azure
    ("169.254.0.0/16", "a link-local address"),  # the metadata of most clouds are at 169.254.169.254
    ("172.16.0.0/12", "a private address"),
    ("192.0.0.0/24", "a reserved address"),  # the metadata of Oracle are at 192.0.0.192
    ("192.0.2.0/24", "a reserved address"),
    ("192.88.99.0/24", "a reserved address"),
    ("192.168.0.0/16", "a private address"),
    ("198.18.0.0/15", "a private address"),
    ("198.51.100.0/24", "a reserved address"),
    ("203.0.113.0/24", "a reserved address"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "a reserved address"),
    ("::/128", "an unspecified address"),
    ("::1/128", "a loopback address"),
    ("64:ff9b:1::/48", "a private address"),
    ("100::/64", "a reserved address"),
    ("2001::/23", "a reserved address"),  # Teredo among others
    ("2001:db8::/32", "a reserved address"),
    ("3fff::/20", "a reserved address"),
    ("5f00::/16", "a reserved address"),
    ("fc00::/7", "a private address"),  # the metadata of AWS are at fd00:ec2::254
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a private address"),
    ("ff00::/8", "a multicast address"),
)
"""Networks of the registries for special purposes (RFC 6890 and later), and what one is called in messages. Not those of
`ipaddress`, which differ between versions of Python."""

OWN = "an address of this machine"

_NETWORKS = tuple((ip_network(network), kind) for network, kind in SPECIAL)
_COMPATIBLE, _NAT64 = ip_network("::/96"), ip_network("64:ff9b::/96")


def special_kind(address: Address) -> str | None:
    """Return what is special about an address, such as "a private address"; None for an ordinary one. 20 us.

    An IPv6 address that leads to an IPv4 address (mapped, NAT64, 6to4, Teredo) is as special as that one is.
    """
    for each in (address, *_embedded(address)):
        for network, kind in _NETWORKS:
            if each in network:
                return kind
    return OWN if _is_own(address) else None


def _embedded(address: Address) -> Iterator[IPv4Address]:
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64 or address in _COMPATIBLE:
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def _is_own(address: Address) -> bool:
    """Whether the kernel delivers to this machine: it then also sends from this address. No packet is sent."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0]) == address
    except OSError:
        return False  # there is no way to it at all
