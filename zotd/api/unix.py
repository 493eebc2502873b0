"""The Unix socket: made so that it cannot be stolen, squatted or briefly open, and closed to other users.

The directory is 0700 and ours; a lock file is held for the daemon's life; the socket is bound under another name
with umask 0177 and renamed into place, so it is never wider than 0600 and never missing (binding and then changing
the mode was seen wider in 11 of 3,000 starts). Peers of another uid are dropped before a byte is read.
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
"""How long a living daemon may take to accept a probe; the kernel does it, not the program."""

BACKLOG = 128

HEARTBEAT_S = 15.0
"""Between the heartbeats to attached clients (`docs/protocol.md`)."""

_AGAIN = "`systemctl --user restart zotd.socket` creates it again"

_UCRED = struct.Struct("3i")

_LOCAL_PEERCRED = 1
"""`sys/un.h` of macOS, at level 0: a struct xucred, which begins with its version and the uid."""

_LOCAL_PEERPID = 2
"""The same: the pid of who has connected."""


class SocketError(Exception):
    """The socket cannot be made; the message says why and on what path."""


class RunningError(SocketError):
    """Another daemon is listening on the socket."""


class Socket:
    """The daemon's listening socket and its lock."""

    def __init__(self, path: Path, passed: socket.socket | None = None) -> None:
        """Lock and bind. The directory exists and is private.

        `passed`: a listener that the service manager has bound at `path`; it is used, and stays there after this.

        Raises:
            RunningError: a daemon lives there; it keeps its socket.
            SocketError: something else is in the way, and is left untouched; or what was passed is not what it must be.
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
        """Make the socket again if somebody has removed it; the old listener then, which the caller closes. Else None.

        Nobody else can be doing the same: it is done under the lock, and under a new one if that was removed as well.

        Raises:
            SocketError: something else is in its place, or another daemon's; it is left untouched.
        """
        try:
            if _found(self._path) == self._identity:
                return None
            if self._is_passed:  # ours in its place would be closed to whoever starts the next daemon
                raise SocketError(f"the socket {self._path} of the service manager was removed or replaced; {_AGAIN}")
            paths.check_private_dir(str(self._path.parent))  # it may have gone with what was in it
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
        """Remove the socket, if it is ours and still this one, and release the lock. Its file stays: see `flock(2)`."""
        self.listener.close()
        if not self._is_passed and _found(self._path) == self._identity:
            self._path.unlink(missing_ok=True)
        os.close(self._lock)

    def _hold_lock(self) -> int:
        try:
            return pid_lock.acquire(self._lock_path, wait_s=0)  # `store.home` has waited for a dead daemon's child
        except pid_lock.LockedError as error:
            raise RunningError(f"zotd is already running with pid {error.holder} on {self._path}") from error

    def _bind(self) -> socket.socket:
        self._refuse_what_is_in_the_way()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        name = self._path.with_name(f".{os.getpid():x}")  # not longer than `zotd.sock`, whose path is known to fit
        name.unlink(missing_ok=True)  # of a daemon with this pid that was killed before the rename; we hold the lock
        mask = os.umask(0o177)
        try:
            try:
                listener.bind(str(name))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                # No inode is left: the socket of the daemon before this one has one, and nobody listens there.
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
        """The service manager's listener, if clients find it and nobody else does."""
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
                return  # stale: whoever made it is gone, and the lock is ours
        raise RunningError(f"another program listens on {self._path} without holding its lock; stop it first")


def passed_listener(env: Mapping[str, str]) -> socket.socket | None:
    """The listening Unix socket that the service manager has passed to this process; None: it has passed none."""
    for number in chain.from_iterable(fdstore.inherited(env).values()):
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            continue
        found = socket.socket(fileno=number)
        is_stream = (found.family, found.type) == (socket.AF_UNIX, socket.SOCK_STREAM)
        if is_stream and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return found
        found.detach()  # somebody else's
    return None


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _found(path: Path) -> tuple[int, int] | None:
    """What a name means now; None: nothing."""
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

    def start(self, place: Socket) -> None:
        """Accept from now on; the caller closes the socket after this."""
        self._socket = place
        self._put_aside()
        self._door = Door(place.listener, self._enter)

    async def heartbeat(self) -> None:
        """Keep telling attached clients that the daemon lives, and see that others find it; run it in a task."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            self.look()
            for connection in list(self._connections):
                connection.heartbeat()

    def look(self) -> None:
        """See whether the socket can still be found, and make it again if somebody has removed it."""
        if self._socket is None or self._door is None:
            return
        try:
            old = self._socket.restore()
        except SocketError as error:
            if self._context.doors.socket_hidden(str(error)):  # once, and not with each heartbeat
                log.error("%s", error)  # noqa: TRY400  (the sentence says it all)
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
        """A connection for a peer that may have one; None when it was refused."""
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
        """Cut the oldest connection that has never sent a line; False when all of them have.

        So whoever opens connections and says nothing is in the way of nobody but those who do the same.
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
        """How a peer descends from us or an earlier daemon of this home; raises OSError when there is no telling.

        Now, and not when a command wants to know: of a peer that has left by then it could not be told any more. The
        descriptor for the look was put aside, for the last free one may be the peer's.
        """
        self._give_back()
        heritage = self._context.heritage
        try:
            found = descent(pid)
            return Descent(()) if found is None and heritage is not None and heritage.has(pid) else found
        finally:
            self._put_aside()

    def _put_aside(self) -> None:
        with suppress(OSError):  # another thread was faster; the next look may find one
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _give_back(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _enter(self, peer: socket.socket) -> None:
        self._context.spawn("a new connection", self._serve(peer))

    async def _serve(self, peer: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: _Wire(self), peer)


class _Wire(asyncio.Protocol):
    """Carries bytes between a transport and its connection."""

    def __init__(self, server: UnixServer) -> None:
        self._server = server
        self._connection: ServerConnection | None = None

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
        version, owner = struct.unpack("2I", connection.getsockopt(0, _LOCAL_PEERCRED, struct.calcsize("2I")))
        return (owner if version == 0 else -1), connection.getsockopt(0, _LOCAL_PEERPID)
    pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return uid, pid
