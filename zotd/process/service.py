"""Runs a long-lived child that communicates over stdin and stdout, and ends its whole group with it.

Unlike `Child` (a command, which may leave a server behind), a service owns its descendants: when it exits, the rest of
its group is killed at once, and a grandchild that holds a pipe delays nothing. With a `ServiceClaim`, `OrphanReaper`
ends processes that have left the group.

To stop a service, the caller escalates from `end_input` to `terminate` to `kill`.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from zotd.process import descriptors
from zotd.process.child import PipeReader
from zotd.process.descent import marked
from zotd.process.exit import AdoptedWatch, ExitWatch, watch_exit
from zotd.process.fd_handover import Survivor
from zotd.process.input import PipeWriter, input_pair
from zotd.process.orphan_reaper import ServiceClaim


class ForkedProcess(Struct, frozen=True):
    """A child that leads its own session and runs nothing yet; the one who takes it owns its pipes."""

    pid: int
    pipes: tuple[int, int, int]
    """Our ends of its stdin, stdout and stderr."""
    go: Callable[[], None]
    """Let it run its program."""


class ServiceListener(Protocol):
    """Receives the events of a service on the event loop; must not block."""

    def output(self, data: bytes) -> None:
        """Called with each chunk of stdout, which may end within a line."""
        ...

    def errors(self, data: bytes) -> None:
        """Called with each chunk of stderr, which may end within a line."""
        ...

    def closed(self, pipe: str) -> None:
        """Called when the service has closed its `stdin` or `stdout`, which `pipe` names."""
        ...

    def stalled(self, reason: str) -> None:
        """Called when the service does not read; nothing more is written. `reason` is a predicate for its name."""
        ...

    def exited(self, code: int | None) -> None:
        """Called once, last, after all output: with the exit code, or minus a signal's number.

        `code` is None for an adopted service, because only its parent can get the exit code.
        """
        ...


class Service:
    """A running service; made by `start_service`, used on one event loop."""

    def __init__(
        self,
        pid: int,
        pipes: tuple[int, int, int],
        listener: ServiceListener,
        claim: ServiceClaim | None = None,
        *,
        survivor: Survivor | None = None,
        watch: Callable[[Callable[[], None]], ExitWatch] | None = None,
    ) -> None:
        """Take ownership of the group leader `pid` and of `pipes`, our ends of its stdin, stdout and stderr.

        `survivor` is set if an earlier daemon started the process. `watch` makes another watch than that of a process, for
        a service that has none of its own; it gets the callback for the exit.
        """
        self.pid = pid
        self.is_alive = True
        stdin, stdout, stderr = pipes
        self._listener = listener
        self._claim = claim
        self._is_killed = False
        handover = claim.handover if claim else None
        self._stdin = PipeWriter(
            stdin,
            on_stall=listener.stalled,
            on_closed=lambda: listener.closed("stdin"),
            on_torn=handover.torn if handover else None,
            is_torn=survivor is not None and survivor.is_cut,
        )
        self._stdout = PipeReader(stdout, listener.output, on_end=lambda: listener.closed("stdout"))
        self._stderr = PipeReader(stderr, listener.errors)
        if watch is not None:
            self._watch: ExitWatch | AdoptedWatch = watch(self._exited)
        elif survivor is None:
            self._watch = watch_exit(pid, self._exited)
        else:
            # An adopted process is not our child, so it cannot be waited for.
            self._watch = AdoptedWatch(pid, survivor.pidfd, self._exited)

    def write(self, frame: bytes) -> None:
        """Queue a frame for its stdin (see `PipeWriter.write`)."""
        self._stdin.write(frame)

    def pass_on(self, message: bytes, descriptors: Sequence[int]) -> None:
        """Send descriptors to a service whose stdin is a socket (see `PipeWriter.pass_on`)."""
        self._stdin.pass_on(message, descriptors)

    def end_input(self) -> None:
        """Close its stdin once all queued frames are written."""
        self._stdin.end()

    def terminate(self) -> None:
        """Send SIGTERM to the group."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the group."""
        self._is_killed = True
        self._signal(signal.SIGKILL)

    def let_go(self) -> None:
        """Leave the service to the next daemon, through its claim's `FdHandover`; no further events are reported."""
        self.is_alive = False
        self._watch.close()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        if self._claim is not None:
            self._claim.left()

    def pause_output(self) -> None:
        """Stop reading its stdout until `resume_output`; the service blocks once the pipe is full."""
        self._stdout.pause()

    def resume_output(self) -> None:
        """Continue reading its stdout."""
        self._stdout.resume()

    def pause_errors(self) -> None:
        """Stop reading its stderr until `resume_errors`."""
        self._stderr.pause()

    def resume_errors(self) -> None:
        """Continue reading its stderr."""
        self._stderr.resume()

    def _signal(self, number: int) -> None:
        if self.is_alive:
            self._watch.signal_group(number)

    def _exited(self) -> None:
        self._signal(signal.SIGKILL)  # before `reap`: as long as the leader is a zombie, its group id is not reused
        self.is_alive = False
        code = self._watch.reap()
        # All output precedes `exited`. Descendants that still hold a pipe are not waited for.
        for output in (self._stdout, self._stderr):
            output.drain()
            output.close()
        self._stdin.close()
        if self._claim is not None:
            self._claim.ended(is_killed=self._is_killed)
        self._listener.exited(code)


