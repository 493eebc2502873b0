"""Turns a fork of the template process into a program."""

import atexit
import fcntl
import gc
import io
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from zotd.template import foreground, thin

REQUEST_S = 5.0
"""Longest wait for a client's request, which it sends at once."""

MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""Arguments and environment; the kernel accepts at most 6 MB of them for a new program."""

_CLIENT = -4
"""Key of the client's connection among the descriptors of a request."""

FAILED = 1
IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores in each program."""


class _Program(Protocol):
    def main(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """What a client wants to run."""

    name: bytes
    """The client's own, as `ps` shows it."""
    module: str
    arguments: Sequence[str]
    environment: dict[bytes, bytes]
    umask: int
    ignored: frozenset[int]
    blocked: frozenset[int]
    """Signals, as the client's parent has left them."""
    descriptors: dict[int, int]
    """Descriptor by the number that it gets in the program, or by `thin.DIRECTORY` or `thin.TERMINAL`."""


class RequestError(Exception):
    """The client sent no request, an incomplete or an invalid one."""


def receive(connection: socket.socket, client: int) -> ProgramRequest:
    """Read the request of the process `client` within `REQUEST_S`.

    Raises:
        RequestError, struct.error: it is incomplete or invalid.
        OSError: from the connection.
    """
    connection.settimeout(REQUEST_S)
    head, descriptors, _, _ = socket.recv_fds(connection, struct.calcsize(thin.REQUEST), thin.MAX_DESCRIPTORS)
    argument_bytes, environment_bytes, umask, count, *signals = struct.unpack(thin.REQUEST, head)
    if count != len(descriptors) or argument_bytes + environment_bytes > MAX_REQUEST_BYTES:
        raise RequestError(f"{count} descriptors announced, {len(descriptors)} passed")
    numbers = struct.unpack(thin.BATCH % count, _read(connection, struct.calcsize(thin.BATCH % count)))
    module, *arguments = _read(connection, argument_bytes).decode("utf-8", "surrogateescape").split("\0")
    environment = _variables(_read(connection, environment_bytes))
    if not {thin.DIRECTORY, thin.LIFELINE} <= set(numbers):
        raise RequestError("no directory or no pipe was passed")
    return ProgramRequest(
        name=Path(f"/proc/{client}/comm").read_bytes().removesuffix(b"\n"),
        module=module,
        arguments=arguments,
        environment=environment,
        umask=umask,
        ignored=_signals(signals[0]),
        blocked=_signals(signals[1]),
        descriptors=dict(zip(numbers, descriptors, strict=True)),
    )


def _signals(bits: int) -> frozenset[int]:
    return frozenset(number for number in signal.valid_signals() if bits >> (number - 1) & 1)


def _variables(packed: bytes) -> dict[bytes, bytes]:
    pairs = (variable.partition(b"=") for variable in packed.split(b"\0") if variable)
    return {name: value for name, _, value in pairs}


def run(request: ProgramRequest, client: socket.socket) -> int:
    """Become the program, run it to its end and tell the client; returns the exit code, to end with at once.

    The client serves `zotd.template.foreground`.
    """
    connection = _take_place(request, client)
    module = import_module(request.module)
    if hasattr(module, "__path__"):  # a package, as with `python -m`
        module = import_module(f"{request.module}.__main__")
    code = _finish(_call(cast("_Program", module)))
    _tell_end(connection, code)
    return code


def _finish(code: int) -> int:
    """Do what the interpreter does at its end; return the exit code."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  (as `multiprocessing` ends its forks)
        atexit._run_exitfuncs()  # noqa: SLF001
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except Exception:  # noqa: BLE001  (the interpreter ignores them here as well)
        return code or FAILED
    return code


def _tell_end(connection: int, code: int) -> None:
    """Close everything and tell the client the exit code, as the template process does for a program that is killed.

    What others can wait for has ended then: pipes, connections, locks of files. The kernel needs another 3 to 5 ms to give
    back the memory, which was most of the time from a program's end to that of its client.
    """
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if number != connection:
            with suppress(OSError):  # that of the listing itself
                os.close(number)
    with suppress(OSError):  # the client was killed
        os.write(connection, struct.pack(thin.ANSWER, thin.ENDED, code & 0xFF))


def _take_place(request: ProgramRequest, client: socket.socket) -> int:
    """Have the client's descriptors, environment and signals; return the descriptor of its connection."""
    os.setsid()
    Path("/proc/self/comm").write_bytes(request.name)  # what `ps`, `top` and `pkill` see
    _set_signals(request)
    descriptors = dict(request.descriptors)
    directory = descriptors.pop(thin.DIRECTORY)
    os.fchdir(directory)
    os.close(directory)
    client.setblocking(True)
    kept = _place({_CLIENT: client.detach(), **descriptors})
    foreground.attach(socket.socket(fileno=kept[_CLIENT]), kept.get(thin.TERMINAL))
    _end_with(kept[thin.LIFELINE])
    os.umask(request.umask)
    os.environ.clear()
    os.environb.update(request.environment)
    time.tzset()
    sys.argv = [request.module, *request.arguments]
    sys.stdin = _input(descriptors)
    sys.stdout = _output(1, descriptors)
    sys.stderr = _output(2, descriptors)
    gc.enable()
    return kept[_CLIENT]


def _set_signals(request: ProgramRequest) -> None:
    """Handle signals as the interpreter would, had the client's parent started it."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        is_ignored = number in IGNORED or number in request.ignored
        signal.signal(number, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
    if signal.SIGINT not in request.ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, request.blocked)


def _place(descriptors: dict[int, int]) -> dict[int, int]:
    """Give each descriptor the number that it had in the client; return those with a negative one, above all others."""
    above = max([2, *descriptors, *descriptors.values()]) + 1
    moved = {
        number: fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for number, descriptor in descriptors.items()
    }
    for descriptor in descriptors.values():
        os.close(descriptor)
    for number in range(3):
        if number not in descriptors:  # the client had closed it, so it is closed here too
            os.close(number)
    for number, descriptor in moved.items():
        if number >= 0:
            os.dup2(descriptor, number)
            os.close(descriptor)
    return {number: descriptor for number, descriptor in moved.items() if number < 0}


def _end_with(lifeline: int) -> None:
    """Have the kernel kill this process when the other end of the pipe is closed, also when the server has ended."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        os.read(lifeline, 1)  # nothing is ever written, so it was closed before
        os.kill(os.getpid(), signal.SIGKILL)


def _input(descriptors: dict[int, int]) -> io.TextIOWrapper | None:
    return open(0, encoding="utf-8", closefd=False) if 0 in descriptors else None


def _output(number: int, descriptors: dict[int, int]) -> io.TextIOWrapper | None:
    if number not in descriptors:
        return None
    errors = "backslashreplace" if number == 2 else "strict"
    stream = open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115  (open as long as the program runs)
    stream.reconfigure(line_buffering=number == 2 or stream.isatty())
    return stream


def _call(program: _Program) -> int:
    """Return the exit code of its `main`, as the interpreter would end with it."""
    try:
        return program.main() or 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return FAILED
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        raise
    except BaseException:  # noqa: BLE001  (printed, as the interpreter would)
        traceback.print_exc()
        return FAILED


def _read(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        more = connection.recv(min(size - len(found), 1 << 20))
        if not more:
            raise RequestError("the client has ended before its request was complete")
        found += more
    return bytes(found)
