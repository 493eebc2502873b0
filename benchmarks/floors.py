"""What nothing can be faster than on this machine, now: samples to put beside the daemon's."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

REQUEST = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"

PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}

PREAMBLE_BYTES = 8 * 1024
"""About what a request holds before its first message: system prompt and tools."""

WAL_FRAME_BYTES = 4096 + 24
"""What a small commit of SQLite appends to its log, at least."""

END = b"0\r\n\r\n"

RECEIVE_BYTES = 256 * 1024


class Http:
    """A kept-alive connection to the model, not decoded: the model's own time, and the kernel's."""

    def __init__(self, model_url: str, vendor: str, plan: str) -> None:
        self._path = f"/{plan}{PATHS[vendor]}".encode()
        self._socket = socket.create_connection(address(model_url))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def read(self, body_bytes: int = PREAMBLE_BYTES) -> tuple[float, float]:
        """Seconds from a request of that size to the first bytes of the reply, and to its end."""
        start = time.perf_counter()
        self._socket.sendall(REQUEST % (self._path, body_bytes, b" " * body_bytes))
        data = self._socket.recv(RECEIVE_BYTES)
        first = time.perf_counter() - start
        while not data.endswith(END):
            data = data[-len(END) :] + self._socket.recv(RECEIVE_BYTES)
        return first, time.perf_counter() - start


class Echo:
    """A round trip to `benchmarks.bare` over a Unix socket."""

    def __init__(self, path: str) -> None:
        self._socket = connected(path)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def trip(self) -> float:
        """Seconds there and back."""
        start = time.perf_counter()
        self._socket.sendall(b"ping\n")
        self._socket.recv(16)
        return time.perf_counter() - start


class Pipe:
    """Lines to a Python program that echoes them, and back."""

    WORD = "x" * 100
    """What a call that is compared with it says."""

    _LINE = b'{"type":"tool_call","id":"0123abcd-1","name":"echo","args":{"text":"%b"}}\n' % WORD.encode()

    def __init__(self) -> None:
        echo = "import os, sys\nfor line in sys.stdin.buffer: os.write(1, line)"
        self._process = subprocess.Popen(  # noqa: S603  (our own program)
            [sys.executable, "-c", echo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def trip(self, lines: int = 1) -> float:
        """Seconds until so many lines that were written at once are back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        start = time.perf_counter()
        self._process.stdin.write(self._LINE * lines)
        missing = len(self._LINE) * lines
        while missing:
            missing -= len(self._process.stdout.read(RECEIVE_BYTES))
        return time.perf_counter() - start


class Disk:
    """The two things that keeping something costs, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "floor", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._database = sqlite3.connect(folder / "floor.db", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("CREATE TABLE IF NOT EXISTS records (body BLOB)")

    def close(self) -> None:
        """Close both."""
        os.close(self._file)
        self._database.close()

    def sync(self) -> float:
        """Seconds to append what a small commit appends, and to wait until the disk has it."""
        start = time.perf_counter()
        os.write(self._file, b"\0" * WAL_FRAME_BYTES)
        os.fdatasync(self._file)
        return time.perf_counter() - start

    def commit(self) -> float:
        """Seconds of a small durable commit of SQLite, with nothing around it."""
        start = time.perf_counter()
        self._database.execute("INSERT INTO records VALUES (?)", (b"\0" * 500,))
        return time.perf_counter() - start


def address(url: str) -> tuple[str, int]:
    """Host and port."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def connected(path: str) -> socket.socket:
    """A blocking socket connected to `path`; the caller closes it."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock


def spawn(*command: str, env: dict[str, str] | None = None) -> float:
    """Seconds from the start of a program to its end; its output is thrown away, its complaints are not."""
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    start = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ if env is None else env, file_actions=null)
    _, status = os.waitpid(pid, 0)
    taken = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{' '.join(command)} failed with status {status}")
    return taken


def ended(*command: str) -> float:
    """Seconds from SIGTERM to the group of a program that has written something, to its end."""
    readable, writable = os.pipe()
    pid = os.posix_spawnp(
        command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writable, 1)], setpgroup=0
    )
    os.close(writable)
    os.read(readable, 1)
    start = time.perf_counter()
    os.killpg(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    taken = time.perf_counter() - start
    os.close(readable)
    return taken


def bare_python() -> float:
    """Seconds that the interpreter takes to do nothing."""
    return spawn(sys.executable, "-c", "pass")
