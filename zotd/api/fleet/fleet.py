"""This daemon among those of its database: who may speak for a client, and how the others are called."""

from collections.abc import Sequence

from zotd import fleet_key
from zotd.api.fleet.address import stands_for_all
from zotd.api.fleet.passing import PassedClient
from zotd.api.fleet.relay import Relay
from zotd.fleet_key import FleetKey
from zotd.sessions.manager import Spawn
from zotd.store.members import FleetMember, FleetMembers
from zotd.wire.api import PassedOn


class Fleet:
    """The fleet, as far as this daemon has to know it."""

    def __init__(self, key: FleetKey, members: FleetMembers, certificate: str, spawn: Spawn) -> None:
        """`certificate`: `fleet_key.digest` of the one that the WebSocket door shows; empty without TLS."""
        self._key = key
        self._members = members
        self._home = members.home
        self._certificate = certificate
        self._spawn = spawn

    def announce(self, address: str | None, door: str | None) -> Sequence[str]:
        """Tell the other daemons where this one is; return what keeps them from reaching it, one sentence each.

        `address`: the configured one. `door`: URL of the WebSocket door; None if it is closed.
        """
        if door is None:
            return [
                "other daemons cannot pass clients on to this one: it has no open WebSocket door; set websocket.listen"
            ]
        if address is None and stands_for_all(door):
            return [f"other daemons cannot pass clients on to this one at {door}; set fleet.address"]
        self._members.announce(address or door)
        return []

    def admits(self, passed: PassedOn) -> bool:
        """Whether a daemon with the key speaks, and has meant this one."""
        return fleet_key.is_same(passed.proof, self._key.caller_proof(self._home, passed.nonce, self._certificate))

    def answer(self, passed: PassedOn) -> str:
        """Return the proof that this daemon has the key, too."""
        return self._key.callee_proof(self._home, passed.nonce, self._certificate)

    async def relay(self, member: FleetMember, client: PassedClient) -> Relay:
        """Connect to another daemon for a client of this one. The caller closes it.

        Raises:
            RelayError: the daemon does not answer, or has not the key.
        """
        from zotd.api.fleet.caller import call  # noqa: PLC0415  (imports aiohttp, which most daemons do not need)

        relay = await call(member, client, self._key)
        self._spawn(f"relay to {member.name}", relay.run())
        return relay
