"""Carries out a client's commands here, or has the daemon that has their session carry them out."""

import asyncio
import time
from functools import partial

import msgspec

from zotd.api.dispatch import Handler, Invocation
from zotd.api.fleet.fleet import Fleet
from zotd.api.fleet.relay import Relay, RelayClient, RelayedResponse, RelayError, response_line
from zotd.sessions.opening import SessionElsewhereError
from zotd.wire.base import Frozen
from zotd.wire.errors import Code, CommandError

AWAY_S = 20.0
"""How long a command waits for a daemon that does not answer. Within 16 s after its end, another daemon, or this
one, has the session."""

RETRY_S = 0.5
"""Time between two attempts."""


class Forwarding:
    """The relays of one client."""

    def __init__(self, fleet: Fleet, client: RelayClient) -> None:
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
        deadline = time.monotonic() + AWAY_S
        relay, refusal = self._routes.get(session), None
        losses = 0
        while True:
            if relay is not None and not relay.is_over:
                refusal = await self._ask(relay, call, params)
                if refusal is None:
                    return
            try:
                call.respond(await handler(call, params))
                return
            except SessionElsewhereError as error:
                if error.session != session:  # the command is not about this session, or not about it alone
                    raise
                elsewhere = error
            is_there = relay is not None and not relay.is_over and relay.member.number == elsewhere.member.number
            if refusal is not None and is_there:
                self._client.write(response_line(refusal, call.request_id))  # that daemon still has the session
                call.forwarded()
                return
            if refusal is not None and relay is not None and relay.is_over:
                losses += 1
                await self._wait_out(losses, elsewhere, deadline)
            relay, refusal = await self._reach(elsewhere, deadline), None

    async def introduce(self) -> None:
        """Tell the other daemons what the client has said of itself."""
        for relay in list(self._relays.values()):
            await relay.introduce()

    def close(self) -> None:
        """The client has gone."""
        self._is_closed = True
        for relay in self._relays.values():
            relay.close()

    async def _reach(self, elsewhere: SessionElsewhereError, deadline: float) -> Relay | None:
        """Return a relay to the daemon that has the session; None, after a while, if it does not answer."""
        try:
            return await self._relay(elsewhere)
        except RelayError as error:
            if error.is_lasting or time.monotonic() > deadline:
                raise CommandError(elsewhere.code, f"{elsewhere.sentence}; it cannot be reached: {error}") from error
        await asyncio.sleep(RETRY_S)
        return None

    async def _wait_out(self, losses: int, elsewhere: SessionElsewhereError, deadline: float) -> None:
        """Wait before an `attach` is sent again over another connection; not after the first loss, which a spare may have had."""
        if losses == 1:
            return
        if time.monotonic() > deadline:
            raise CommandError(
                elsewhere.code, f"{elsewhere.sentence}; the connections to it are lost before it answers"
            )
        await asyncio.sleep(RETRY_S)

    async def _relay(self, elsewhere: SessionElsewhereError) -> Relay:
        member = elsewhere.member
        async with self._opening:
            relay = self._relays.get(member.number)
            if relay is None or relay.is_over:
                relay = self._relays[member.number] = await self._fleet.relay(member, self._client)
            if self._is_closed:  # while it was being opened
                relay.close()
                raise RelayError("the client has disconnected", is_lasting=True)
            return relay

    async def _ask(self, relay: Relay, call: Invocation, params: Frozen) -> RelayedResponse | None:
        params = without_environment(params)
        succeeded = partial(self._succeeded, call, params, relay)
        try:
            refusal = await relay.ask(call.name, params, call.request_id, succeeded)
        except RelayError as error:  # the connection was lost before an `attach` was answered
            return RelayedResponse(call.name, success=False, error=str(error), code=Code.CONFLICT)
        if refusal is None:
            call.forwarded()
            self._fleet.used(relay.member)  # not earlier: making a connection would delay the answer
        return refusal

    def _succeeded(self, call: Invocation, params: Frozen, relay: Relay) -> None:
        session: str = getattr(params, "session", "")
        if call.name == "attach":
            self._routes[session] = relay
            relay.sessions.add(session)
        elif call.name == "detach":
            self._routes.pop(session, None)
            relay.sessions.discard(session)


def without_environment(params: Frozen) -> Frozen:
    """Return the parameters without the environment of a client of this machine: it has keys, and paths of this machine."""
    return msgspec.structs.replace(params, env=None) if "env" in params.__struct_fields__ else params
