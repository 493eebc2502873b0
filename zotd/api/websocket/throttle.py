"""Rate limit for wrong tokens, per source address; without I/O.

Every token is checked, and a valid one is never refused, however often others at the same address fail. Only refusals
are delayed: each address has ten failures a minute that are refused at once, further ones a second later. The machine's
own address is no exception, because requests of web pages in a local browser come from there.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Network, ip_address

BURST = 10
"""Failures of an address that are refused at once: enough for a user who looks for a mistake in a configuration."""

REGAINED_PER_S = BURST / 60

DELAY_S = 1.0
"""Delay of further refusals, in seconds."""

MAX_SOURCES = 1024
"""Number of addresses remembered, in 0.3 MB; beyond that the one whose last failure is oldest is forgotten."""

_NETWORK_BITS = 64
"""Prefix length for IPv6: the smallest network that a customer gets, within which addresses can be changed freely."""


@dataclass(slots=True)
class _Source:
    allowance: float
    failed: float
    """Time of the last failure."""


class Throttle:
    """The failures of all sources."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` returns seconds of a monotonic clock."""
        self._now = now
        self._sources: OrderedDict[str, _Source] = OrderedDict()

    def failed(self, source: str) -> float:
        """Record a wrong token; return the delay of its refusal in seconds."""
        known = self._sources.get(source)
        left = BURST if known is None else self._allowance(known)
        self._sources[source] = _Source(max(0.0, left - 1), self._now())
        self._sources.move_to_end(source)
        if len(self._sources) > MAX_SOURCES:
            self._sources.popitem(last=False)
        return 0.0 if left >= 1 else DELAY_S

    def _allowance(self, known: _Source) -> float:
        return min(BURST, known.allowance + (self._now() - known.failed) * REGAINED_PER_S)


def source_of(address: str) -> str:
    """Return the unit that is limited: an IPv4 address, or the 64-bit network of an IPv6 address."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed), _NETWORK_BITS), strict=False))
