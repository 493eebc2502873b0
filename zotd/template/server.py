"""The template process: imports the modules of programs, and forks one for each client of `thin`.

Run as `python -m zotd.template.server SOCKET MODULE...`. It has one thread, because a fork copies no other. It ends when
its standard input ends, whose other end its parent holds; with `--idle`, when there was no program for that time. Of
several that are started for one socket at the same time, one imports anything.

When the code on disk has changed, a fork notices it and the process retires: it removes its socket, and ends with the
last of its programs.
"""

import argparse
import errno
import fcntl
import gc
import os
import pkgutil
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from zotd.paths import zot_home
from zotd.template import compaction, program, thin, vetting
from zotd.template.code_on_disk import CodeOnDisk

MAX_PROGRAMS = 256
"""Programs at the same time; further clients start theirs without this process."""

BACKLOG = 256

_UCRED = struct.Struct("3i")


class OtherServerError(Exception):
    """Another template process serves this socket."""


class Template:
    """Accepts clients and forks; `run` returns in the server at its end, and in each fork with a connection."""

    def __init__(self, path: Path, lock: int, *, idle_s: float | None = None) -> None:
        """Listen at `path`, in a private directory. End with standard input, or after `idle_s` without a program.

        `lock`: the descriptor that holds the lock of this socket's server, closed at the end.
        """
        self._path = path
        self._idle_s = idle_s
        self._lock = lock
        self._is_retired = False
        self._spare = _spare()
        self._wakeup, self._wakeup_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self._listener = _listen(path)  # now: who finds it may send a signal
        self._inode = path.stat().st_ino
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._poll.register(self._listener, select.POLLIN)
        if idle_s is None:
            self._poll.register(0, select.POLLIN)
        self._clients: dict[int, tuple[int, socket.socket]] = {}
        """Program's pid and connection, by the connection's descriptor."""

    def run(self) -> socket.socket | None:
        """Serve until the end; then None. In a fork, the client's connection."""
        while not self._is_retired or self._clients:
            waits = None if self._idle_s is None or self._clients else self._idle_s * 1000
            found = self._poll.poll(waits)
            ready = {descriptor for descriptor, _ in found}
            if self._wakeup in ready:
                self._reap()
            for descriptor in ready & self._clients.keys():
                self._forget(descriptor)  # the client has ended, so the kernel ends the program (`thin.LIFELINE`)
            if not found or 0 in ready:
                break
            if not self._is_retired and self._listener.fileno() in ready and (connection := self._fork()) is not None:
                return connection
        if not self._is_retired:
            self._retire()
        return None

    def _retire(self) -> None:
        """Accept no more clients, and let another template process take this place."""
        self._is_retired = True
        with suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()
        self._poll.unregister(self._listener)
        self._listener.close()
        os.close(self._lock)

    def _fork(self) -> socket.socket | None:
        """Accept a client. In the fork return its connection, in the server None."""
        try:
            connection, _ = self._listener.accept()
        except OSError as error:  # it has left, or it must start without this process
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                self._refuse()
            return None
        if len(self._clients) >= MAX_PROGRAMS or _peer(connection)[1] != os.geteuid():
            connection.close()
            return None
        try:
            pid = os.fork()
        except OSError:
            connection.close()
            return None
        if pid == 0:
            self._leave()
            return connection
        self._clients[connection.fileno()] = pid, connection
        self._poll.register(connection, 0)  # only its end: what it sends is for the fork
        return None

    def _refuse(self) -> None:
        """Close a client's connection without a free descriptor; it would wait, and this process find it again and again."""
        spare, self._spare = self._spare, -1
        with suppress(OSError):
            os.close(spare)
            self._listener.accept()[0].close()
        with suppress(OSError):
            self._spare = _spare()

    def _leave(self) -> None:
        """Close everything of the server in a fork."""
        signal.set_wakeup_fd(-1)
        self._listener.close()
        os.closerange(self._spare, self._spare + 1)  # there may be none
        for descriptor in (self._lock, self._wakeup, self._wakeup_write):
            os.close(descriptor)
        for _, other in self._clients.values():
            other.close()

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            if signal.SIGTERM in os.read(self._wakeup, 4096) and not self._is_retired:
                self._retire()
        by_pid = {pid: descriptor for descriptor, (pid, _) in self._clients.items()}
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if (descriptor := by_pid.get(pid)) is not None:
                    _, connection = self._clients[descriptor]
                    _send(connection, thin.ENDED, os.waitstatus_to_exitcode(status))
                    self._forget(descriptor)

    def _forget(self, descriptor: int) -> None:
        _, connection = self._clients.pop(descriptor)
        self._poll.unregister(descriptor)
        connection.close()


