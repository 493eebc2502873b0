"""The proxy: outlets for jails, and the connections of their commands.

jail ──> outlet.admit() ──> a socket ──> `handover.py` in the jail ──> a listener ──> connections
                                                                  └──> ends with the command
"""

import asyncio
import logging
import os
import secrets
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

from zotd import paths
from zotd.proxy.connection import ClientRights, serve
from zotd.proxy.dialing import Resolve, resolve_by_system
from zotd.proxy.http import HEAD_BYTES
from zotd.proxy.relay import Peer
from zotd.proxy.rules import HostDecider
from zotd.proxy.traffic_log import TrafficRecord
from zotd.tasks import contained

HANDOVER_S = 60.0
"""How long a command may take from its admission to its first instruction, in seconds: a busy machine starts Python in
some."""

MAX_CONNECTIONS = 256
"""Most connections of one command at the same time; those beyond are closed at once. Each takes two descriptors."""

NAME_BYTES = 8
"""Random bytes in the name of a socket, each of which is two digits."""

UCRED = struct.Struct("3i")
"""What the kernel says about a peer: its process, user and group."""

log = logging.getLogger(__name__)


class Outlet:
    """The way out for the commands of one jail, which are all that can use it."""

    def __init__(self, server: "ProxyServer", rights: ClientRights) -> None:
        """Made by `ProxyServer.outlet`."""
        self._server = server
        self._rights = rights

    def admit(self) -> str:
        """Return the path of a socket at which the next command hands over the listener of its network namespace.

        It can be used once, within `HANDOVER_S`. Called on the event loop of the proxy. Raises OSError.
        """
        return self._server.admit(self._rights)


class ProxyServer:
    """Accepts what commands hand over, and serves their connections; made by `running_proxy`."""

    def __init__(self, group: asyncio.TaskGroup, folder: Path, record: Callable[[TrafficRecord], None]) -> None:
        """Start tasks in `group`, sockets in `folder`, which only the user can enter."""
        self._group = group
        self._folder = folder
        self._record = record
        self._commands: set[asyncio.Task[None]] = set()

    def outlet(self, who: str, decider: HostDecider, resolve: Resolve = resolve_by_system) -> Outlet:
        """Return an outlet for a jail.

        Args:
            who: stands in the records of its connections.
            decider: says which hosts may be reached.
            resolve: finds the addresses of names.
        """
        return Outlet(self, ClientRights(who, decider, resolve, self._record))

    def admit(self, rights: ClientRights) -> str:
        """See `Outlet.admit`."""
        path = self._folder / secrets.token_hex(NAME_BYTES)
        waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            waiting.bind(str(path))
            waiting.listen(1)
        except BaseException:
            waiting.close()
            raise
        command = _Command(waiting, path, rights)
        task = contained(self._group, f"proxy for {rights.who}", command.run())
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)
        task.add_done_callback(lambda _: command.withdraw())  # also if it was cancelled before its first step
        return str(path)

    def close(self) -> None:
        """End all connections; does not wait."""
        for task in self._commands:
            task.cancel()


@asynccontextmanager
async def running_proxy(folder: str, record: Callable[[TrafficRecord], None]) -> AsyncIterator[ProxyServer]:
    """Run a proxy while the block runs; its end ends all connections.

    Args:
        folder: directory for sockets, which is made if it is missing; `zotd.paths.outlet_dir`.
        record: called with each request that has ended; must not block.

    Raises:
        UnsafePathError: the directory is not as private as it must be.
    """
    paths.check_private_dir(folder)
    place = Path(folder).resolve()  # noqa: ASYNC240  (once, before anything is served)
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        server = ProxyServer(group, place, record)
        try:
            yield server
        except Exception as error:  # noqa: BLE001  (raised below: the task group would wrap it in an ExceptionGroup)
            failure = error
        finally:
            server.close()
    if failure is not None:
        raise failure


class _Command:
    """A command that was admitted: until it hands over, and then until it ends."""

    def __init__(self, waiting: socket.socket, path: Path, rights: ClientRights) -> None:
        self._waiting = waiting
        self._path = path
        self._rights = rights
        self._clients: set[asyncio.Task[None]] = set()
        self._has_ended = False

    async def run(self) -> None:
        """Serve the connections of the command until it has ended. Nothing comes if it is not started."""
        try:
            async with asyncio.timeout(HANDOVER_S):
                listener, pidfd = await self._handed_over()
        except (TimeoutError, OSError) as error:
            log.warning("a command of %s did not reach the proxy: %s", self._rights.who, error)
            return
        finally:
            self.withdraw()
        try:
            await self._serve(listener, pidfd)
        finally:
            os.close(pidfd)

    def withdraw(self) -> None:
        """Take the socket away; a second call does nothing."""
        if self._waiting.fileno() >= 0:
            self._waiting.close()
            self._path.unlink(missing_ok=True)

    async def _handed_over(self) -> tuple[socket.socket, int]:
        """Return the listener, and a descriptor of the process that becomes the command."""
        loop = asyncio.get_running_loop()
        connection, _ = await loop.sock_accept(self._waiting)
        with closing(connection):
            await _readable(connection.fileno())
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
            if not descriptors:
                raise OSError("it has handed over nothing")
            listener = socket.socket(fileno=descriptors[0])
            try:
                listener.setblocking(False)
                pid, *_ = UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED.size))
                pidfd = os.pidfd_open(pid)
                connection.send(b"1")
            except BaseException:
                listener.close()
                raise
            return listener, pidfd

    async def _serve(self, listener: socket.socket, pidfd: int) -> None:
        async with asyncio.TaskGroup() as group:

            def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                if self._has_ended or len(self._clients) >= MAX_CONNECTIONS:
                    writer.transport.abort()
                    return
                task = contained(group, "a connection of the proxy", serve(Peer(reader, writer), self._rights))
                self._clients.add(task)
                task.add_done_callback(self._clients.discard)
                task.add_done_callback(lambda _: writer.transport.abort())  # also if it was cancelled before it began

            # Closed by hand: `async with` waits, from Python 3.12 on, for connections that are about to be cancelled.
            server = await asyncio.start_server(on_client, sock=listener, limit=HEAD_BYTES)
            try:
                await _readable(pidfd)  # the command has ended, and with it all others in its namespace
            finally:
                self._has_ended = True  # also for connections that were accepted a moment ago
                server.close()
                for task in self._clients:
                    task.cancel()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
