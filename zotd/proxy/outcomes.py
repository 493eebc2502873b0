"""How a request to the proxy ends."""

from enum import StrEnum
from typing import Protocol

from zotd.proxy.hosts import HostPort


class ProxyOutcome(StrEnum):
    """What became of a request for a connection."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class ProxyRequest(Protocol):
    """A request that was read from a client, and the bytes that answer it in the client's protocol."""

    @property
    def remote(self) -> HostPort:
        """Where the client wants to connect."""
        ...

    @property
    def opening(self) -> bytes:
        """What the host gets first."""
        ...

    @property
    def is_tunnel(self) -> bool:
        """Whether the client speaks with the host itself, such as TLS; else the proxy has read its request."""
        ...

    def answer(self, outcome: ProxyOutcome, reason: str = "") -> bytes:
        """Return what the client gets; `reason` is a clause for all but `ALLOWED`."""
        ...
