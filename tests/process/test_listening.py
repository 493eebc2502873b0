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
        return sorted(map(int, process.stdout.readline().split()))

    yield server
    for process in started:
        process.communicate("")


def test_the_ports_of_processes_with_a_mark_are_found(server):
    first, second = server("0123456789abcdef", 1), server("fedcba9876543210", 1)
    with socket.create_server(("127.0.0.1", 0)):  # of this process, which has no mark
        found = listening_ports({"0123456789abcdef", "fedcba9876543210", "0000000000000000"})
    assert found == {"0123456789abcdef": first, "fedcba9876543210": second, "0000000000000000": []}


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="IPv6: this machine has none")
def test_both_versions_of_ip_count(server):
    ports = server("0123456789abcdef", 2)
    assert listening_ports({"0123456789abcdef"}) == {"0123456789abcdef": ports}


def test_what_such_a_process_has_started_counts_too(server):
    ports = server("0123456789abcdef", 1, ["sh", "-c", 'exec 3<&0; "$@" <&3 & wait', "sh"])
    assert listening_ports({"0123456789abcdef"}) == {"0123456789abcdef": ports}


def test_without_marks_nothing_is_found():
    assert listening_ports(set()) == {}
