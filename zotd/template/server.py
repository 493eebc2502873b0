"""The template process: imports the modules of programs, and forks one for each client of `thin`.

Run as `python -m zotd.template.server SOCKET MODULE...`. It has one thread, because a fork copies no other, and ends
when its standard input ends: its parent holds the other end.
"""

import argparse
import gc
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from zotd.template import program, thin

MAX_PROGRAMS = 256
"""Programs at the same time; further clients start theirs without this process."""

BACKLOG = 256

_UCRED = struct.Struct("3i")

_ANSWER = struct.Struct(thin.ANSWER)


class Template:
    """Accepts clients and forks; `run` returns in the server at its end, and in each fork with a request."""

    def __init__(self, path: Path) -> None:
        """Listen at `path`, in a private directory."""
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            self._listener.bind(str(path))
        finally:
            os.umask(mask)
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        self._wakeup, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wakeup_write = write
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._poll = select.poll()
        for descriptor in (0, self._wakeup, self._listener.fileno()):
            self._poll.register(descriptor, select.POLLIN)
        self._clients: dict[int, tuple[int, socket.socket]] = {}
        """Program's pid and connection, by the connection's descriptor."""

    def run(self) -> socket.socket | None:
        """Serve until standard input ends; then None. In a fork, the client's connection."""
        while True:
            ready = {descriptor for descriptor, _ in self._poll.poll()}
            if 0 in ready:
                self._path.unlink(missing_ok=True)
                return None
            if self._wakeup in ready:
                self._reap()  # before lost clients: a program that has ended is not killed
            for descriptor in ready & self._clients.keys():
                self._lost(descriptor)
            if self._listener.fileno() in ready and (connection := self._fork()) is not None:
                return connection

    def _fork(self) -> socket.socket | None:
        """Accept a client. In the fork return its connection, in the server None."""
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has left, or descriptors are exhausted: then it starts without this process
            return None
        if len(self._clients) >= MAX_PROGRAMS or _uid(connection) != os.geteuid():
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
        self._send(connection, pid)
        return None

    def _leave(self) -> None:
        """Close everything of the server in a fork."""
        signal.set_wakeup_fd(-1)
        self._listener.close()
        os.close(self._wakeup)
        os.close(self._wakeup_write)
        for _, other in self._clients.values():
            other.close()

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wakeup, 4096)
        by_pid = {pid: descriptor for descriptor, (pid, _) in self._clients.items()}
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if (descriptor := by_pid.get(pid)) is not None:
                    _, connection = self._clients[descriptor]
                    self._send(connection, os.waitstatus_to_exitcode(status))
                    self._forget(descriptor)

    def _lost(self, descriptor: int) -> None:
        """The client has ended before its program, by SIGKILL for example: end the program too."""
        pid, _ = self._clients[descriptor]
        self._forget(descriptor)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _forget(self, descriptor: int) -> None:
        _, connection = self._clients.pop(descriptor)
        self._poll.unregister(descriptor)
        connection.close()

    def _send(self, connection: socket.socket, value: int) -> None:
        with suppress(OSError):  # the client has ended; its connection says so as well
            connection.send(_ANSWER.pack(value))


def main(argv: Sequence[str]) -> int:
    """Serve at a socket with modules imported, as the command line says; in a fork, return the program's exit code."""
    parser = argparse.ArgumentParser(prog="python -m zotd.template.server", description=__doc__)
    parser.add_argument(
        "--detach", action="store_true", help="serve in a new session, and return as soon as it listens"
    )
    parser.add_argument("socket", type=Path)
    parser.add_argument("modules", nargs="+", metavar="MODULE")
    options = parser.parse_args(argv)
    template = Template(options.socket)
    if options.detach:
        if os.fork():
            return 0
        os.setsid()
    for module in options.modules:
        import_module(module)
    gc.collect()
    gc.disable()
    gc.freeze()  # a collection in a fork would write to all pages that it shares with this process
    connection = template.run()
    if connection is None:
        return 0
    try:
        request = program.receive(connection)
    except (OSError, struct.error, program.RequestError):
        return program.FAILED
    connection.close()
    return program.run(request)


def _uid(connection: socket.socket) -> int:
    _, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return int(uid)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
