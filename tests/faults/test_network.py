"""Links between networks, with which daemons are cut off."""

import socket
from contextlib import closing

import pytest

from tests.faults.network import LOOPBACK, Network, missing
from tests.needs import ABSENT

LACKING = missing()

SILENT_S = 0.3


@pytest.mark.skipif(LACKING is not None, reason=f"{ABSENT}{LACKING}")
async def test_a_closed_link_loses_what_is_sent_without_ending_connections_until_it_is_opened():
    with closing(Network.made()) as network:
        one, two = network.nodes
        listener = two.listener(network.daemons.addresses[1], 7777)
        sender = one.run(lambda: connected((network.daemons.addresses[1], 7777)))
        receiver, _ = listener.accept()
        with listener, sender, receiver:
            sender.sendall(b"before")
            assert receiver.recv(100) == b"before"
            network.daemons.close()
            sender.sendall(b"meanwhile")
            receiver.settimeout(SILENT_S)
            with pytest.raises(TimeoutError):
                receiver.recv(100)
            with pytest.raises(TimeoutError):
                one.run(lambda: connected((network.daemons.addresses[1], 7777), SILENT_S))
            await network.daemons.open()
            receiver.settimeout(None)
            assert receiver.recv(100) == b"meanwhile"


@pytest.mark.skipif(LACKING is not None, reason=f"{ABSENT}{LACKING}")
def test_a_network_has_a_loopback_of_its_own():
    with closing(Network.made()) as network:
        with network.hub.listener(LOOPBACK, 7777) as first, network.nodes[0].listener(LOOPBACK, 7777) as second:
            assert first.getsockname() == second.getsockname()
        with pytest.raises(ConnectionRefusedError):
            network.nodes[1].run(lambda: connected((LOOPBACK, 7777)))


def connected(address, timeout=None):
    return socket.create_connection(address, timeout)
