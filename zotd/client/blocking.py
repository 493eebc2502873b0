"""A blocking connection to the daemon that imports only a small part of the standard library.

    with connect(path) as connection:
        connection.call("ping")                      -> {"pong": True}
        connection.call("attach", session=id)
        for event in connection.events(): ...

Importing it costs 15 ms, nearly all of it for `json` and `socket`; the typed clients cost 60 ms. Frames are dicts here;
for types use `zotd.client.typed` or `zotd.client.client`.
"""

import json
import os
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator

from zotd.client.errors import (
    CallError,
    ClientError,
    ConnectionLostError,
    NoAnswerError,
    NotRunningError,
    NotTextError,
)

CONNECT_S = 1.0
"""Timeout for connecting, in seconds. The kernel connects at once if the listener's queue has room."""

SEND_S = 10.0
"""Time without the daemon reading, in seconds, after which a send fails."""

CALL_S = 30.0
"""Default timeout of a command in seconds. Commands answer at once, but a busy disk can delay a commit by seconds."""

CHUNK_BYTES = 256 * 1024
"""Size of one read; holds a burst of deltas in one system call."""

FRAME_LIMIT = 4 * 1024 * 1024
"""Longest frame that a daemon sends (`docs/protocol.md`); a longer one means that the peer is not a zot daemon."""

HELD_LIMIT = 100_000
"""Maximum number of events kept while waiting for a response."""

HELD_BYTES = 64 * 1024 * 1024
"""Maximum size of these events; bounds memory if the peer is not a zot daemon and sends long lines."""

_PEERCRED = struct.Struct("3i")
"""Linux `struct ucred`: pid, uid, gid."""

_XUCRED_UID = struct.Struct("2I")
"""The start of macOS `struct xucred`: version, uid."""

_LOCAL_PEERCRED = 0x001
"""macOS `sys/un.h`; the level is 0."""

Json = dict[str, object]
"""A decoded frame."""

Wait = Callable[[int, float | None], bool]
"""Waits until a descriptor is readable, at most for a time in seconds (None: no limit); returns False on timeout.

It may raise to interrupt the reader. No data is lost, and reading can continue afterwards.
"""


def open_socket(path: str, timeout_s: float = CONNECT_S) -> socket.socket:
    """Return a blocking socket that is connected to a daemon of this user, for the caller to close.

    Nothing has been sent. Sends fail with `BlockingIOError` when the daemon has not read for `SEND_S`.

    Raises:
        NotRunningError: no process listens there.
        NoAnswerError: a process listens but does not accept the connection.
        ClientError: another user's process listens, or the system refuses the connection.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Not settimeout, which makes the socket non-blocking: on Linux, connect would then fail at once if the
        # listener's queue is full.
        limit_sends(sock, timeout_s)
        sock.connect(path)
        _check_server(sock, path)
        limit_sends(sock, SEND_S)
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError):
            raise _connect_error(error, path) from error
        raise
    return sock


def limit_sends(sock: socket.socket, timeout_s: float) -> None:
    """Make sends fail with `BlockingIOError` if the peer reads nothing for `timeout_s` seconds."""
    seconds = int(timeout_s)
    sock.setsockopt(
        socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, int((timeout_s - seconds) * 1_000_000))
    )


def peer(sock: socket.socket) -> tuple[int | None, int]:
    """Return the pid (None where the system does not report it) and the user id of the listening process."""
    if sys.platform == "darwin":
        _, uid = _XUCRED_UID.unpack_from(sock.getsockopt(0, _LOCAL_PEERCRED, 76))
        return None, uid
    pid, uid, _ = _PEERCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size))
    return pid, uid


def connect(path: str, timeout_s: float = CONNECT_S) -> "Connection":
    """Return a connection to the daemon at `path`, for the caller to close; raises like `open_socket`."""
    return Connection(open_socket(path, timeout_s))


def readable(descriptor: int, timeout_s: float | None) -> bool:
    """Wait with `select.poll`; the default `Wait`."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))


