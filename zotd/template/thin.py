"""The client of the template process: becomes a program in all that others see: output, exit code, signals.

    request: arguments, environment, descriptors ──> the fork examines it ──> pid ──> go ──> the program runs ──> its end

Also a script: `python -I -S thin.py SOCKET MODULE [ARGUMENT]...` is `python -m MODULE ARGUMENT...`. Only built-in modules
are imported; those of the standard library that it could use here take longer to import than the program takes to fork.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import _struct
import os
import select
import sys

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than everything else here
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

FORWARDED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")

REQUEST = "!4I2Q"
"""Lengths of the arguments and of the environment, the umask, the number of descriptors that are passed, and the signals
that are ignored and that are blocked: bit N - 1 for signal N."""

ANSWER = "!ci"
"""One of the kinds below, and its value."""

STARTED = b"s"
"""The request is accepted; the value is the program's pid. It runs when it has read `GO`."""

GO = b"g"

REFUSED = b"r"
"""The program must be started without the template process; the value has no meaning."""

ENDED = b"e"
"""The value is the program's exit code, or minus the signal that ended it."""

STOP = b"z"
"""The program wants its job to be stopped, as by Ctrl-Z; it waits for `CONTINUED`. The value has no meaning."""

CONTINUED = b"c"

START_S = 0.7
"""Longest wait for an acceptance, which takes 5 ms. A cold start follows; without `GO` the fork runs nothing."""

MAX_DESCRIPTORS = 253
"""The kernel passes no more in one message (SCM_MAX_FD)."""

BATCH = "!%di"
"""The numbers that the descriptors have here, and get in the program; or one of the next two."""

DIRECTORY = -1
TERMINAL = -2
"""The controlling terminal, which the program, in a session of its own, cannot open as /dev/tty."""


def run(path: str, command: "list[str]") -> "int | None":
    """Run `command` (module, arguments) by the template process at `path`; return its exit code.

    Returns None, and has run nothing, if the program must be started without the template process. Ends this process
    by the signal that has ended the program, if there was one.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(START_S)
    signals = _ignored_signals(), _bits(_signal.pthread_sigmask(_signal.SIG_BLOCK, ()))
    interrupt = _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # no traceback before there is a program to pass it to
    try:
        connection.connect(path)
        _request(connection, command, signals)
        kind, pid = _answer(connection)
    except OSError:  # also a timeout
        kind, pid = REFUSED, 0
    _signal.signal(_signal.SIGINT, interrupt)
    if kind != STARTED:
        connection.close()
        return None
    handlers = _forward_signals(pid)
    try:
        connection.send(GO)
    except OSError:  # it was killed
        for number, handler in handlers.items():
            _signal.signal(number, handler)
        connection.close()
        return None
    connection.settimeout(None)
    return _accompany(connection, pid)


def main(argv: "list[str]") -> int:
    """Run `argv` (socket, module, arguments) by the template process, or else by this interpreter; return its exit code."""
    path, *command = argv
    code = run(path, command)
    if code is None:
        _start_cold(command)
    return code


def _forward_signals(pid: int) -> "dict[int, object]":
    """Pass signals of this process on; return their former handlers."""
    numbers = [getattr(_signal, name) for name in FORWARDED]
    handlers = {number: _signal.signal(number, lambda number, _: os.kill(pid, number)) for number in numbers}

    def stop(*_: object) -> None:
        """Stop the program, and then this process as if nothing had handled the signal."""
        os.kill(pid, _signal.SIGSTOP)
        _stop(os.getpid())
        _signal.signal(_signal.SIGTSTP, stop)

    if _signal.getsignal(_signal.SIGTSTP) != _signal.SIG_IGN:
        handlers[_signal.SIGTSTP] = _signal.signal(_signal.SIGTSTP, stop)
    return handlers


def _ignored_signals() -> int:
    """Return a bit for each signal that is ignored, as by `nohup` or in the background job of a script."""
    return _bits([number for number in _signal.valid_signals() if _signal.getsignal(number) == _signal.SIG_IGN])


def _bits(signals: "Iterable[int]") -> int:
    found = 0
    for number in signals:
        found |= 1 << (number - 1)
    return found


def _stop(target: int) -> None:
    """Stop a process, or with 0 the whole job as Ctrl-Z does; returns when it continues."""
    _signal.signal(_signal.SIGTSTP, _signal.SIG_DFL)
    os.kill(target, _signal.SIGTSTP)


def _accompany(connection: _socket.socket, pid: int) -> int:
    """Serve the program until it ends; return its exit code, or end by the signal that has ended it."""
    kind, value = _answer(connection)
    while kind == STOP:
        handler = _signal.getsignal(_signal.SIGTSTP)
        _stop(0)
        _signal.signal(_signal.SIGTSTP, handler)
        _wait_for_foreground()
        connection.send(CONTINUED)
        kind, value = _answer(connection)
    if kind != ENDED:
        _wait(pid)
        sys.stderr.write("the exit code is unknown: the process that had started this program ended before it\n")
        return 1
    if value < 0:  # so that a shell says so
        if -value != _signal.SIGKILL:  # its action cannot be set, and need not
            _signal.signal(-value, _signal.SIG_DFL)
        os.kill(os.getpid(), -value)
    return value


def _wait_for_foreground() -> None:
    """After `bg`, stop again until `fg`, as the program would be stopped when it changes the terminal's modes."""
    import termios  # noqa: PLC0415  (only after Ctrl-Z)

    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return
    try:
        termios.tcsetattr(terminal, termios.TCSANOW, termios.tcgetattr(terminal))
    except termios.error:  # no shell is left that could continue this job
        pass
    finally:
        os.close(terminal)


