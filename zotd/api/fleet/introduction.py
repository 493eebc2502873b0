"""What two daemons say to each other first, and prove: that both have the fleet key (`zotd.fleet_key`). No I/O."""

import msgspec
from msgspec import UNSET

from zotd import fleet_key
from zotd.api.fleet.relay import DECODER, HELLO_ID, RelayClient, RelayError, hello_of, request
from zotd.fleet_key import FleetKey
from zotd.store.members import FleetMember
from zotd.wire import api
from zotd.wire.version import PROTOCOL


class FleetHello:
    """A hello of this daemon, and the answer to it. Each has a proof of its own, also over the same connection."""

    def __init__(self, member: FleetMember, key: FleetKey, certificate: str) -> None:
        """`certificate`: see `MessageSocket`."""
        self._member = member
        self._nonce = fleet_key.nonce()
        self._proof = key.caller_proof(member.home, self._nonce, certificate)
        self._expected = key.callee_proof(member.home, self._nonce, certificate)

    def hello(self, client: RelayClient | None) -> bytes:
        """Return the line that introduces the client; None: it comes later."""
        if client is None:
            proof = api.FleetProof("", self._nonce, self._proof, spare=True)
            return request("hello", HELLO_ID, api.Hello(protocol=(PROTOCOL, PROTOCOL), fleet=proof))
        proof = api.FleetProof(client.id, self._nonce, self._proof, client.account, user=client.user)
        return request("hello", HELLO_ID, hello_of(client, proof))

    def checked(self, line: str) -> api.HelloResult:
        """Return the answer; raises RelayError if it does not prove that the other daemon has the key."""
        answer = DECODER.decode(line)
        data = None if answer.data is UNSET else answer.data
        found = None if data is None else msgspec.json.decode(data, type=api.HelloResult)
        if found is None or not fleet_key.is_same(found.proof or "", self._expected):
            sentence = f"what answers at {self._member.address} does not have the fleet key"
            raise RelayError(sentence, is_lasting=True)
        return found