class WholeLines:
    """Splits a byte stream into blocks of whole lines."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0

    def feed(self, chunk: bytes) -> bytes:
        """Return all lines that `chunk` completes as one block; empty if it completes none.

        Raises `ConnectionLostError` if a line is longer than `FRAME_LIMIT`.
        """
        cut = chunk.rfind(b"\n") + 1
        if cut == 0:
            self._hold(chunk)
            return b""
        block = b"".join((*self._held, chunk[:cut])) if self._held else chunk[:cut]
        self._held.clear()
        self._held_bytes = 0
        self._hold(chunk[cut:])
        return block

    def _hold(self, rest: bytes) -> None:
        if rest:
            self._held.append(rest)
            self._held_bytes += len(rest)
        if self._held_bytes > FRAME_LIMIT:
            raise ConnectionLostError("the daemon sent a frame over 4 MiB: is it zotd?")


class LineSocket:
    """Sends and receives whole lines over a socket, which it owns."""

    def __init__(self, sock: socket.socket, wait: Wait = readable) -> None:
        """Take ownership of `sock`; `wait` is called before each read."""
        self._sock = sock
        self._wait = wait
        self._lines = WholeLines()

    def send(self, line: bytes) -> None:
        """Send `line`, which has no newline; raises `ConnectionLostError`, or `NoAnswerError` after `SEND_S`."""
        try:
            self._sock.sendall(line + b"\n")
        except BlockingIOError as error:
            raise NoAnswerError(f"zotd has not read a request for {SEND_S:g} s") from error
        except OSError as error:
            raise ConnectionLostError(f"the connection to zotd ended: {error.strerror}") from error

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Return one or more whole lines; raises `NoAnswerError` on timeout, `ConnectionLostError` at the end."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            chunk = self.read(left)
            if chunk is None:
                raise NoAnswerError(f"zotd did not answer within {round(timeout_s or 0.0, 1):g} s")
            block = self._lines.feed(chunk)
            if block:
                return block

    def read(self, timeout_s: float | None = None) -> bytes | None:
        """Return what has arrived, not split into lines; None on timeout. Raises `ConnectionLostError` at the end."""
        if not self._wait(self._sock.fileno(), timeout_s):
            return None
        try:
            chunk = self._sock.recv(CHUNK_BYTES)
        except OSError as error:
            raise ConnectionLostError(f"the connection to zotd ended: {error.strerror}") from error
        if not chunk:
            raise ConnectionLostError("zotd closed the connection")
        return chunk

    @property
    def peer_pid(self) -> int | None:
        """Return the pid of the process that created the other end; None where the system does not report it."""
        try:
            return peer(self._sock)[0]
        except OSError:  # macOS, of a pair of sockets
            return None

    def fileno(self) -> int:
        """Return the socket's descriptor, for `select` and `poll`."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the socket. Runs continue in the daemon."""
        self._sock.close()


