"""Connections to other daemons that are ready before a client needs them: one for each daemon that was needed lately.

    connecting ──> ready ──hello of a client──> its relay ──> gone
         └───────────┴── IDLE_S, or the end of this or the other daemon ──> gone

The other daemon knows that there is no client yet, and keeps the connection apart from its clients. Both daemons prove again
that they have the key when there is one. A failure until then affects no client: it gets a new connection. A daemon that has
refused a connection, or could not be reached, is left alone for IDLE_S.
"""

import asyncio
import logging
from contextlib import suppress

from zotd.api.fleet.introduction import FleetHello
from zotd.api.fleet.relay import MessageSocket, Relay, RelayClient, RelayError
from zotd.fleet_key import FleetKey
from zotd.sessions.manager import Spawn
from zotd.store.members import FleetMember

IDLE_S = 60.0
"""How long a connection waits for a client. A person who goes through sessions comes back sooner."""

MAX_SPARES = 8
"""Daemons to which connections are kept; each takes a descriptor and, with TLS, 0.3 MiB at both ends.

One more daemon gets none until another one's has ended: to replace them would cost a new connection for each command."""

ANSWER_S = 1.0
"""Longest wait for the answer to a hello over a connection that waited: if the other end is gone, a new connection finds out."""

log = logging.getLogger(__name__)


class Spares:
    """The connections that wait, and the tasks that own them."""

    def __init__(self, key: FleetKey, spawn: Spawn) -> None:
        self._key = key
        self._spawn = spawn
        self._kept: dict[FleetMember, Spare] = {}
        self._refused: dict[FleetMember, float] = {}
        """Until when daemons are left alone with which no connection got ready, by the clock of the event loop."""

    @property
    def ready(self) -> int:
        """How many connections wait for a client."""
        return sum(spare.is_ready for spare in self._kept.values())

    def keep(self, member: FleetMember) -> None:
        """Have a connection to this daemon ready soon, unless there is one, or none can be had. Returns at once."""
        if member in self._kept or len(self._kept) >= MAX_SPARES or self._refused.get(member, 0.0) > _now():
            return
        spare = self._kept[member] = Spare(member, self._key)
        self._spawn(f"spare connection to {member.name}", self._own(spare))

    async def take(self, member: FleetMember, client: RelayClient) -> Relay | None:
        """Return a relay for the client over the connection that waits, which runs; None if there is none.

        The hello was sent, and may stay without an answer.
        """
        spare = self._kept.get(member)
        if spare is None or not spare.is_ready:
            return None
        del self._kept[member]
        return await spare.give(client)

    def close(self) -> None:
        """End all connections that wait."""
        while self._kept:
            self._kept.popitem()[1].end()

    async def _own(self, spare: "Spare") -> None:
        try:
            await spare.run()
        finally:
            if self._kept.get(spare.member) is spare:
                del self._kept[spare.member]
            now = _now()
            self._refused = {member: until for member, until in self._refused.items() if until > now}
            if not spare.was_ready:
                self._refused[spare.member] = now + IDLE_S


class Spare:
    """A connection that waits; `run` owns it, also after it has got a client."""

    def __init__(self, member: FleetMember, key: FleetKey) -> None:
        self.member = member
        self._key = key
        self._limit = asyncio.timeout(IDLE_S)
        self._ready: tuple[MessageSocket, FleetHello] | None = None
        """Set while it waits; the proofs are made before somebody waits for them."""
        self._relay: Relay | None = None
        """Set when there is a client."""
        self._is_over = False
        self.was_ready = False
        """Whether the other daemon has taken it as a connection without a client."""

    @property
    def is_ready(self) -> bool:
        """Whether `give` may be called."""
        return self._ready is not None and not (self._ready[0].is_closed or self._limit.expired())

    def end(self) -> None:
        """Close it soon, unless it has a client."""
        self._is_over = True
        if self._ready is not None and not self._limit.expired():
            self._ready = None
            self._limit.reschedule(_now())

    async def give(self, client: RelayClient) -> Relay:
        """Introduce a client over it, once; return its relay, which `run` runs."""
        assert self._ready is not None
        (messages, introduction), self._ready = self._ready, None
        self._limit.reschedule(_now() + ANSWER_S)
        relay = self._relay = Relay(self.member, messages, client, introduction.checked)
        with suppress(ConnectionError):  # `run` notices
            await messages.send(introduction.hello(client))
        return relay

    async def run(self) -> None:
        """Connect, wait for a client, and run its relay."""
        from zotd.api.fleet.caller import connect  # noqa: PLC0415  (imports aiohttp, which most daemons do not need)

        try:
            messages, answer = await connect(self.member, self._key, None)
        except RelayError as error:  # the next client finds out for itself
            log.debug("there is no spare connection to %s: %s", self.member.name, error)
            return
        line = None
        try:
            if answer.spare:  # else it is a daemon that takes this connection for a client
                line = await self._first(messages)
        finally:
            if self._relay is not None:
                self._relay.welcomed(line)
            if self._relay is None or line is None:
                await messages.close()
        if self._relay is not None:
            await self._relay.run()

    async def _first(self, messages: MessageSocket) -> str | None:
        """Return the first message, which answers the hello of a client. None, or no client: it is over."""
        try:
            async with self._limit:
                if self._is_over:
                    return None
                self._ready = messages, FleetHello(self.member, self._key, messages.certificate)
                self.was_ready = True
                return await messages.receive()
        except TimeoutError:
            log.debug("the spare connection to %s is not used, or does not answer", self.member.name)
            return None
        finally:
            self._ready = None


def _now() -> float:
    return asyncio.get_running_loop().time()
