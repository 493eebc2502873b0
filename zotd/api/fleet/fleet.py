"""The other daemons of the database: which of them may speak for a client, and connections to them."""

from collections.abc import Sequence

from zotd import fleet_key
from zotd.api.fleet.address import stands_for_all
from zotd.api.fleet.relay import Relay, RelayClient
from zotd.fleet_key import FleetKey
from zotd.sessions.manager import Spawn
from zotd.store.members import FleetMember, FleetMembers
from zotd.wire.api import FleetProof


class Fleet:
    """What this daemon needs to forward clients, and to serve those of others."""

    def __init__(self, key: FleetKey, members: FleetMembers, certificate: str, spawn: Spawn) -> None:
        """`certificate`: `fleet_key.digest` of the one that the WebSocket door shows; empty without TLS."""
        self._key = key
        self._members = members
        self._certificate = certificate
        self._spawn = spawn

    def announce(self, address: str | None, door: str | None) -> Sequence[str]:
        """Tell the other daemons where this one is; return what keeps them from reaching it, one sentence each.

        `address`: the configured one. `door`: URL of the WebSocket door; None if it is closed.
        """
        if door is None:
            return [
                "other daemons cannot forward clients to this one: it has no open WebSocket door; set websocket.listen"
            ]
        if address is None and stands_for_all(door):
            return [f"other daemons cannot forward clients to this one at {door}; set fleet.address"]
        self._members.announce(address or door)
        return []

    def admits(self, proof: FleetProof) -> bool:
        """Whether a daemon speaks that has the key, and means this daemon."""
        expected = self._key.caller_proof(self._members.home, proof.nonce, self._certificate)
        return fleet_key.is_same(proof.proof, expected)

    def answer(self, proof: FleetProof) -> str:
        """Return the proof that this daemon has the key, too."""
        return self._key.callee_proof(self._members.home, proof.nonce, self._certificate)

    async def relay(self, member: FleetMember, client: RelayClient) -> Relay:
        """Connect to another daemon for a client of this one. The caller closes it.

        Raises:
            RelayError: the daemon does not answer, or has not the key.
        """
        from zotd.api.fleet.caller import call  # noqa: PLC0415  (imports aiohttp, which most daemons do not need)

        relay = await call(member, client, self._key)
        self._spawn(f"relay to {member.name}", relay.run())
        return relay
