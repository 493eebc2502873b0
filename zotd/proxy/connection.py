"""One connection of a client to the proxy, from its first byte to its record."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from zotd.clock import rfc3339
from zotd.proxy import client_hello, socks
from zotd.proxy.dialing import Dialed, Resolve, ask, dial
from zotd.proxy.errors import BadRequestError, HostError, RefusedHostError, UnreachableError
from zotd.proxy.hosts import HostPort, normal_host
from zotd.proxy.http import read_http_request
from zotd.proxy.outcomes import ProxyOutcome, ProxyRequest
from zotd.proxy.relay import CHUNK, Peer, Traffic, close, relay
from zotd.proxy.rules import HostDecider, HostQuestion
from zotd.proxy.traffic_log import TrafficRecord

REQUEST_S = 30.0
"""How long a client may take for its request, in seconds."""

ANSWER_S = 5.0
"""How long a client that is refused may take to read why, and to stop sending, in seconds."""


ENDED = "the command has ended"
"""The reason in the record of a request that was still open then."""


@dataclass(frozen=True, slots=True)
class ClientRights:
    """For whom connections are made, and where to."""

    who: str
    """Stands in the records."""
    decider: HostDecider
    resolve: Resolve
    record: Callable[[TrafficRecord], None]
    """Called at the end of each request; must not block."""


async def serve(client: Peer, rights: ClientRights) -> None:
    """Serve one request, and close the connection. Raises nothing that the client or a host causes."""
    try:
        async with asyncio.timeout(REQUEST_S):
            request = await _read(client)
    except BadRequestError as error:
        await _say(client, error.answer)
    except (TimeoutError, OSError, EOFError):
        pass  # a client that asks for nothing is told nothing
    else:
        await _Connection(client, request, rights).run()
    finally:
        await close(client.writer)


@dataclass(slots=True)
class _Connection:
    """A request that was read, and what became of it."""

    client: Peer
    request: ProxyRequest
    rights: ClientRights
    began: float = field(default_factory=time.monotonic)
    began_at: str = field(default_factory=rfc3339)
    outcome: ProxyOutcome = ProxyOutcome.UNREACHABLE
    reason: str = ENDED
    traffic: Traffic = field(default_factory=Traffic)
    address: str = ""

    async def run(self) -> None:
        """Connect, pass bytes on, and record what happened, also when this is cancelled."""
        try:
            await self._serve()
        finally:
            self.rights.record(self._record())

    async def _serve(self) -> None:
        try:
            host = await dial(self.request.remote, self.rights.decider, self.rights.resolve)
        except RefusedHostError as error:
            self.outcome, self.reason = ProxyOutcome.REFUSED, str(error)
        except UnreachableError as error:
            self.outcome, self.reason = ProxyOutcome.UNREACHABLE, str(error)
        else:
            await self._pass_on(host)
            return
        await _say(self.client, self.request.answer(self.outcome, self.reason))

    async def _pass_on(self, host: Dialed) -> None:
        self.outcome, self.address = ProxyOutcome.ALLOWED, str(host.address)
        self.client.writer.write(self.request.answer(ProxyOutcome.ALLOWED))
        try:
            await relay(self.client, Peer(host.reader, host.writer), self._beginning, self.traffic)
            self.reason = ""
        except RefusedHostError as error:
            self.outcome, self.reason = ProxyOutcome.REFUSED, str(error)
        except TimeoutError:
            self.reason = "nothing was sent for too long"
        except OSError:
            self.reason = "the connection was lost"
        finally:
            await close(host.writer)

    def _record(self) -> TrafficRecord:
        remote, traffic = self.request.remote, self.traffic
        return TrafficRecord(
            time=self.began_at,
            who=self.rights.who,
            host=remote.host,
            port=remote.port,
            outcome=self.outcome,
            reason=self.reason,
            address=self.address,
            sent=traffic.sent,
            received=traffic.received,
            seconds=round(time.monotonic() - self.began, 3),
        )

    async def _beginning(self) -> bytes:
        """Return what the host gets first, once the name in a first message of TLS is one that may be reached."""
        if not self.request.is_tunnel:
            return self.request.opening
        data = await self.client.reader.read(CHUNK)
        if not data or not client_hello.is_tls(data):
            return data
        try:
            while (name := client_hello.server_name(data)) is None:
                more = await self.client.reader.read(CHUNK)
                if not more:
                    return data
                data += more
            named = normal_host(name) if name else self.request.remote.host
        except HostError as error:
            raise RefusedHostError(str(error)) from error
        if named != self.request.remote.host:
            await ask(HostQuestion(HostPort(named, self.request.remote.port)), self.rights.decider)
        return data


async def _read(client: Peer) -> ProxyRequest:
    first = await client.reader.readexactly(1)
    if first[0] == socks.VERSION:
        return await socks.read_socks_request(client.reader, client.writer)
    return await read_http_request(first, client.reader)


async def _say(client: Peer, answer: bytes) -> None:
    """Send an answer, and read what the client still sends: closing before that would destroy the answer on its way."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(ANSWER_S):
            client.writer.write(answer)
            await client.writer.drain()
            client.writer.write_eof()
            while await client.reader.read(CHUNK):
                pass
