"""Which commands of a client are carried out here, and which by the daemon that has their session."""

import asyncio
import time
from functools import partial

from zotd.api.dispatch import Handler, Invocation
from zotd.api.fleet.fleet import Fleet
from zotd.api.fleet.passing import PassedAnswer, PassedClient, RelayError, passed
from zotd.api.fleet.relay import Relay
from zotd.sessions.opening import SessionElsewhereError
from zotd.wire.base import Frozen
from zotd.wire.errors import CommandError

AWAY_S = 20.0
"""How long a command waits for a daemon that does not answer. After 13 s its lease has expired, and another one, or this one,
has the session."""

RETRY_S = 0.5
"""Time between two attempts."""


class Forwarding:
    """The relays of one client."""

    def __init__(self, fleet: Fleet, client: PassedClient) -> None:
        self._fleet = fleet
        self._client = client
        self._relays: dict[int, Relay] = {}
        self._routes: dict[str, Relay] = {}
        """The relay of each session to which the client is attached there."""
        self._opening = asyncio.Lock()
        self._is_closed = False

    @property
    def is_following(self) -> bool:
        """Whether the client gets events of another daemon's session."""
        return bool(self._routes)

    async def carry_out(self, call: Invocation, params: Frozen, handler: Handler) -> None:
        """Respond to a command, or have the daemon that has its session respond; raises what `handler` raises."""
        session: str = getattr(params, "session", None) or ""
        deadline, refused = time.monotonic() + AWAY_S, None
        route = self._routes.get(session)
        if route is not None and not route.is_over:
            refusal = await self._ask(route, call, params)
            if refusal is None:
                return
            refused = route.member.number, refusal
        while True:
            try:
                call.respond(await handler(call, params))
                return
            except SessionElsewhereError as error:
                if error.session != session:  # the command is not about this session, or not about it alone
                    raise
                elsewhere = error
            if (
                refused is not None and refused[0] == elsewhere.member.number
            ):  # it has the session, and means what it said
                self._refuse(call, refused[1])
                return
            try:
                relay = await self._relay(elsewhere)
                refusal = await self._ask(relay, call, params)
            except RelayError as error:
                if error.is_lasting or time.monotonic() > deadline:
                    raise CommandError(
                        elsewhere.code, f"{elsewhere.sentence}; it cannot be reached: {error}"
                    ) from error
                await asyncio.sleep(RETRY_S)  # until another daemon has the session, or this one
                continue
            if refusal is None:
                return
            refused = elsewhere.member.number, refusal

    async def introduce(self) -> None:
        """Tell the other daemons what the client has said of itself."""
        for relay in self._relays.values():
            await relay.introduce()

    def close(self) -> None:
        """The client has gone."""
        self._is_closed = True
        for relay in self._relays.values():
            relay.close()

    async def _ask(self, relay: Relay, call: Invocation, params: Frozen) -> PassedAnswer | None:
        refusal = await relay.ask(call.name, params, call.request_id, partial(self._succeeded, call, params, relay))
        if refusal is None:
            call.hand_on()
        return refusal

    def _refuse(self, call: Invocation, refusal: PassedAnswer) -> None:
        self._client.write(passed(refusal, call.request_id))
        call.hand_on()

    def _succeeded(self, call: Invocation, params: Frozen, relay: Relay) -> None:
        session: str = getattr(params, "session", "")
        if call.name == "attach":
            self._routes[session] = relay
            relay.sessions.add(session)
        elif call.name == "detach":
            self._routes.pop(session, None)
            relay.sessions.discard(session)

    async def _relay(self, elsewhere: SessionElsewhereError) -> Relay:
        member = elsewhere.member
        async with self._opening:
            relay = self._relays.get(member.number)
            if relay is None or relay.is_over:
                relay = self._relays[member.number] = await self._fleet.relay(member, self._client)
            if self._is_closed:
                relay.close()
            return relay
