"""How often somebody may come with a wrong token, by the address that they come from; decided without I/O.

Every token is looked at, and a right one is never refused: others at the same address may fail as often as they like.
What waits is the refusal. Each address has ten failures a minute that are refused at once; the others are refused a
second later. This machine's own address is treated like any other: what runs in a browser comes from there, too.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Network, ip_address

BURST = 10
"""Failures of one address at once: a client that was configured wrong, and a person who looks for the mistake."""

REGAINED_PER_S = BURST / 60

DELAY_S = 1.0
"""Before a failure is refused when the burst is used up."""

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

    def failed(self, source: str) -> float:
        """A token from there was none; the seconds that its refusal has to wait."""
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
    """What an address counts as: an IPv4 address itself, of IPv6 its network of 64 bits."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed), _NETWORK_BITS), strict=False))
