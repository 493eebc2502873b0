"""The Unix socket: created so that it is never accessible to other users, and never taken from a running daemon.

Its directory is private (0700). A lock file is held as long as the daemon runs. The socket is bound under a temporary
name with umask 0177 and renamed, so it never has a mode wider than 0600 and is never missing. (With `bind` and `chmod`,
11 of 3,000 starts had a wider mode for a moment.) Peers with another uid are disconnected before a byte is read.
"""

import asyncio
import errno
import logging
import os
import socket
import stat
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

from zotd import paths, pid_lock
from zotd.api.connection import ServerConnection
from zotd.api.context import MAX_CONNECTIONS, DaemonContext
from zotd.api.descendants import ROLE, Descendant
from zotd.api.dispatch import Dispatcher
from zotd.api.door import Door
from zotd.process import descriptors, fdstore
from zotd.process.descent import Descent, descent
from zotd.wire.api import Role

log = logging.getLogger(__name__)

PROBE_S = 0.2
"""Timeout of a probe connection in seconds; the kernel accepts it, so even a busy daemon takes no longer."""

BACKLOG = 128

READ_BYTES = 256 * 1024
"""Most bytes of one read from a client."""

HEARTBEAT_S = 15.0
"""Interval of heartbeats to attached clients, in seconds (`docs/protocol.md`)."""

_AGAIN = "`systemctl --user restart zotd.socket` creates it again"

_UCRED = struct.Struct("3i")

_LOCAL_PEERCRED = 1
"""Option of macOS's `sys/un.h`, at level 0: a struct xucred, which begins with its version and the uid."""

_LOCAL_PEERPID = 2
"""Option of macOS's `sys/un.h`, at level 0: the pid of the peer."""


class SocketError(Exception):
    """The socket cannot be created; the message names the reason and the path."""


class RunningError(SocketError):
    """Another daemon is listening on the socket."""


class Socket:
    """The daemon's listening socket and its lock."""

    def __init__(self, path: Path, passed: socket.socket | None = None) -> None:
        """Lock the path and bind the socket. Its directory must exist and be private.

        `passed` is a listener that the service manager has bound at `path`; it is used instead, and not removed later.

        Raises:
            RunningError: another daemon uses the path.
            SocketError: the path is something else, which is left untouched; or `passed` is unsuitable.
        """
        self._path = path
        self._is_passed = passed is not None
        self._lock_path = path.with_name(path.name + ".lock")
        self._lock = self._hold_lock()
        try:
            self.listener = self._bind() if passed is None else self._checked(passed)
        except BaseException:
            os.close(self._lock)
            raise
        self._identity = _identity(path.lstat())

    def restore(self) -> socket.socket | None:
        """Create the socket again if it was removed; return the old listener, for the caller to close, or None.

        Done under the lock, which is acquired again if its file was removed as well, so no other daemon interferes.

        Raises:
            SocketError: the path is now used by something else or by another daemon, and is left untouched.
        """
        try:
            if _found(self._path) == self._identity:
                return None
            if self._is_passed:  # the service manager would not know of a socket that this daemon creates instead
                raise SocketError(f"the socket {self._path} of the service manager was removed or replaced; {_AGAIN}")
            paths.check_private_dir(str(self._path.parent))  # the directory may have been removed as well
            if _found(self._lock_path) != _identity(os.fstat(self._lock)):
                lock = self._hold_lock()
                os.close(self._lock)
                self._lock = lock
            old, self.listener = self.listener, self._bind()
            self._identity = _identity(self._path.lstat())
        except (OSError, paths.UnsafePathError) as error:
            raise SocketError(f"the socket {self._path} was removed and cannot be created again: {error}") from error
        return old

    def close(self) -> None:
        """Remove the socket if it is still ours, and release the lock. The lock file stays: see `flock(2)`."""
        self.listener.close()
        if not self._is_passed and _found(self._path) == self._identity:
            self._path.unlink(missing_ok=True)
        os.close(self._lock)

    def _hold_lock(self) -> int:
        try:
            return pid_lock.acquire(self._lock_path, wait_s=0)  # `store.home` has already waited for a dead daemon
        except pid_lock.LockedError as error:
            raise RunningError(f"zotd is already running with pid {error.holder} on {self._path}") from error

    def _bind(self) -> socket.socket:
        self._refuse_what_is_in_the_way()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        name = self._path.with_name(f".{os.getpid():x}")  # no longer than `zotd.sock`, whose path is known to fit
        name.unlink(missing_ok=True)  # from a daemon with the same pid that was killed before the rename
        mask = os.umask(0o177)
        try:
            try:
                listener.bind(str(name))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                # Out of inodes: reuse that of the stale socket, on which no process listens.
                self._path.unlink(missing_ok=True)
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

    def _checked(self, listener: socket.socket) -> socket.socket:
        """Check that clients can reach the service manager's listener, and other users cannot."""
        bound = os.fsdecode(listener.getsockname())
        if os.path.realpath(bound) != os.path.realpath(self._path):
            where = f"the service manager listens at {bound or 'no path'}, but clients connect to {self._path}"
            raise SocketError(f"{where}; run `zotctl service install` to rewrite the unit")
        try:
            found = self._path.lstat()
        except FileNotFoundError as error:
            raise SocketError(f"the socket {self._path} of the service manager was removed; {_AGAIN}") from error
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:  # connecting takes the right to write
            raise SocketError(f"{self._path} is open to other users: set SocketMode=0600 in zotd.socket")
        listener.setblocking(False)
        return listener

    def _refuse_what_is_in_the_way(self) -> None:
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise SocketError(f"{self._path} exists and is not a socket; move it away")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(PROBE_S)
            try:
                probe.connect(str(self._path))
            except OSError:
                return  # stale: its process has ended, and the lock is ours
        raise RunningError(f"another program listens on {self._path} without holding its lock; stop it first")


