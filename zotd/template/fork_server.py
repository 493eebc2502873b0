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
    wanted: ForkRequest
    shown: kernel_view.ShownProcess
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
    kernel_view.ShownProcess(
        map(os.fsencode, sys.orig_argv), _packed(os.environ)
    ).take_effect()  # it fails now, or in no fork
    daemon = os.getppid()
    control = socket.socket(fileno=os.dup(0))
    gc.collect()
    gc.disable()
    gc.freeze()  # a collection in a fork would write to all pages that it shares with this process
    control.send(READY)
    fork = _serve(control, code)
    if fork is not None:
        _become(fork, daemon, frozenset(own))


def _serve(control: socket.socket, code: CodeOnDisk) -> _Fork | None:
    """Fork for each request; return in each fork, and with None when the daemon has ended."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, DESCRIPTORS)
        if not message:
            return None
        # Fewer come if this process has no free ones. Closing its connection tells the daemon, here and if no fork is made.
        fork = _fork(descriptors, code) if len(descriptors) == DESCRIPTORS else None
        if fork is not None:
            return fork
        for descriptor in descriptors:
            os.close(descriptor)


def _fork(descriptors: Sequence[int], code: CodeOnDisk) -> _Fork | None:
    """Return in a fork, and with None in this process.

    What can be done before the fork is done here: a fork copies each page on which it touches an object.
    """
    connection = socket.socket(fileno=os.dup(descriptors[0]))
    try:
        with io.FileIO(descriptors[1], closefd=False) as file:
            file.seek(0)
            wanted = ForkRequest.unpacked(file.read())
        _check(wanted, code)
        shown = kernel_view.ShownProcess(map(os.fsencode, wanted.program.shown), _packed(wanted.environment))
        pid = fork_sibling()
    except Exception as error:  # noqa: BLE001  (the program starts cold, and this process serves the next one)
        _refuse(connection, error)
        connection.close()
        return None
    if pid:
        connection.close()
        return None
    return _Fork(connection, wanted, shown, descriptors[2:])


def _check(wanted: ForkRequest, code: CodeOnDisk) -> None:
    """Raise `_ForkRefusedError` if this process cannot make such a program. Looks only at files of zot."""
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


def _become(fork: _Fork, daemon: int, preloaded: frozenset[str]) -> None:
    """Become the program and run it."""
    try:
        errors = _prepare(fork, preloaded)
        if fork.wanted.is_bound:
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
    main_module.run(fork.wanted.program)


def _above(descriptors: Sequence[int]) -> Sequence[int]:
    """Return descriptors that placing them at 0 to 2 does not overwrite."""
    return [descriptor if descriptor > 2 else os.dup(descriptor) for descriptor in descriptors]


def _prepare(fork: _Fork, preloaded: frozenset[str]) -> str:
    """Take over all that can fail, while a cold start is still possible; return how streams treat what is not UTF-8."""
    os.setsid()
    program, environment = fork.wanted.program, fork.wanted.environment
    os.chdir(fork.wanted.cwd)
    first = main_module.find(program)
    if first is not None and (hidden := shadowed(first, preloaded)):
        raise _ForkRefusedError(REFUSED, f"{first} has modules of its own named {', '.join(sorted(hidden))}")
    errors = main_module.adopt_environment(environment, ignores_variables=program.ignores_variables)
    fork.shown.take_effect()
    kernel_view.rename(program.name)
    return errors


def _packed(environment: Mapping[str, str]) -> list[bytes]:
    return [os.fsencode(f"{name}={value}") for name, value in environment.items()]
