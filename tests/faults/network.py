"""Networks of their own for daemons and their server, whose links go down without a word, as a cable does that is pulled out.

    node one ──database0── hub (the server) ──database1── node two
        └──────────────────daemons──────────────────────────┘

Needs root and `ip`. A network namespace exists as long as its descriptor is open, and takes its ends of links with it.
"""

import asyncio
import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

CLONE_NEWNET = 0x40000000

COMMAND_S = 10

LOOPBACK = "127.0.0.1"

Result = TypeVar("Result")

_libc = ctypes.CDLL(None, use_errno=True)


def missing() -> str | None:
    """What is missing of what is needed; None if there is everything."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    if shutil.which("ip") is None:
        return "there is no program ip"
    try:
        Namespace().close()
    except OSError as error:
        return f"network namespaces cannot be made: {error.strerror}"
    return None


def enter(path: str) -> None:
    """Have this thread, and what it starts, use the network of the namespace at this path; raises OSError."""
    with Path(path).open("rb") as file:
        _check(_libc.setns(file.fileno(), CLONE_NEWNET))


class Namespace:
    """A network with a loopback, and nothing else at first."""

    def __init__(self) -> None:
        with ThreadPoolExecutor(
            1
        ) as thread:  # a thread that is in another namespace must not be used for anything else
            self._descriptor = thread.submit(_made).result()

    @property
    def path(self) -> str:
        """Where other processes find it."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def run(self, function: Callable[[], Result]) -> Result:
        """Call `function` in a thread that uses this network; sockets and processes that it makes keep it."""
        with ThreadPoolExecutor(1, initializer=enter, initargs=(self.path,)) as thread:
            return thread.submit(function).result()

    def ip(self, *words: str) -> None:
        """Run `ip` with these arguments."""
        self.run(lambda: _ip(words))

    def listener(self, host: str, port: int = 0) -> socket.socket:
        """Return a socket that listens in this network."""
        return self.run(lambda: socket.create_server((host, port)))

    def close(self) -> None:
        """Let it go when no process uses it any more."""
        os.close(self._descriptor)


class Link:
    """A cable between two namespaces, which runs through a third one and can be cut there, where neither side sees it."""

    def __init__(self, name: str, ends: Sequence[Namespace], middle: Namespace, network: str) -> None:
        """Connect two namespaces by interfaces with this name, which is at most 14 characters long.

        `network`: the first three numbers of the addresses.
        """
        self.addresses = tuple(f"{network}.{number}" for number in (1, 2))
        """Of the ends, in their order."""
        self._middle = middle
        self._plug = f"{name}1"
        self._bridge = name
        middle.ip("link", "add", name, "type", "bridge")
        middle.ip("link", "set", name, "up")
        for number, (end, address) in enumerate(zip(ends, self.addresses, strict=True)):
            plug = f"{name}{number}"
            end.ip("link", "add", name, "type", "veth", "peer", "name", plug, "netns", middle.path)
            end.ip("address", "add", f"{address}/24", "dev", name)
            end.ip("link", "set", name, "up")
            middle.ip("link", "set", plug, "master", name, "up")

    def close(self) -> None:
        """Lose all that is sent, in both directions."""
        self._middle.ip("link", "set", self._plug, "nomaster")

    async def open(self) -> None:
        """Transport packets again."""
        await asyncio.to_thread(self._middle.ip, "link", "set", self._plug, "master", self._bridge)


@dataclass(frozen=True, slots=True)
class Network:
    """The networks of a server and of two daemons."""

    hub: Namespace
    """The server's."""
    nodes: Sequence[Namespace]
    """The daemons'."""
    databases: Sequence[Link]
    """From each daemon to the server."""
    daemons: Link
    """From one daemon to the other."""
    middle: Namespace
    """Where the links are cut."""

    @classmethod
    def made(cls) -> Self:
        """Return new ones; takes 0.2 s."""
        with ExitStack() as stack:
            hub, one, two, middle = spaces = [Namespace() for _ in range(4)]
            for space in spaces:
                stack.callback(space.close)
            nodes = (one, two)
            databases = [
                Link(f"database{index}", (node, hub), middle, f"10.0.{index}") for index, node in enumerate(nodes)
            ]
            daemons = Link("daemons", nodes, middle, "10.1.0")
            stack.pop_all()
        return cls(hub, nodes, databases, daemons, middle)

    def close(self) -> None:
        """Let all of them go."""
        for space in (self.hub, *self.nodes, self.middle):
            space.close()


def _made() -> int:
    """Return the descriptor of a new namespace, in which this thread is now."""
    _check(_libc.unshare(CLONE_NEWNET))
    descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    _ip(("link", "set", "lo", "up"))
    return descriptor


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _ip(words: Sequence[str]) -> None:
    subprocess.run(["ip", *words], check=True, timeout=COMMAND_S)
