"""The daemon under a service manager: a socket that plays one, and a real `systemd --user` in namespaces of its own."""

import os
import socket
from contextlib import closing

import pytest

from zotd.testing.live_daemon import DaemonProcess

HEARD_S = 30.0
"""Longest wait for a word; the first takes the daemon's start."""


class Manager:
    """What a service manager hears from a daemon."""

    def __init__(self, wire):
        self._wire = wire
        self.heard: list[str] = []
        """Every assignment so far, in order."""

    def until(self, word, count=1):
        """What is heard up to the next assignment that begins with `word`."""
        found: list[str] = []
        while sum(one.startswith(word) for one in found) < count:
            found += self._wire.recv(4096).decode().split("\n")
        self.heard += found
        return found


@pytest.fixture
def address(request, tmp_path):
    """A `NOTIFY_SOCKET`: a path, or, for the parameter `abstract`, a name that only Linux has."""
    is_abstract = getattr(request, "param", "path") == "abstract"
    return f"@zot-{os.getpid()}-{tmp_path.name}" if is_abstract else str(tmp_path / "notify")


@pytest.fixture
def manager(address):
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as wire:
        wire.bind("\0" + address[1:] if address.startswith("@") else address)
        wire.settimeout(HEARD_S)
        yield Manager(wire)


@pytest.fixture
def daemon(tmp_path, address, manager):
    """Not started yet; its manager wants to hear from it within 0.6 s."""
    made = DaemonProcess(tmp_path, {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "600000"})
    yield made
    if made.pid:
        made.__exit__(None, None, None)
