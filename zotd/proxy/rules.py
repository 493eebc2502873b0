"""Which hosts may be reached: the question, who answers it, and the answer of a list.

The proxy asks for the host that a command has named. When that name only leads to special addresses (loopback, private
and others, `zotd.proxy.addresses`), it asks for the address as well.
"""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Protocol

from msgspec import Struct

from zotd.proxy.addresses import special_kind
from zotd.proxy.errors import HostError
from zotd.proxy.hosts import HostPort, address_of, normal_host, parse_port

DECIDE_S = 600.0
"""How long a connection waits for a decision, in seconds: a person may have to be found. Clients wait less by themselves."""

WEB_PORTS = frozenset({80, 443})
"""The ports of a rule without one."""


class HostQuestion(Struct, frozen=True):
    """May commands connect there?"""

    remote: HostPort
    name: str = ""
    """The name that leads to `remote`, when that is a special address and has been allowed by its name."""


class HostDecision(Struct, frozen=True):
    """The answer."""

    allowed: bool
    reason: str = ""
    """Why not: a clause for the command, the log and persons."""


class HostDecider(Protocol):
    """Decides which hosts the commands of one jail may reach."""

    async def decide(self, question: HostQuestion) -> HostDecision:
        """Return the decision; the connection waits for it, for up to `DECIDE_S`.

        Asked for every connection, also for several at once; it remembers by itself what it wants to.
        """
        ...


class HostRule(Struct, frozen=True):
    """One line of an allow list."""

    host: str
    """A normal name or address; after `*.` a name whose subdomains are meant; `*` for all but special addresses."""
    network: IPv4Network | IPv6Network | None
    """The addresses, if the rule is for addresses."""
    ports: frozenset[int] | None
    """None: all."""

    def covers(self, remote: HostPort) -> bool:
        """Return whether the rule allows to connect there."""
        if self.ports is not None and remote.port not in self.ports:
            return False
        address = address_of(remote.host)
        if address is None:
            if self.host.startswith("*."):
                return remote.host.endswith(self.host[1:])
            return self.host in {"*", remote.host}
        if self.network is not None:
            return address in self.network
        return (self.host == "localhost" and address.is_loopback) or (self.host == "*" and not special_kind(address))


def parse_rule(text: str) -> HostRule:
    """Return the rule that is written `HOST`, `HOST:PORT` or `HOST:*`.

    HOST is a name, `*.` and a name, `*`, an address, or a network such as `10.0.0.0/8`; an IPv6 address or network with a
    port stands in brackets. Without a port the ports 80 and 443 are meant.

    Raises:
        HostError: it is written in another way.
    """
    try:
        return _parsed(text)
    except HostError as error:
        raise HostError(f"{text!a}: {error}") from error


def _parsed(text: str) -> HostRule:
    if "://" in text:
        raise HostError("write only the host of a URL, such as example.org")
    host, ports = _without_port(text)
    if host == "*":
        return HostRule(host, None, ports)
    if host.startswith("*."):
        return HostRule(f"*.{_name(host[2:])}", None, ports)
    if "/" in host:
        network = _network(host)
        return HostRule(str(network), network, ports)
    host = normal_host(host)
    address = address_of(host)
    return HostRule(host, None if address is None else ip_network(address), ports)


class AllowList:
    """Allows what one of its rules covers."""

    def __init__(self, rules: Iterable[HostRule]) -> None:
        """Decide by these rules; their order does not matter."""
        self._rules = tuple(rules)

    async def decide(self, question: HostQuestion) -> HostDecision:
        """See `HostDecider`; answers at once."""
        if any(rule.covers(question.remote) for rule in self._rules):
            return HostDecision(allowed=True)
        return HostDecision(allowed=False, reason=refusal(question))


def refusal(question: HostQuestion) -> str:
    """Return the clause that says that no rule covers this."""
    remote = question.remote
    address = address_of(remote.host)
    kind = None if address is None else special_kind(address)
    if kind is None:
        return f"{remote} is not on the list of allowed hosts"
    if question.name:
        return f"{question.name} leads to {kind}, and {remote} is not on the list of allowed hosts"
    return f"{remote} is {kind}, and not on the list of allowed hosts"


def _without_port(text: str) -> tuple[str, frozenset[int] | None]:
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]") or (":" in host and not host.endswith("]")):
        return text, WEB_PORTS
    return host, None if port == "*" else frozenset({parse_port(port)})


def _name(text: str) -> str:
    host = normal_host(text)
    if address_of(host) is not None:
        raise HostError("an address has no subdomains")
    return host


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text.removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise HostError(f"it is not a network: {error}") from error
