"""A blocking connection to the daemon: the standard library, and of it only what `zotctl ping` can afford.

    with connect(path) as connection:
        connection.call("ping")                      -> {"pong": True}
        connection.call("attach", session=id)
        for event in connection.events(): ...

No asyncio, no msgspec, no dataclasses: importing this costs 15 ms, the typed clients cost 60 (`json` and `socket`
are all of it). Frames are dicts here; whoever wants types uses `zotd.client.typed` or `zotd.client.client`.
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
"""How long to wait for room in the listener's queue; the kernel connects at once when there is any."""

SEND_S = 10.0
"""How long the daemon may leave a request unread before it counts as hanging."""

CALL_S = 30.0
"""How long a command may take: all answer at once, but a busy disk may stall a commit for seconds."""

CHUNK_BYTES = 256 * 1024
"""Read size: a whole burst of deltas in one system call."""

FRAME_LIMIT = 4 * 1024 * 1024
"""The longest frame a daemon sends (`docs/protocol.md`); a longer one means that it is no daemon of ours."""

HELD_LIMIT = 100_000
"""Events that may arrive while a command's answer is waited for."""

HELD_BYTES = 64 * 1024 * 1024
"""The same in bytes of their lines: several times what so many have, but those of a stranger may be long."""

_PEERCRED = struct.Struct("3i")
"""Linux `struct ucred`: pid, uid, gid."""

_XUCRED_UID = struct.Struct("2I")
"""The start of macOS `struct xucred`: version, uid."""

_LOCAL_PEERCRED = 0x001
"""macOS `sys/un.h`; the level is 0."""

Json = dict[str, object]
"""A decoded frame."""

Wait = Callable[[int, float | None], bool]
"""Waits until a descriptor can be read, for so many seconds (None: for ever); False when the time is up.

It may raise, to interrupt whoever waits: no byte is lost by that, and reading can go on afterwards.
"""


def open_socket(path: str, timeout_s: float = CONNECT_S) -> socket.socket:
    """A blocking socket that is connected to a daemon of this user; the caller closes it.

    Nothing has been sent. Sends fail with `BlockingIOError` when the daemon has not read for `SEND_S`.
    Raises `NotRunningError` when nobody listens there, `NoAnswerError` when somebody does but accepts nothing, and
    `ClientError` when another user listens, or the system refuses.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Not settimeout: a non-blocking connect to a full queue fails at once on Linux instead of waiting.
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
    """Sends fail with `BlockingIOError` when nothing of what is sent has been read for so long."""
    seconds = int(timeout_s)
    sock.setsockopt(
        socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, int((timeout_s - seconds) * 1_000_000))
    )


def peer(sock: socket.socket) -> tuple[int | None, int]:
    """The pid (None where the system does not tell) and the user id of whoever listens at the other end."""
    if sys.platform == "darwin":
        _, uid = _XUCRED_UID.unpack_from(sock.getsockopt(0, _LOCAL_PEERCRED, 76))
        return None, uid
    pid, uid, _ = _PEERCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size))
    return pid, uid


def connect(path: str, timeout_s: float = CONNECT_S) -> "Connection":
    """A connection to the daemon at `path`, for the caller to close; raises like `open_socket`."""
    return Connection(open_socket(path, timeout_s))


def readable(descriptor: int, timeout_s: float | None) -> bool:
    """The usual `Wait`."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))


class WholeLines:
    """Holds back the end of a byte stream until its line is complete."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0

    def feed(self, chunk: bytes) -> bytes:
        """All lines that `chunk` completes, as one block; empty when it completes none.

        Raises `ConnectionLostError` when a line is longer than `FRAME_LIMIT`.
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


class Wire:
    """Whole lines over a socket, which it owns."""

    def __init__(self, sock: socket.socket, wait: Wait = readable) -> None:
        """`wait` stands between any two reads: see `Wait`."""
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
        """One or more whole lines; raises `NoAnswerError` after `timeout_s`, `ConnectionLostError` at the end."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._wait(self._sock.fileno(), left):
                raise NoAnswerError(f"zotd did not answer within {round(timeout_s or 0.0, 1):g} s")
            block = self._lines.feed(self._read())
            if block:
                return block

    @property
    def peer_pid(self) -> int | None:
        """Of whoever has made the other end; None where the system does not tell."""
        try:
            return peer(self._sock)[0]
        except OSError:  # macOS, of a pair of sockets
            return None

    def fileno(self) -> int:
        """Of the socket."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the socket; the daemon goes on with what it was asked to do."""
        self._sock.close()

    def _read(self) -> bytes:
        try:
            chunk = self._sock.recv(CHUNK_BYTES)
        except OSError as error:
            raise ConnectionLostError(f"the connection to zotd ended: {error.strerror}") from error
        if not chunk:
            raise ConnectionLostError("zotd closed the connection")
        return chunk