def passed_listener(env: Mapping[str, str]) -> socket.socket | None:
    """Return the listening Unix socket that the service manager has passed to this process, or None."""
    for number in chain.from_iterable(fdstore.inherited(env).values()):
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            continue
        found = socket.socket(fileno=number)
        is_stream = (found.family, found.type) == (socket.AF_UNIX, socket.SOCK_STREAM)
        if is_stream and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return found
        found.detach()  # a stored descriptor of another kind, which belongs to other code
    return None


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _found(path: Path) -> tuple[int, int] | None:
    """Return the identity of the file at this path, or None."""
    try:
        return _identity(path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return None


class UnixServer:
    """Accepts connections until it is closed."""

    def __init__(self, context: DaemonContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._connections: dict[ServerConnection, asyncio.Transport] = {}
        self._socket: Socket | None = None
        self._door: Door | None = None
        self._spare: int | None = None
        self._buffer = memoryview(bytearray(READ_BYTES))

    def start(self, place: Socket) -> None:
        """Start to accept connections; the caller closes the socket after `close`."""
        self._socket = place
        self._put_aside()
        self._door = Door(place.listener, self._enter)

    async def heartbeat(self) -> None:
        """Send heartbeats and check that the socket can still be found, until cancelled."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            self.look()
            for connection in list(self._connections):
                connection.heartbeat()

    def look(self) -> None:
        """Check that clients can find the socket, and create it again if it was removed."""
        if self._socket is None or self._door is None:
            return
        try:
            old = self._socket.restore()
        except SocketError as error:
            if self._context.doors.socket_hidden(str(error)):  # log it once, not with each heartbeat
                log.error("%s", error)  # noqa: TRY400  (a traceback would add nothing)
            return
        self._context.doors.socket_hidden("")
        if old is not None:
            log.warning("the socket had been removed; it was created again")
            self._door.move(self._socket.listener)
            old.close()

    def close(self) -> None:
        """Stop accepting, and close every connection after its output is sent."""
        if self._door is not None:
            self._door.close()
            self._door = None
            self._give_back()
        for connection in list(self._connections):
            connection.end()

    def accept(self, transport: asyncio.Transport) -> ServerConnection | None:
        """Return a connection for the peer, or None if it was refused."""
        uid, pid = peer_of(transport.get_extra_info("socket"))
        if uid != os.getuid():
            log.warning("refused a connection from uid %s, pid %s", uid, pid)
            transport.abort()
            return None
        if self._context.connections >= MAX_CONNECTIONS and not self._make_room():
            log.warning(
                "refused a connection from pid %s: the limit of %s connections is reached", pid, MAX_CONNECTIONS
            )
            transport.abort()
            return None
        if descriptors.is_short(transport.get_extra_info("socket").fileno()) and not self._make_room():
            log.warning("refused a connection from pid %s: too few descriptors are left (ulimit -n)", pid)
            transport.abort()
            return None
        try:
            line = self._line_of(pid)
        except OSError as error:
            log.warning("refused a connection from pid %s: the process is unknown (%s)", pid, error.strerror)
            transport.abort()
            return None
        peer = f"uid:{uid} pid:{pid}"
        connection = ServerConnection(
            transport,
            context=self._context,
            dispatcher=self._dispatcher,
            peer=peer,
            ceiling=Role.ADMIN if line is None else ROLE,
            confinement=None if line is None else Descendant(line.owners, self._context, peer),
        )
        self._connections[connection] = transport
        self._context.came()
        return connection

    def gone(self, connection: ServerConnection) -> None:
        """Forget a connection that has ended."""
        del self._connections[connection]
        self._context.went()
        if self._door is not None:
            self._door.freed()

    def _make_room(self) -> bool:
        """Disconnect the oldest connection that has never sent a line; False if there is none.

        Idle connections therefore cannot keep working clients out.
        """
        for connection, transport in self._connections.items():
            if not connection.has_spoken and not transport.is_closing():
                log.warning(
                    "connection %s (%s) was cut: it had sent nothing, and its place was needed",
                    connection.id,
                    connection.peer,
                )
                transport.abort()
                return True
        return False

    def _line_of(self, pid: int) -> Descent | None:
        """Return how the peer descends from us or an earlier daemon of this home; raises OSError if it is unknown.

        Determined now and not when it is needed, because the peer may have exited by then. `_give_back` frees the
        descriptor for the lookup: the peer may have taken the last one.
        """
        self._give_back()
        heritage = self._context.heritage
        try:
            found = descent(pid)
            return Descent(()) if found is None and heritage is not None and heritage.has(pid) else found
        finally:
            self._put_aside()

    def _put_aside(self) -> None:
        with suppress(OSError):  # another thread took the descriptor; the next lookup may find one
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _give_back(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _enter(self, peer: socket.socket) -> None:
        self._context.spawn("a new connection", self._serve(peer))

    async def _serve(self, peer: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: _Wire(self, self._buffer), peer)


class _Wire(asyncio.BufferedProtocol):
    """Carries bytes between a transport and its connection.

    Buffered: for each read, the transport of a plain protocol allocates 256 KiB.
    """

    def __init__(self, server: UnixServer, buffer: memoryview) -> None:
        """`buffer` is shared by all connections of the loop: it is empty again before the next one is read."""
        self._server = server
        self._buffer = buffer
        self._connection: ServerConnection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connection = self._server.accept(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint  # always -1
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._connection is not None:
            self._connection.received(bytes(self._buffer[:nbytes]))

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.paused()

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.resumed()

    def connection_lost(self, error: Exception | None) -> None:
        del error  # the reason makes no difference
        if self._connection is not None:
            self._connection.lost()
            self._server.gone(self._connection)
            self._connection = None


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return uid and pid of the peer as reported by the kernel; -1 for what it does not report."""
    if sys.platform == "darwin":
        version, owner = struct.unpack("2I", connection.getsockopt(0, _LOCAL_PEERCRED, struct.calcsize("2I")))
        return (owner if version == 0 else -1), connection.getsockopt(0, _LOCAL_PEERPID)
    pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return uid, pid
