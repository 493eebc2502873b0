import os
import socket
import subprocess
import sys

import pytest

from zotd.process.census import MARK
from zotd.process.listening import listening_ports

SERVER = """
import socket, sys
found = [socket.create_server((host, 0), family=family) for host, family in
         (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))[: int(sys.argv[1])]]
print(*(one.getsockname()[1] for one in found), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server():
    """`server(mark, number)`: a process with that mark in its environment that listens on so many ports, and these."""
    started = []

    def server(mark, number, prefix=()):
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", SERVER, str(number)],
            env={**os.environ, MARK: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        return process.pid, sorted(map(int, process.stdout.readline().split()))

    yield server
    for process in started:
        process.communicate("")


def test_the_ports_of_groups_are_found(server):
    (first, its), (second, others) = server("0123456789abcdef", 1), server("", 1)
    with socket.create_server(("127.0.0.1", 0)):  # of this process, which is in none of them
        found = listening_ports({first: "0123456789abcdef", second: ""})
    assert found == {first: its, second: others}


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="IPv6: this machine has none")
def test_both_versions_of_ip_count(server):
    process, ports = server("0123456789abcdef", 2)
    assert listening_ports({process: "0123456789abcdef"}) == {process: ports}


def test_what_has_left_the_group_is_found_by_its_mark(server):
    process, ports = server("0123456789abcdef", 1, ["sh", "-c", 'exec 3<&0; setsid "$@" <&3 & wait', "sh"])
    assert listening_ports({process: "0123456789abcdef"}) == {process: ports}
    assert listening_ports({process: ""}) == {process: []}


def test_without_groups_nothing_is_found():
    assert listening_ports({}) == {}