class Connection:
    """One conversation with the daemon, in dicts. Not for several threads."""

    def __init__(self, sock: socket.socket, wait: Wait = readable) -> None:
        """Owns `sock`, as `open_socket` returns it."""
        self._wire = Wire(sock, wait)
        self._frames: deque[tuple[bytes, Json]] = deque()
        self._events: deque[tuple[bytes, Json]] = deque()
        self._held_bytes = 0
        self._last_id = 0

    def __enter__(self) -> "Connection":  # noqa: PYI034  (typing costs 4 ms)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the conversation; what was asked goes on."""
        self._wire.close()

    @property
    def server_pid(self) -> int | None:
        """The process that listens; under systemd's sockets, systemd's. None where the system does not tell.

        Nor does it of a daemon on another machine: then the socket's other end is in this process.
        """
        pid = self._wire.peer_pid
        return None if pid == os.getpid() else pid

    def fileno(self) -> int:
        """The descriptor to wait on for more; after `lines(0)` has given what is there already."""
        return self._wire.fileno()

    def send(self, command: str, /, **fields: object) -> int:
        """Send a request without waiting; its id. Fields that are None are left out.

        Raises `NotTextError`, and what `Wire.send` raises.
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
        """Send a request and return its answer's `data`; events that come first are kept for `events`.

        With `hear` they are given to that instead, as they come. The request has `fields` and `more`; those that are
        None are left out.

        Raises:
            CallError: the daemon refuses it, or cannot read it.
            NotTextError: it cannot be sent.
            NoAnswerError: there was no answer within `timeout_s`.
            ConnectionLostError: the daemon is gone.
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
        """Events in their order, for ever; raises `NoAnswerError` when none comes for `timeout_s`."""
        for _, event in self.lines(timeout_s):
            yield event

    def lines(self, timeout_s: float | None = None) -> Iterator[tuple[bytes, Json]]:
        """Like `events`, each with the line that it came as, without its newline."""
        while True:
            if self._events:
                line, event = self._events.popleft()
                self._held_bytes -= len(line)
                yield line, event
                continue
            line, frame = self._next_frame(timeout_s)
            if frame.get("type") != "response":  # an answer nobody waits for any more is dropped
                yield line, frame

    def waiting(self) -> list[Json]:
        """The events that have come and that `events` and `lines` have not given yet; does not wait for more."""
        try:
            while True:
                line, frame = self._next_frame(0)
                if frame.get("type") != "response":
                    self._keep(line, frame)
        except NoAnswerError:
            return [event for _, event in self._events]

    def wait_for_end(self, timeout_s: float) -> None:
        """Return when the daemon has closed the connection; raises `NoAnswerError` after `timeout_s`."""
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
            raise NoAnswerError(f"zotd sent {len(self._events)} events instead of an answer")
        self._held_bytes += len(line)
        self._events.append((line, event))


def _check_server(sock: socket.socket, path: str) -> None:
    """Nothing is sent before this: anybody could have put a socket into a shared directory."""
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
        # Not in ASCII: half a surrogate pair would become an escape that no daemon accepts.
        return json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _not_text(request) from error


def _not_text(request: Json) -> NotTextError:
    """Names the field."""
    for name, value in request.items():
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        try:
            words.encode()
        except UnicodeEncodeError:
            return NotTextError(f"the {name.replace('_', ' ')}", words)
    raise AssertionError("every field is UTF-8")


def _is_unread(response: Json) -> bool:
    """The daemon could not read a line, so it does not know its id; one request waits at a time."""
    return response.get("success") is False and response.get("id") is None


def _data(response: Json) -> Json:
    if response.get("success") is not True:
        raise CallError(str(response.get("code", "internal")), str(response.get("error", "the command failed")))
    data = response.get("data")
    return data if isinstance(data, dict) else {}
