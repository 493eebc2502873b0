"""The client of the template process: becomes a program in all that others see: output, exit code, signals.

    connect ──> ready ──> request: arguments, environment, descriptors ──> pid ──> go ──> the program runs ──> its end

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

FORWARDED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")

ORIGIN = "ZOT_STARTED_BY"
"""The variable that a daemon gives to what it starts (`zotd.process.heritage`)."""

INTERPRETER = ("PYTHON", "LD_", "GLIBC_TUNABLES", "MALLOC_")
"""Beginnings of variables that take effect when an interpreter starts; a fork cannot have other ones than its parent."""

HARMLESS = frozenset(["PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONFAULTHANDLER"])
"""Those of them (`python --help-env`) without effect on what programs do."""

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts")
"""Namespaces (namespaces(7)) that a fork shares with its parent."""

REQUEST = "!4I2Q"
"""Lengths of the arguments and of the environment, the umask, the number of descriptors that are passed, and the signals
that are ignored and that are blocked: bit N - 1 for signal N."""

ANSWER = "!ci"
"""One of the kinds below, and its value."""

READY = b"y"
"""A fork has read nothing yet and waits for the request; the value has no meaning. Before it nothing is passed: a stopped
template process would hold copies of this program's pipes, and who reads them would wait for an end that does not come."""

STARTED = b"s"
"""The request is accepted; the value is the program's pid. It runs when it has read `GO`."""

GO = b"g"

REFUSED = b"r"
"""The program must be started without the template process; the value is the length of the reason, which follows."""

ENDED = b"e"
"""The value is the program's exit code, or minus the signal that ended it."""

STOP = b"z"
"""The program wants its job to be stopped, as by Ctrl-Z; it waits for `CONTINUED`. The value has no meaning."""

CONTINUED = b"c"
"""The answer to `STOP`; the value has no meaning."""

RUN = b"x"
"""The program wants a command of the user to be run on the terminal; it waits for `RAN` or `NOT_RUN`. The value is the
length of what follows: the length of the arguments (`LENGTH`), the arguments and the environment."""

RAN = b"w"
"""The answer to `RUN`; the value is the exit code, or minus the signal that has ended the command."""

NOT_RUN = b"n"
"""The answer to `RUN` if the command could not be started; the value is the error number."""

LENGTH = "!I"

START_S = 0.7
"""Longest wait for an acceptance, which takes 5 ms. A cold start follows; without `GO` the fork runs nothing."""

ASK_S = 20.0
"""Longest wait for the answer to `refusal`, which has no cold start to turn to: a loaded machine is no reason to refuse."""

MAX_DESCRIPTORS = 253
"""The kernel passes no more in one message (SCM_MAX_FD)."""

BATCH = "!%di"
"""The numbers that the descriptors have here, and get in the program; or one of the next two."""

DIRECTORY = -1
TERMINAL = -2
"""The controlling terminal, which the program, in a session of its own, cannot open as /dev/tty."""

LIFELINE = -3
"""The end of a pipe whose other end is only here, so that the kernel can tell the program when this process ends."""


class NotStartedError(Exception):
    """The template process has started nothing; the message says why."""


class NoServerError(NotStartedError):
    """There is no template process at this socket."""


def run(path: str, command: "list[str]") -> int:
    """Run `command` (module, arguments) by the template process at `path`; return its exit code.

    Ends this process by the signal that has ended the program, if there was one.

    Raises:
        NotStartedError: nothing was run, and the program must be started without the template process.
    """
    ignored = _ignored_signals()
    interrupt = _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # no traceback before there is a program to pass it to
    try:
        connection, pid = _offer(path, command, ignored, START_S)
    finally:
        _signal.signal(_signal.SIGINT, interrupt)
    handlers = _forward_signals(pid)
    try:
        connection.send(GO)
    except OSError as error:  # it was killed
        for number, handler in handlers.items():
            _signal.signal(number, handler)
        connection.close()
        raise NotStartedError("the template process has ended") from error
    connection.settimeout(None)
    return _accompany(connection, pid)


def refusal(path: str) -> str:
    """Return why this process gets no fork of the template process at `path`; empty if it gets one.

    Raises:
        NoServerError: there is none.
    """
    try:
        connection, _ = _offer(path, [""], 0, ASK_S)
    except NoServerError:
        raise
    except NotStartedError as error:
        return str(error)
    connection.close()  # without `GO` the fork ends
    return ""


def main(argv: "list[str]") -> int:
    """Run `argv` (socket, module, arguments) by the template process, or else by this interpreter; return its exit code."""
    path, *command = argv
    try:
        return run(path, command)
    except NotStartedError:
        os.execv(sys.executable, [sys.executable, "-m", *command])  # noqa: S606  (the program that was asked for)


def _offer(path: str, command: "list[str]", ignored: int, patience_s: float) -> "tuple[_socket.socket, int]":
    """Send a request; return the connection to the fork that has accepted it, and its pid. Raises NotStartedError.

    `patience_s`: longest wait for each message of the template process.
    """
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    except OSError as error:
        raise NotStartedError(f"no connection to the template process can be made: {error}") from error
    try:
        connection.settimeout(patience_s)
        return connection, _accepted(connection, path, command, ignored)
    except OSError as error:  # also a timeout
        connection.close()
        raise NotStartedError(f"the template process does not serve this program: {error}") from error
    except NotStartedError:
        connection.close()
        raise


