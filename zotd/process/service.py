"""A long-lived child that is talked to over its stdin and stdout, and whose whole group ends with it.

Unlike `Child` (a command, which may leave a server behind), a service owns its descendants: when it exits, what is
left of its group is killed in the same moment, and a grandchild that holds a pipe delays nothing. What has left the
group is ended by `OrphanReaper`, for those who claim it.

The caller decides about the ladder: `end_input`, `terminate`, `kill`.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

from zotd.process import descriptors
from zotd.process.descent import marked
from zotd.process.exit import AdoptedWatch, ExitWatch, watch_exit
from zotd.process.fd_handover import Survivor
from zotd.process.input import Input
from zotd.process.orphan_reaper import Claim
from zotd.process.output import Output


class Listener(Protocol):
    """Gets what a service does, on the event loop; must not block."""

    def output(self, data: bytes) -> None:
        """Bytes of its stdout."""
        ...

    def errors(self, data: bytes) -> None:
        """Bytes of its stderr."""
        ...

    def closed(self, pipe: str) -> None:
        """It has closed its `stdin` or `stdout`."""
        ...

    def stalled(self, reason: str) -> None:
        """It does not read, and nothing more is written; `reason` goes on from its name."""
        ...

    def exited(self, code: int | None) -> None:
        """It has ended, and all its output was delivered. Exit code, or minus a signal's number. Called last, once.

        None: it was adopted, and only its parent knows.
        """
        ...


class Service:
    """A running service; made by `start_service`, used on one event loop."""

    def __init__(
        self,
        pid: int,
        pipes: tuple[int, int, int],
        listener: Listener,
        claim: Claim | None = None,
        *,
        survivor: Survivor | None = None,
    ) -> None:
        """Own the process `pid`, which leads its group, and our ends of its stdin, stdout and stderr.

        `survivor`: what it is when it is not our child.
        """
        self.pid = pid
        self.is_alive = True
        stdin, stdout, stderr = pipes
        self._listener = listener
        self._claim = claim
        self._is_killed = False
        handover = claim.handover if claim else None
        self._stdin = Input(
            stdin,
            on_stall=listener.stalled,
            on_closed=lambda: listener.closed("stdin"),
            on_torn=handover.torn if handover else None,
            is_torn=survivor is not None and survivor.is_cut,
        )
        self._stdout = Output(stdout, listener.output, on_end=lambda: listener.closed("stdout"))
        self._stderr = Output(stderr, listener.errors)
        if survivor is None:
            self._watch: ExitWatch | AdoptedWatch = watch_exit(pid, self._exited)
        else:
            self._watch = AdoptedWatch(pid, survivor.pidfd, self._exited)

    def write(self, frame: bytes) -> None:
        """Write to its stdin: see `Input.write`."""
        self._stdin.write(frame)

    def end_input(self) -> None:
        """Close its stdin when all that waits is written."""
        self._stdin.end()

    def terminate(self) -> None:
        """Ask the whole group to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the whole group."""
        self._is_killed = True
        self._signal(signal.SIGKILL)

    def let_go(self) -> None:
        """Leave it to the next daemon, as its claim's `Bequest` tells; nothing more is heard of it."""
        self.is_alive = False
        self._watch.close()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        if self._claim is not None:
            self._claim.left()

    def pause_output(self) -> None:
        """Read its stdout no more until `resume_output`; it then blocks when it writes."""
        self._stdout.pause()

    def resume_output(self) -> None:
        """Read it again."""
        self._stdout.resume()

    def pause_errors(self) -> None:
        """Read its stderr no more until `resume_errors`."""
        self._stderr.pause()

    def resume_errors(self) -> None:
        """Read it again."""
        self._stderr.resume()

    def _signal(self, number: int) -> None:
        if self.is_alive:
            self._watch.signal_group(number)

    def _exited(self) -> None:
        self._signal(signal.SIGKILL)  # while the leader is a zombie, its number is nobody else's group
        self.is_alive = False
        code = self._watch.reap()
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
    listener: Listener,
    claim: Claim | None = None,
) -> Service:
    """Start a service in a session and process group of its own.

    `argv[0]` is looked up on `env`'s PATH, and `env` is the whole environment, but for the mark that the `claim` adds.
    With one (`OrphanReaper.claim`, used up by this call) nothing of the service outlives it, nor us for long; without, only
    the group ends with it. The caller owns the service until `Listener.exited`. `OSError` and `ValueError` (a NUL in
    an argument) mean that nothing was started.

    A claim on a survivor goes on with that one instead: what it had written is delivered, `argv` and `env` are not used.
    """
    survivor = claim.handover.survivor if claim and claim.handover else None
    if claim is not None and survivor is not None:
        claim.adopted(survivor.head.identity)
        return Service(survivor.head.pid, survivor.pipes, listener, claim, survivor=survivor)
    if claim is not None:
        argv, env = claim.command(argv, env), claim.environment(env)
    try:
        pid, pipes = _start(argv, cwd, env)
    except BaseException:
        if claim is not None:
            claim.entry.close()
        raise
    if claim is not None:
        claim.started(pid, pipes)
    return Service(pid, pipes, listener, claim)


def _start(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> tuple[int, tuple[int, int, int]]:
    """The pid, and our ends of stdin, stdout and stderr."""
    theirs: list[int] = []
    ours: list[int] = []
    try:
        for is_input in (True, False, False):
            readable, writable = os.pipe()
            theirs.append(readable if is_input else writable)
            ours.append(writable if is_input else readable)
        stdin, stdout, stderr = theirs
        process = subprocess.Popen(  # noqa: S603  (running what the user installed is the purpose)
            argv, cwd=cwd, env=marked(env), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
    except BaseException:
        for fd in ours:
            os.close(fd)
        raise
    finally:
        for fd in theirs:
            os.close(fd)
    descriptors.give_back(process.pid)
    process.returncode = 0  # disowned: Popen would warn about, and later reap, a child that only `Service` waits for
    return process.pid, (ours[0], ours[1], ours[2])
