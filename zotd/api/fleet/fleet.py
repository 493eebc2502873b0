"""The other daemons of the database: which of them may speak for a client, and connections to them."""

from collections.abc import Sequence

from zotd import fleet_key
from zotd.api.fleet.address import stands_for_all
from zotd.api.fleet.relay import Relay, RelayClient
from zotd.api.fleet.spares import Spares
from zotd.fleet_key import FleetKey
from zotd.sessions.manager import Spawn
from zotd.store.members import FleetMember, FleetMembers
from zotd.telemetry.figures import Counts
from zotd.wire.api import FleetProof
from zotd.wire.reports import MetricFamily, MetricSample


class Fleet:
    """What this daemon needs to forward clients, and to serve those of others."""

    def __init__(self, key: FleetKey, members: FleetMembers, certificate: str, spawn: Spawn) -> None:
        """`certificate`: `fleet_key.digest` of the one that the WebSocket door shows; empty without TLS."""
        self._key = key
        self._members = members
        self._certificate = certificate
        self._spawn = spawn
        self._spares = Spares(key, spawn)
        self._is_stopping = False
        self._connections = Counts(
            "zotd_fleet_connections", "Connections to other daemons for clients, by where they came from.", ("from",)
        )

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
        """Return a connection to another daemon for a client of this one, which closes it.

        Raises:
            RelayError: the daemon does not answer, or has not the key.
        """
        relay = await self._spares.take(member, client)
        if relay is not None:
            self._connections.add(1, "spare")
            return relay
        from zotd.api.fleet.caller import call  # noqa: PLC0415  (imports aiohttp, which most daemons do not need)

        relay = await call(member, client, self._key)
        self._spawn(f"relay to {member.name}", relay.run())
        self._connections.add(1, "new")
        return relay

    def used(self, member: FleetMember) -> None:
        """A client has got its answer from this daemon; the next one finds a connection ready. Returns at once."""
        if not self._is_stopping:
            self._spares.keep(member)

    def begin_stop(self) -> None:
        """Keep no connection ready any more."""
        self._is_stopping = True
        self._spares.close()

    def families(self) -> Sequence[MetricFamily]:
        """Return figures about the connections to other daemons."""
        help_text = "Connections to other daemons that are ready for a client."
        waiting = MetricFamily("zotd_fleet_spares", "gauge", help_text, [MetricSample({}, self._spares.ready)])
        return [self._connections.family(), waiting]
