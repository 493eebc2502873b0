"""The proxy: outlets for jails, and the connections of their commands.

jail ──> outlet.entrance() ──> a namespace that was made ahead, with a listener ──────────> connections, until
  └──if there is none──> outlet.admit() ──> a socket ──> `handover.py` in the jail ──> a listener ──┘  the command ends
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
from zotd.proxy.accepting import accept_until_end, readable
from zotd.proxy.connection import ClientRights
from zotd.proxy.dialing import Resolve, resolve_by_system
from zotd.proxy.namespaces import NamespaceStock, ReadyNamespace
from zotd.proxy.rules import HostDecider
from zotd.proxy.traffic_log import TrafficRecord
from zotd.tasks import contained

HANDOVER_S = 60.0
"""How long a command may take from its admission to its first instruction, in seconds: a busy machine starts Python in
some."""

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

    def entrance(self) -> "Entrance | None":
        """Return the way into a network namespace that was made ahead for the next command; None: there is none.

        Called on the event loop of the proxy.
        """
        return self._server.entrance(self._rights)


class Entrance:
    """The way into a network namespace, for one command."""

    def __init__(self, server: "ProxyServer", rights: ClientRights, namespace: ReadyNamespace) -> None:
        """Made by `Outlet.entrance`; takes ownership of `namespace`."""
        self._server = server
        self._rights = rights
        self._namespace: ReadyNamespace | None = namespace
        self.words = namespace.entry
        """Stand in front of a command that is to run there. They work until `close`, or until that command ends."""

    def entered(self, pid: int) -> None:
        """Serve the connections of the child `pid`, which was started by `words`, until it ends. It must not be reaped yet.

        Where that is impossible, for example without a free descriptor, a warning is logged, and the command fails or has no
        network.
        """
        assert self._namespace is not None, "an entrance is for one command"
        namespace, self._namespace = self._namespace, None
        self._server.serve(self._rights, namespace, pid)

    def close(self) -> None:
        """Give it up; does nothing after `entered`."""
        if self._namespace is not None:
            self._namespace.close()
            self._namespace = None


class ProxyServer:
    """Accepts what commands hand over, and serves their connections; made by `running_proxy`."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        folder: Path,
        record: Callable[[TrafficRecord], None],
        namespaces: NamespaceStock,
    ) -> None:
        """Start tasks in `group`, sockets in `folder`, which only the user can enter."""
        self._group = group
        self._folder = folder
        self._record = record
        self._namespaces = namespaces
        self._commands: set[asyncio.Task[None]] = set()
        self._filling: set[asyncio.Task[None]] = set()
        self._is_closed = False

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

    def entrance(self, rights: ClientRights) -> Entrance | None:
        """See `Outlet.entrance`."""
        namespace = None if self._is_closed else self._namespaces.take()
        if namespace is None:
            self._refill()
            return None
        return Entrance(self, rights, namespace)

    def serve(self, rights: ClientRights, namespace: ReadyNamespace, pid: int) -> None:
        """See `Entrance.entered`; takes ownership of `namespace`."""
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            namespace.close()
            log.warning("a command of %s fails or has no network, because it cannot be watched: %s", rights.who, error)
            return
        task = contained(self._group, f"proxy for {rights.who}", accept_until_end(namespace.listener, pidfd, rights))
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)

        def end(_: object) -> None:
            os.close(pidfd)
            namespace.close()
            # Now and not before: what makes the next ones does not compete with a command for the processor.
            self._refill()

        task.add_done_callback(end)

    async def prepare(self) -> int:
        """Fill the stock of network namespaces, and return how many there are; none where that is impossible."""
        await self._namespaces.fill()
        return self._namespaces.count

    def close(self) -> None:
        """End all connections; does not wait."""
        self._is_closed = True
        for task in (*self._commands, *self._filling):
            task.cancel()

    def _refill(self) -> None:
        if self._is_closed or not self._namespaces.is_low:
            return
        task = contained(self._group, "network namespaces", self._namespaces.fill())
        self._filling.add(task)
        task.add_done_callback(self._filling.discard)


@asynccontextmanager
async def running_proxy(
    folder: str, record: Callable[[TrafficRecord], None], *, namespaces: NamespaceStock | None = None
) -> AsyncIterator[ProxyServer]:
    """Run a proxy while the block runs; its end ends all connections.

    Args:
        folder: directory for sockets, which is made if it is missing; `zotd.paths.outlet_dir`.
        record: called with each request that has ended; must not block.
        namespaces: made ahead for commands, and closed at the end; each command makes its own if omitted.

    Raises:
        UnsafePathError: the directory is not as private as it must be.
    """
    paths.check_private_dir(folder)
    place = Path(folder).resolve()  # noqa: ASYNC240  (once, before anything is served)
    failure: Exception | None = None
    with closing(NamespaceStock(0) if namespaces is None else namespaces) as stock:
        async with asyncio.TaskGroup() as group:
            server = ProxyServer(group, place, record, stock)
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
            await accept_until_end(listener, pidfd, self._rights)
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
            await readable(connection.fileno())
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
