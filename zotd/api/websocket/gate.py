"""Checks `Host` and `Origin` of requests to the WebSocket door, before a token is looked at. No I/O.

A web page from anywhere can make its visitor's browser send requests to this machine, but it cannot choose what the
browser writes into `Host` and `Origin`. Both are compared as a whole, never by prefix or suffix: `127.0.0.1.nip.io`,
`localhost@evil` and `localhost:PORT.evil.com` all begin like allowed values.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from zotd.config import WebsocketSection

LOCAL = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine for itself."""

_USUAL_PORTS = {"http": 80, "https": 443}
"""Default ports, which browsers omit in `Host`."""


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """The response to a refused request."""

    status: int
    """HTTP status code."""
    sentence: str
    """Explanation; must not reveal which values would be accepted."""


@dataclass(frozen=True, slots=True)
class OriginCheck:
    """Checks the `Host` and `Origin` of a request against the configured values."""

    scheme: str
    """`http` or `https`."""
    hosts: Collection[str]
    """Allowed values of `Host`, in lower case."""
    origins: Collection[str]
    """Allowed values of `Origin`, in addition to that of our own page."""

    @classmethod
    def of(cls, settings: WebsocketSection, port: int) -> "OriginCheck":
        """Create the checks for a door that listens on `port`."""
        scheme = "http" if settings.tls_cert is None else "https"
        hosts = set(_named(LOCAL, port, bare=port == _USUAL_PORTS[scheme]))
        hosts.update(_named((name.lower() for name in settings.hosts), port, bare=True))
        return cls(scheme, frozenset(hosts), frozenset(settings.origins))

    def refusal(self, target: str, hosts: Sequence[str], origins: Sequence[str]) -> HttpRefusal | None:
        """Return why a request is refused, or None if it is allowed.

        `target` is from the request line; `hosts` and `origins` are the values of all headers of that name.
        """
        if len(hosts) != 1 or not target.startswith("/"):
            return HttpRefusal(400, "a request needs one Host and a path")
        host = hosts[0].lower()
        if host not in self.hosts:
            return HttpRefusal(403, "this Host is not allowed")
        if len(origins) > 1 or (origins and origins[0] not in self.origins and origins[0] != f"{self.scheme}://{host}"):
            return HttpRefusal(403, "this Origin is not allowed")
        if "?" in target:  # browser history, proxies and logs keep queries, so none is accepted: it could be a token
            return HttpRefusal(400, "the URL must not have a query; send the token in the first frame")
        return None


def _named(names: Iterable[str], port: int, *, bare: bool) -> Iterable[str]:
    """Return each name with the port; with `bare` also without it, and unchanged if it has a port of its own."""
    for name in names:
        if bare:
            yield name
        if ":" not in name.rpartition("]")[2]:
            yield f"{name}:{port}"