class Connection:
    """A connection to the daemon that sends and returns dicts. Not thread-safe."""

    def __init__(self, sock: socket.socket, wait: Wait = readable) -> None:
        """Take ownership of `sock`, as returned by `open_socket`."""
        self._wire = LineSocket(sock, wait)
        self._frames: deque[tuple[bytes, Json]] = deque()
        self._events: deque[tuple[bytes, Json]] = deque()
        self._held_bytes = 0
        self._last_id = 0

    def __enter__(self) -> "Connection":  # noqa: PYI034  (typing costs 4 ms)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Runs continue in the daemon."""
        self._wire.close()

    @property
    def server_pid(self) -> int | None:
        """Return the pid of the listening process; with socket activation that is systemd.

        None where the system does not report it, and for a daemon on another machine, since the other end of the socket
        is then in this process.
        """
        pid = self._wire.peer_pid
        return None if pid == os.getpid() else pid

    def fileno(self) -> int:
        """Return the descriptor to poll for more data. Read buffered events with `lines(0)` first."""
        return self._wire.fileno()

    def send(self, command: str, /, **fields: object) -> int:
        """Send a request without waiting for the response; return its id. Fields that are None are omitted.

        Raises `NotTextError`, and what `LineSocket.send` raises.
        """
        self._last_id += 1
        frame: Json = {"type": command, "id": self._last_id}
        frame.update((name, value) for name, value in fields.items() if value is not None)
        self._wire.send(_line(frame))
        return self._last_id

    def call(
        self,
        command: str,
        fields: Json | None = None,
        /,
        *,
        timeout_s: float = CALL_S,
        hear: Callable[[Json], None] | None = None,
        **more: object,
    ) -> Json:
        """Send a request and return the `data` of its response.

        Events that arrive before the response are passed to `hear` if given, else kept for `events`. The request
        contains `fields` and `more`, without those that are None.

        Raises:
            CallError: the daemon refused the request or could not parse it.
            NotTextError: a field cannot be encoded as UTF-8.
            NoAnswerError: no response within `timeout_s`.
            ConnectionLostError: the connection has ended.
        """
        request = self.send(command, **(fields or {}), **more)
        deadline = time.monotonic() + timeout_s
        while True:
            line, frame = self._next_frame(max(0.0, deadline - time.monotonic()))
            if frame.get("type") != "response":
                hear(frame) if hear else self._keep(line, frame)
            elif frame.get("id") == request or _is_unread(frame):
                return _data(frame)

    def events(self, timeout_s: float | None = None) -> Iterator[Json]:
        """Yield events in order, without end; raises `NoAnswerError` if none arrives within `timeout_s`."""
        for _, event in self.lines(timeout_s):
            yield event

    def lines(self, timeout_s: float | None = None) -> Iterator[tuple[bytes, Json]]:
        """Like `events`, but yield each with its undecoded line, without the newline."""
        while True:
            if self._events:
                line, event = self._events.popleft()
                self._held_bytes -= len(line)
                yield line, event
                continue
            line, frame = self._next_frame(timeout_s)
            if frame.get("type") != "response":  # a response here is late, after its call has timed out
                yield line, frame

    def waiting(self) -> list[Json]:
        """Return the buffered events that `events` and `lines` have not yielded yet, without waiting."""
        try:
            while True:
                line, frame = self._next_frame(0)
                if frame.get("type") != "response":
                    self._keep(line, frame)
        except NoAnswerError:
            return [event for _, event in self._events]

    def wait_for_end(self, timeout_s: float) -> None:
        """Wait until the daemon closes the connection; raises `NoAnswerError` after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        try:
            while True:
                self._next_frame(max(0.0, deadline - time.monotonic()))
        except ConnectionLostError:
            return

    def _next_frame(self, timeout_s: float | None) -> tuple[bytes, Json]:
        while not self._frames:
            block = self._wire.receive(timeout_s)
            self._frames.extend((line, _frame(line)) for line in block.split(b"\n") if line)
        return self._frames.popleft()

    def _keep(self, line: bytes, event: Json) -> None:
        if len(self._events) >= HELD_LIMIT or self._held_bytes + len(line) > HELD_BYTES:
            raise NoAnswerError(f"zotd sent {len(self._events)} events without a response")
        self._held_bytes += len(line)
        self._events.append((line, event))


def _check_server(sock: socket.socket, path: str) -> None:
    """Raise `ClientError` if another user's process listens: anyone can create a socket in a shared directory."""
    _, uid = peer(sock)
    if uid != os.geteuid():
        raise ClientError(f"{path} belongs to a daemon of user {uid}, not to yours: nothing was sent to it")


def _connect_error(error: OSError, path: str) -> ClientError:
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return NotRunningError(f"zotd is not running: nothing listens at {path}")
    if isinstance(error, BlockingIOError):
        return NoAnswerError(f"zotd hangs: it accepts no connection at {path}")
    return ClientError(f"cannot connect to {path}: {error.strerror}")


def _frame(line: bytes) -> Json:
    try:
        frame: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConnectionLostError("the daemon sent a line that is not JSON: is it zotd?") from error
    if not isinstance(frame, dict):
        raise ConnectionLostError("the daemon sent a line that is not a JSON object: is it zotd?")
    return frame


def _line(request: Json) -> bytes:
    try:
        # Without ensure_ascii=False a lone surrogate would become an escape, which the daemon rejects as invalid.
        return json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _not_text(request) from error


def _not_text(request: Json) -> NotTextError:
    """Return the error that names the first field which cannot be encoded."""
    for name, value in request.items():
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        try:
            words.encode()
        except UnicodeEncodeError:
            return NotTextError(f"the {name.replace('_', ' ')}", words)
    raise AssertionError("every field is UTF-8")


def _is_unread(response: Json) -> bool:
    """Return whether this response means that the daemon could not parse our line.

    It has no id then, and belongs to the pending request, since there is only one at a time.
    """
    return response.get("success") is False and response.get("id") is None


def _data(response: Json) -> Json:
    if response.get("success") is not True:
        raise CallError(str(response.get("code", "internal")), str(response.get("error", "the command failed")))
    data = response.get("data")
    return data if isinstance(data, dict) else {}
