"""How often somebody may come with a wrong token, by the address that they come from; decided without I/O.

Each address has ten failures a minute, and one each second when these are used up; what comes in between is not heard.
This machine's own address is treated like any other: what runs in a browser comes from there, too. The one each second
is there for the owner of a good token at the same address: who has failed before locks nobody out. (Who goes on knocking
without a pause can, for who comes is not known before the token is shown.)
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Network, ip_address

BURST = 10
"""Failures of one address at once: a client that was configured wrong, and a person who looks for the mistake."""

REGAINED_PER_S = BURST / 60

PAUSE_S = 1.0
"""Between two failures when the burst is used up."""

MAX_SOURCES = 1024
"""Addresses that are remembered, 0.3 MB; of more, those that have failed longest ago are forgotten."""

_NETWORK_BITS = 64
"""Of an IPv6 address: what one customer has at least, and could change addresses in."""


@dataclass(slots=True)
class _Source:
    allowance: float
    failed: float
    """When, the last time."""


class Throttle:
    """What is known of all sources."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` gives seconds of a clock that never goes back."""
        self._now = now
        self._sources: OrderedDict[str, _Source] = OrderedDict()

    def hears(self, source: str) -> bool:
        """Whether a token from there is looked at."""
        known = self._sources.get(source)
        return known is None or self._allowance(known) >= 1 or self._now() - known.failed >= PAUSE_S

    def failed(self, source: str) -> None:
        """A token from there was looked at, and was none."""
        known = self._sources.get(source)
        left = BURST if known is None else self._allowance(known)
        self._sources[source] = _Source(max(0.0, left - 1), self._now())
        self._sources.move_to_end(source)
        if len(self._sources) > MAX_SOURCES:
            self._sources.popitem(last=False)

    def _allowance(self, known: _Source) -> float:
        return min(BURST, known.allowance + (self._now() - known.failed) * REGAINED_PER_S)


def source_of(address: str) -> str:
    """What an address counts as: an IPv4 address itself, of IPv6 its network of 64 bits."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed), _NETWORK_BITS), strict=False))