def _request(connection: _socket.socket, command: "list[str]", signals: "tuple[int, int]") -> None:
    opened = [(DIRECTORY, os.open(".", os.O_RDONLY | os.O_DIRECTORY))]
    try:
        own = {connection.fileno(), opened[0][1]}
        found = sorted(number for number in map(int, os.listdir("/dev/fd")) if number not in own and _is_open(number))  # noqa: PTH208
        terminal = _terminal()
        if terminal is not None:
            opened.append((TERMINAL, terminal))
        passed = [*opened, *((number, number) for number in found[: MAX_DESCRIPTORS - len(opened)])]
        numbers = _struct.pack(BATCH % len(passed), *(number for number, _ in passed))
        arguments = b"\0".join(word.encode("utf-8", "surrogateescape") for word in command)
        environment = b"\0".join(name + b"=" + value for name, value in os.environb.items())
        umask = os.umask(0)
        os.umask(umask)
        head = _struct.pack(REQUEST, len(arguments), len(environment), umask, len(passed), *signals)
        rights = _struct.pack(f"{len(passed)}i", *(descriptor for _, descriptor in passed))
        connection.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        connection.sendall(numbers + arguments + environment)
    finally:
        for _, descriptor in opened:
            os.close(descriptor)


def _terminal() -> "int | None":
    """Open the controlling terminal, if there is one. Raises OSError if this job is in the background."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None
    if os.tcgetpgrp(terminal) != os.getpgrp():
        os.close(terminal)
        raise OSError("in the background, where the kernel must stop the program when it uses the terminal")
    return terminal


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _answer(connection: _socket.socket) -> "tuple[bytes, int]":
    """Return the next answer; `REFUSED` if the connection has ended. Raises TimeoutError."""
    found = b""
    while len(found) < _struct.calcsize(ANSWER):
        try:
            more = connection.recv(_struct.calcsize(ANSWER) - len(found))
        except ConnectionError:
            return REFUSED, 0
        if not more:
            return REFUSED, 0
        found += more
    kind, value = _struct.unpack(ANSWER, found)
    return kind, value


def _wait(pid: int) -> None:
    """Wait for the end of a process that is no child."""
    try:
        process = os.pidfd_open(pid)
    except OSError:  # it has ended; or this system has no pidfd, and the wait ends early
        return
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.poll()


def _start_cold(command: "list[str]") -> "NoReturn":
    os.execv(sys.executable, [sys.executable, "-m", *command])  # noqa: S606  (the program that was asked for)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