def start_service(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    listener: ServiceListener,
    claim: ServiceClaim | None = None,
    forked: ForkedProcess | None = None,
    takes_descriptors: bool = False,
) -> Service:
    """Start a service in a session and process group of its own.

    The caller owns the service until `ServiceListener.exited`.

    Args:
        argv: the command; `argv[0]` is looked up on the PATH of `env`.
        cwd: its working directory.
        env: its whole environment, except for the mark that `claim` adds.
        listener: receives output and exit.
        claim: from `OrphanReaper.claim`, for this call only. With it, all descendants end with the service, and soon
            after this process if it is killed; without it, only the group ends. If the claim has a survivor, that
            process is adopted: its pending output is delivered, and `argv`, `cwd` and `env` are not used.
        forked: a process that is to run the command, with the environment of the claim; nothing else is started.
        takes_descriptors: its stdin is a socket, for `Service.pass_on`.

    Raises:
        OSError: the service could not be started.
        ValueError: an argument contains NUL.
    """
    survivor = claim.handover.survivor if claim and claim.handover else None
    if claim is not None and survivor is not None:
        claim.adopted(survivor.head.identity)
        return Service(survivor.head.pid, survivor.pipes, listener, claim, survivor=survivor)
    if forked is not None:
        if claim is not None:
            claim.started(forked.pid, forked.pipes)
        service = Service(forked.pid, forked.pipes, listener, claim)
        forked.go()  # it runs now that its end is noticed and its rights are known
        return service
    if claim is not None:
        argv, env = claim.command(argv, env), claim.environment(env)
    try:
        pid, pipes = _start(argv, cwd, env, takes_descriptors=takes_descriptors)
    except BaseException:
        if claim is not None:
            claim.entry.close()
        raise
    if claim is not None:
        claim.started(pid, pipes)
    return Service(pid, pipes, listener, claim)


def _start(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], *, takes_descriptors: bool
) -> tuple[int, tuple[int, int, int]]:
    """Return the pid and our ends of stdin, stdout and stderr."""
    theirs: list[int] = []
    ours: list[int] = []
    try:
        for is_input in (True, False, False):
            their, our = input_pair(is_socket=takes_descriptors) if is_input else os.pipe()[::-1]
            theirs.append(their)
            ours.append(our)
        stdin, stdout, stderr = theirs
        process = subprocess.Popen(  # noqa: S603  (running what the user installed is the purpose)
            argv, cwd=cwd, env=marked(env), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
    except BaseException:
        for fd in ours:
            os.close(fd)
        raise
    finally:
        # With a copy of the child's end open in this process, a pipe would never reach its end.
        for fd in theirs:
            os.close(fd)
    # From outside and after the start: a `preexec_fn` that sets the limit would force a `fork`.
    descriptors.give_back(process.pid)
    process.returncode = 0  # disowned: Popen would warn about, and later reap, a child that only `Service` waits for
    return process.pid, (ours[0], ours[1], ours[2])