def main(argv: Sequence[str]) -> int:
    """Serve at a socket with modules imported, as the command line says; in a fork, return the program's exit code."""
    options = _parser().parse_args(argv)
    try:
        lock = _lock(options.socket)
    except OtherServerError:
        return 0
    if vetting.is_descendant([os.getpid(), *options.ancestors], Path(zot_home(os.environ))):
        return 1  # its forks would seem to be the user's own programs, which may approve
    began_ns = time.time_ns()
    for module in (*options.modules, *_modules_of(options.all_of)):
        import_module(module)
    _prepare([import_module(module).rehearse for module in options.rehearse])
    code = CodeOnDisk.of_loaded_modules(began_ns)
    template = Template(options.socket, lock, idle_s=options.idle)
    if options.detach:
        if os.fork():
            return 0
        os.setsid()
    gc.collect()
    gc.disable()
    compaction.fill_holes()
    gc.freeze()  # a collection in a fork would write to all pages that it shares with this process
    connection = template.run()
    return 0 if connection is None else _become(connection, code)


def _prepare(rehearsals: Sequence[Callable[[], None]]) -> None:
    """Do what programs do: once to load it, once to see which code it is, and once to let the interpreter optimize that."""

    def rehearse() -> None:
        for one in rehearsals:
            one()

    if rehearsals:
        rehearse()
        compaction.gather(compaction.run_code(rehearse))
        rehearse()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m zotd.template.server", description=__doc__)
    parser.add_argument("--detach", action="store_true", help="serve in a new session; return when it listens")
    parser.add_argument("--idle", type=float, metavar="S", help="end after this time in seconds without a program")
    parser.add_argument(
        "--all-of", action="append", default=[], metavar="PACKAGE", help="also import every module of this package"
    )
    parser.add_argument(
        "--rehearse", action="append", default=[], metavar="MODULE", help="also call the module's function `rehearse`"
    )
    parser.add_argument(
        "--ancestors",
        type=_pids,
        default=(),
        metavar="PID,...",
        help="processes that are above the client; serve nobody if a daemon is among them, or one has ended",
    )
    parser.add_argument("socket", type=Path)
    parser.add_argument("modules", nargs="+", metavar="MODULE")
    return parser


def _pids(text: str) -> Sequence[int]:
    return [int(pid) for pid in text.split(",")]


def _modules_of(packages: Iterable[str]) -> Sequence[str]:
    paths = {package: import_module(package).__path__ for package in packages}
    return [module.name for name, path in paths.items() for module in pkgutil.walk_packages(path, f"{name}.")]


def _become(connection: socket.socket, code: CodeOnDisk) -> int:
    """In a fork: examine the request, and run the program that it wants; returns the exit code."""
    client, _ = _peer(connection)
    try:
        _send(connection, thin.READY)
        request = program.receive(connection, client)
        _check(client, request, code)
        _send(connection, thin.STARTED, os.getpid())
        if connection.recv(len(thin.GO)) != thin.GO:
            return program.FAILED
    except vetting.NotForkedError as error:
        _send(connection, thin.REFUSED, reason=str(error))
        return program.FAILED
    except (OSError, struct.error, program.RequestError):
        return program.FAILED
    return program.run(request, connection)


def _check(client: int, request: program.ProgramRequest, code: CodeOnDisk) -> None:
    """Raise `NotForkedError` if the client must start its program cold."""
    if code.has_changed():
        os.kill(os.getppid(), signal.SIGTERM)
        raise vetting.NotForkedError("the code on disk has changed")
    vetting.check(client, request.environment)


def _lock(path: Path) -> int:
    """Return a descriptor that holds the lock of this socket's server. Raises OtherServerError."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise OtherServerError(f"{path} is served by another template process") from error
    return lock


def _spare() -> int:
    """Return a descriptor to close when one is needed."""
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _listen(path: Path) -> socket.socket:
    """Return a listener at `path`, which replaces one that a killed server has left."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(str(draft))
    finally:
        os.umask(mask)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    draft.replace(path)  # only now: a client that finds it can connect
    return listener


def _send(connection: socket.socket, kind: bytes, value: int = 0, reason: str = "") -> None:
    text = reason.encode(errors="replace")
    with suppress(OSError):  # the client has ended; its connection says so as well
        connection.send(struct.pack(thin.ANSWER, kind, value or len(text)) + text)


def _peer(connection: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the process that has connected."""
    pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return pid, uid


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
