"""The template process of a daemon: forks Python programs that become children of the daemon (`zotd.template.forks`).

    daemon ── request, descriptors ──> this process ── fork ──> the program, a child of the daemon
    daemon <── its pid, or why there is none ─────────────────────┤
           ── go ────────────────────────────────────────────────>┘

This process has one thread and no signal handlers, because a fork copies no other thread and inherits the handlers. It ends
when the daemon closes its socket, which is this process's stdin.
"""

import gc
import io
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from zotd.template import kernel_view, main_module
from zotd.template.code_on_disk import CodeOnDisk
from zotd.template.fork_protocol import (
    CHANGED,
    DESCRIPTORS,
    GO,
    MAX_REASON_BYTES,
    PID,
    READY,
    REFUSED,
    STARTED,
    ForkRequest,
)
from zotd.template.python_program import other_variables, shadowed
from zotd.template.sibling import fork_sibling

FAILED = 1


class _Fork(NamedTuple):
    """What a new fork has."""

    connection: socket.socket
    request: int
    streams: Sequence[int]


class _ForkRefusedError(Exception):
    """The program is not run by this fork; the message says why."""

    def __init__(self, kind: bytes, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def main(modules: Sequence[str], interpreter: frozenset[str]) -> None:
    """Import the modules and serve. Returns only in this process, at its end; `interpreter`: what it had imported before."""
    began_ns = time.time_ns()
    for module in modules:
        rehearse = getattr(import_module(module), "rehearse", None)
        if rehearse is not None:
            rehearse()
    own = {name.partition(".")[0] for name in sys.modules.keys() - interpreter} - set(sys.builtin_module_names)
    code = CodeOnDisk.of_loaded_modules(began_ns)
    own_view = kernel_view.ShownProcess(map(os.fsencode, sys.orig_argv), _packed(os.environ))
    own_view.take_effect()  # where the kernel cannot do this, this process ends, and everything starts cold
    daemon = os.getppid()
    control = socket.socket(fileno=os.dup(0))
    gc.collect()
    gc.disable()
    gc.freeze()  # a collection in a fork would write to all pages that it shares with this process
    control.send(READY)
    fork = _serve(control)
    if fork is not None:
        _become(fork, daemon, code, frozenset(own))


def _serve(control: socket.socket) -> _Fork | None:
    """Fork for each request; return in each fork, and with None when the daemon has ended.

    Requests are read by their forks only: another program's fork must not find the keys of this one in its memory.
    """
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, DESCRIPTORS)
        if not message:
            return None
        fork = _fork(descriptors)
        if fork is not None:
            return fork
        for descriptor in descriptors:
            os.close(descriptor)


def _fork(descriptors: Sequence[int]) -> _Fork | None:
    """Return in a fork, and with None in this process. If there is none, the end of its connection tells the daemon."""
    if len(descriptors) < DESCRIPTORS:  # this process has no free ones
        return None
    try:
        pid = fork_sibling()
    except OSError:
        return None
    connection, request, *streams = descriptors
    return None if pid else _Fork(socket.socket(fileno=connection), request, streams)


def _check(wanted: ForkRequest, code: CodeOnDisk) -> None:
    """Raise `_ForkRefusedError` if this process cannot make such a program."""
    if code.has_changed():
        raise _ForkRefusedError(CHANGED, "the code on disk has changed")
    other = other_variables(wanted.environment, os.environ, ignores_variables=wanted.program.ignores_variables)
    if other:
        names = ", ".join(sorted(other))
        raise _ForkRefusedError(REFUSED, f"the interpreter reads {names} at its start, with another value")


def _refuse(connection: socket.socket, error: Exception) -> None:
    kind = error.kind if isinstance(error, _ForkRefusedError) else REFUSED
    with suppress(OSError):
        connection.send(kind + str(error).encode(errors="replace")[:MAX_REASON_BYTES])


def _become(fork: _Fork, daemon: int, code: CodeOnDisk, preloaded: frozenset[str]) -> None:
    """Become the program and run it."""
    try:
        with io.FileIO(fork.request) as file:
            file.seek(0)
            wanted = ForkRequest.unpacked(file.read())
        _check(wanted, code)
        errors = _prepare(wanted, preloaded)
        if wanted.is_bound:
            kernel_view.end_with_parent(signal.SIGKILL)
        if os.getppid() != daemon:  # it has ended, before the kernel could send the signal
            os._exit(FAILED)
        fork.connection.send(STARTED + PID.pack(os.getpid()))
        if fork.connection.recv(len(GO)) != GO:
            os._exit(FAILED)
    except Exception as error:  # noqa: BLE001  (whatever it is: the program has not run, and starts cold)
        _refuse(fork.connection, error)
        os._exit(FAILED)
    for number, stream in enumerate(_above(fork.streams)):
        os.dup2(stream, number)
    fork.connection.detach()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    main_module.open_streams(errors)
    main_module.run(wanted.program)


def _above(descriptors: Sequence[int]) -> Sequence[int]:
    """Return descriptors that placing them at 0 to 2 does not overwrite."""
    return [descriptor if descriptor > 2 else os.dup(descriptor) for descriptor in descriptors]


def _prepare(wanted: ForkRequest, preloaded: frozenset[str]) -> str:
    """Take over all that can fail, while a cold start is still possible; return how streams treat what is not UTF-8."""
    os.setsid()
    program, environment = wanted.program, wanted.environment
    os.chdir(wanted.cwd)
    first = main_module.find(program)
    if first is not None and (hidden := shadowed(first, preloaded)):
        raise _ForkRefusedError(REFUSED, f"{first} has modules of its own named {', '.join(sorted(hidden))}")
    errors = main_module.adopt_environment(environment, ignores_variables=program.ignores_variables)
    kernel_view.ShownProcess(map(os.fsencode, program.shown), _packed(environment)).take_effect()
    kernel_view.rename(program.name)
    return errors


def _packed(environment: Mapping[str, str]) -> list[bytes]:
    return [os.fsencode(f"{name}={value}") for name, value in environment.items()]
