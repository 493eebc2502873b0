"""The network as a tool of the daemon itself may use it: by the same rules, and in the same log, as the commands of a jail."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from zotd.clock import rfc3339
from zotd.proxy.connection import ClientRights
from zotd.proxy.dialing import addresses, ask
from zotd.proxy.errors import RefusedHostError, UnreachableError
from zotd.proxy.hosts import HostPort, normal_host
from zotd.proxy.outcomes import ProxyOutcome
from zotd.proxy.rules import HostQuestion
from zotd.proxy.traffic_log import TrafficRecord


@dataclass(slots=True)
class RuledConnection:
    """A host that may be reached; satisfies `zotd.core.web_access.WebConnection`."""

    addresses: tuple[str, ...]
    received: int = 0


class RuledAccess:
    """Opens the way to hosts for one call of a tool; satisfies `zotd.core.web_access.WebAccess`. Used on one event loop."""

    def __init__(self, rights: ClientRights) -> None:
        """`rights`: for whom, and which hosts."""
        self._rights = rights

    @asynccontextmanager
    async def connection(self, host: str, port: int) -> AsyncIterator[RuledConnection]:
        """See `WebAccess`. Records the connection when the block ends, also one that was refused."""
        remote = HostPort(normal_host(host), port)
        request = _Request(remote)
        try:
            await ask(HostQuestion(remote), self._rights.decider)
            found = await addresses(remote, self._rights.decider, self._rights.resolve)
            request.outcome, request.reason = ProxyOutcome.ALLOWED, "the connection was lost"
            request.connection = RuledConnection(tuple(map(str, found)))
            yield request.connection
            request.reason = ""
        except RefusedHostError as error:
            request.outcome, request.reason = ProxyOutcome.REFUSED, str(error)
            raise
        except UnreachableError as error:
            request.outcome, request.reason = ProxyOutcome.UNREACHABLE, str(error)
            raise
        finally:
            self._rights.record(request.record(self._rights.who))


@dataclass(slots=True)
class _Request:
    """A connection, and what became of it."""

    remote: HostPort
    outcome: ProxyOutcome = ProxyOutcome.UNREACHABLE
    reason: str = "the call has ended"
    connection: RuledConnection | None = None
    began: float = field(default_factory=time.monotonic)
    began_at: str = field(default_factory=rfc3339)

    def record(self, who: str) -> TrafficRecord:
        connection = self.connection
        return TrafficRecord(
            time=self.began_at,
            who=who,
            host=self.remote.host,
            port=self.remote.port,
            outcome=self.outcome,
            reason=self.reason,
            address=connection.addresses[0] if connection and connection.addresses else "",
            received=connection.received if connection else 0,
            seconds=round(time.monotonic() - self.began, 3),
        )