def _accepted(connection: _socket.socket, path: str, command: "list[str]", ignored: int) -> int:
    """Return the pid of the fork that has accepted the request. Raises NotStartedError and OSError."""
    try:
        connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NoServerError("there is no template process") from error
    kind, _ = _answer(connection)
    if kind != READY:
        raise NotStartedError("the template process has no room for another program")
    _request(connection, command, ignored)
    kind, value = _answer(connection)
    if kind == REFUSED:
        raise NotStartedError(_receive(connection, value).decode())
    if kind != STARTED:
        raise NotStartedError("the fork of the template process has ended")
    return value


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
    while kind in SERVICES:
        reply = SERVICES[kind](connection, value)
        try:  # noqa: SIM105  (contextlib takes as long to import as all modules above)
            connection.send(_struct.pack(ANSWER, *reply))
        except OSError:  # the program was killed meanwhile; its end is said below
            pass
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


def _stop_job(_connection: _socket.socket, _value: int) -> "tuple[bytes, int]":
    handler = _signal.getsignal(_signal.SIGTSTP)
    _stop(0)
    _signal.signal(_signal.SIGTSTP, handler)
    _wait_for_foreground()
    return CONTINUED, 0


def _run_command(connection: _socket.socket, size: int) -> "tuple[bytes, int]":
    packed = _receive(connection, size)
    start = _struct.calcsize(LENGTH)
    end = start + _struct.unpack(LENGTH, packed[:start])[0]
    arguments = packed[start:end].split(b"\0")
    environment = dict(variable.split(b"=", 1) for variable in packed[end:].split(b"\0") if variable)
    try:
        # The interpreter ignores these two, and the command should not.
        pid = os.posix_spawnp(arguments[0], arguments, environment, setsigdef=[_signal.SIGPIPE, _signal.SIGXFSZ])
    except OSError as error:
        return NOT_RUN, error.errno or 0
    return RAN, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


SERVICES = {STOP: _stop_job, RUN: _run_command}
"""What a program cannot do itself, because it is not in the terminal's session."""


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


def _request(connection: _socket.socket, command: "list[str]", ignored: int) -> None:
    opened: list[tuple[int, int]] = []
    try:
        _open_own(opened)
        passed = [*opened, *_inherited({connection.fileno(), *_lifelines, *(own for _, own in opened)})][
            :MAX_DESCRIPTORS
        ]
        arguments = b"\0".join(word.encode("utf-8", "surrogateescape") for word in command)
        environment = b"\0".join(name + b"=" + value for name, value in os.environb.items())
        umask = os.umask(0)
        os.umask(umask)
        blocked = _bits(_signal.pthread_sigmask(_signal.SIG_BLOCK, ()))
        head = _struct.pack(REQUEST, len(arguments), len(environment), umask, len(passed), ignored, blocked)
        rights = _struct.pack(f"{len(passed)}i", *(descriptor for _, descriptor in passed))
        connection.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        numbers = _struct.pack(BATCH % len(passed), *(number for number, _ in passed))
        connection.sendall(numbers + arguments + environment)
    finally:
        for _, descriptor in opened:
            os.close(descriptor)


def _open_own(opened: "list[tuple[int, int]]") -> None:
    """Add the descriptors that a program gets besides those that are open here, each with its number."""
    opened.append((DIRECTORY, os.open(".", os.O_RDONLY | os.O_DIRECTORY)))
    lifeline, kept_open = os.pipe()
    _lifelines.append(kept_open)
    opened.append((LIFELINE, lifeline))
    terminal = _terminal()
    if terminal is not None:
        opened.append((TERMINAL, terminal))


def _inherited(own: "set[int]") -> "list[tuple[int, int]]":
    """Return the descriptors that this process was started with, as pairs of number and descriptor."""
    found = sorted(number for number in map(int, os.listdir("/dev/fd")) if number not in own and _is_open(number))  # noqa: PTH208
    return [(number, number) for number in found]


_lifelines: "list[int]" = []
"""This process's ends of the pipes; open as long as it runs."""


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
    """Return the next answer; `REFUSED` with no reason if the connection has ended. Raises TimeoutError."""
    try:
        found = _receive(connection, _struct.calcsize(ANSWER))
    except ConnectionError:
        return REFUSED, 0
    kind, value = _struct.unpack(ANSWER, found)
    return kind, value


def _receive(connection: _socket.socket, size: int) -> bytes:
    """Return the next `size` bytes. Raises ConnectionError if the connection ends before."""
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise ConnectionError("the connection has ended")
        found += more
    return found


def _wait(pid: int) -> None:
    """Wait for the end of a process that is no child."""
    try:
        process = os.pidfd_open(pid)
    except OSError:  # it has ended; or this system has no pidfd, and the wait ends early
        return
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.poll()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
