"""Who may knock at the WebSocket door, before anybody asks for a token: by Host and Origin, decided without I/O.

A web page that its visitor's browser has loaded from somewhere can send requests to this machine; what it cannot do is
choose what the browser writes into `Host` and `Origin`. Both are compared as a whole, never by a beginning or an end:
`127.0.0.1.nip.io`, `localhost@evil` and `localhost:PORT.evil.com` all begin right.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from zotd.config import WebsocketSection

LOCAL = ("localhost", "127.0.0.1", "[::1]")
"""What this machine calls itself."""

_USUAL_PORTS = {"http": 80, "https": 443}
"""Which browsers leave out of `Host`."""


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """The answer to a request that is refused."""

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
    """Values of `Host`, in lower case."""
    origins: Collection[str]
    """Values of `Origin`, besides that of a page that we have served."""

    @classmethod
    def of(cls, settings: WebsocketSection, port: int) -> "OriginCheck":
        """The gate of a door that listens on `port`."""
        scheme = "http" if settings.tls_cert is None else "https"
        hosts = set(_named(LOCAL, port, bare=port == _USUAL_PORTS[scheme]))
        hosts.update(_named((name.lower() for name in settings.hosts), port, bare=True))
        return cls(scheme, frozenset(hosts), frozenset(settings.origins))

    def refusal(self, target: str, hosts: Sequence[str], origins: Sequence[str]) -> HttpRefusal | None:
        """Why a request is refused; None when it may go on.

        `target`: what stands in its first line. `hosts`, `origins`: the values of all headers of that name.
        """
        if len(hosts) != 1 or not target.startswith("/"):
            return HttpRefusal(400, "a request needs one Host and a path")
        host = hosts[0].lower()
        if host not in self.hosts:
            return HttpRefusal(403, "this Host is not allowed")
        if len(origins) > 1 or (origins and origins[0] not in self.origins and origins[0] != f"{self.scheme}://{host}"):
            return HttpRefusal(403, "this Origin is not allowed")
        if "?" in target:  # history, proxies and logs keep what stands there: no token may, so nothing does
            return HttpRefusal(400, "the URL must not have a query; send the token in the first frame")
        return None


def _named(names: Iterable[str], port: int, *, bare: bool) -> Iterable[str]:
    """Each name with the port; with `bare` also as it stands, and only so when it has a port of its own."""
    for name in names:
        if bare:
            yield name
        if ":" not in name.rpartition("]")[2]:
            yield f"{name}:{port}"
