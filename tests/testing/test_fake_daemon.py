"""The fake daemon that client tests talk to."""

import asyncio
import socket

import pytest

from zotd.testing.fake_daemon import serve

WAIT_S = 40.0
"""Timeout for the end of a connection, in seconds."""


@pytest.mark.parametrize("turns", range(6))
def test_a_client_that_connects_while_it_stops_is_cut(tmp_path, turns):
    path = str(tmp_path / "sock")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(WAIT_S)

        def started(daemon):
            client.connect(path)
            later(turns, daemon.stopped.set)

        asyncio.run(serve(path, started))
        assert is_at_its_end(client)


def later(turns, work):
    """Call `work` after so many turns of the event loop."""
    asyncio.get_running_loop().call_soon(*((later, turns - 1, work) if turns else (work,)))


def is_at_its_end(client):
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
