"""Whether the host of a URL is this machine, where nothing has to be encrypted."""

from ipaddress import IPv4Address, IPv6Address, ip_address


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that `host` is; None if it is a name, or an address with a zone."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return None if "%" in host else address


def is_loopback(host: str) -> bool:
    """Whether `host` is a name of this machine; for `localhost` the resolved addresses have to be checked as well."""
    address = address_of(host)
    return host == "localhost" if address is None else address.is_loopback
