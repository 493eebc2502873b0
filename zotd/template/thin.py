"""The client of the template process. Run as `python -I -S thin.py SOCKET MODULE [ARGUMENT]...`.

It becomes `python -m MODULE ARGUMENT...` in all that others see: output, exit code, signals. Only built-in modules are
imported; those of the standard library that it could use here take longer to import than the program takes to fork.
Without a template process it executes that command instead.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import _struct
import os
import select
import sys

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than everything else here
if TYPE_CHECKING:
    from typing import NoReturn

FORWARDED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")

REQUEST = "!4I"
"""Lengths of the arguments and of the environment, the umask, and the number of descriptors that are passed."""

ANSWER = "!i"
"""First the program's pid; then its exit code, or minus the signal that ended it."""

MAX_DESCRIPTORS = 253
"""The kernel passes no more in one message (SCM_MAX_FD)."""

BATCH = "!%di"
"""The numbers that the descriptors have here, and get in the program; -1 for the directory."""


def main(argv: list[str]) -> int:
    """Run `argv` (socket, module, arguments) by the template process; return its exit code."""
    path, *command = argv
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # no traceback before there is a program to pass it to
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.connect(path)
    except OSError:
        _start_cold(command)
    try:
        _request(connection, command)
        pid = _answer(connection)
    except OSError:
        pid = None
    if pid is None:
        _start_cold(command)
    for name in FORWARDED:
        _signal.signal(getattr(_signal, name), lambda number, _: os.kill(pid, number))
    status = _answer(connection)
    if status is None:
        _wait(pid)
        sys.stderr.write("the exit code is unknown: the process that had started this program ended before it\n")
        return 1
    if status < 0:  # end by the same signal, so that a shell says so
        if -status != _signal.SIGKILL:  # its action cannot be set, and need not
            _signal.signal(-status, _signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _request(connection: _socket.socket, command: list[str]) -> None:
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    own = {connection.fileno(), directory}
    inherited = [number for number in map(int, os.listdir("/dev/fd")) if number not in own and _is_open(number)]  # noqa: PTH208
    numbers = [-1, *sorted(inherited)[: MAX_DESCRIPTORS - 1]]
    passed = [directory, *numbers[1:]]
    arguments = b"\0".join(word.encode("utf-8", "surrogateescape") for word in command)
    environment = b"\0".join(name + b"=" + value for name, value in os.environb.items())
    umask = os.umask(0)
    os.umask(umask)
    head = _struct.pack(REQUEST, len(arguments), len(environment), umask, len(numbers))
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, _struct.pack(f"{len(passed)}i", *passed))
    connection.sendmsg([head], [rights])
    connection.sendall(_struct.pack(BATCH % len(numbers), *numbers) + arguments + environment)
    os.close(directory)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _answer(connection: _socket.socket) -> int | None:
    found = b""
    while len(found) < _struct.calcsize(ANSWER):
        more = connection.recv(_struct.calcsize(ANSWER) - len(found))
        if not more:
            return None
        found += more
    return int(_struct.unpack(ANSWER, found)[0])


def _wait(pid: int) -> None:
    """Wait for the end of a process that is no child."""
    try:
        process = os.pidfd_open(pid)
    except OSError:  # it has ended; or this system has no pidfd, and the wait ends early
        return
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.poll()


def _start_cold(command: list[str]) -> "NoReturn":
    os.execv(sys.executable, [sys.executable, "-m", *command])  # noqa: S606  (the program that was asked for)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
