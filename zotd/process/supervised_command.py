"""A command that a job supervisor runs, as a daemon sees it: the one that has started it, or a later one.

    start_supervised ──> SupervisedCommand <── adopt
                          │ follow(): the supervisor exits ──> its state says how the command has ended, or is_lost
                          │ stop():   SIGTERM to the supervisor, which ends the command
                          └ leave():  follow returns, and the command goes on

Nothing is polled while the command runs: the state and the output are read on demand.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from zotd.process import descent
from zotd.process.bounded_output import NO_LINK, OutputPart
from zotd.process.census import Identity, identify, is_alive
from zotd.process.child import start_piped
from zotd.process.supervisor_state import (
    ABANDONED,
    ENDED,
    SupervisorOrder,
    SupervisorState,
    create_state,
    read_state,
)

STOP_S = 4.0
"""Longest wait for a supervisor that was asked to end its command; that takes it two seconds at most."""

LOOK_S = 1.0
"""Pause between two looks whether a supervisor lives, in seconds, where the kernel has no pidfd."""

PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "TMPDIR")
"""Variables of the daemon that a supervisor gets. Its command gets those of the session."""


class SupervisedOutput:
    """Reads the output of a supervised command, while it grows and later. Safe to use on any thread."""

    def __init__(self, path: Path, state: Path) -> None:
        """`state` is the supervisor's file."""
        self.path = path
        self._state = state

    @property
    def total(self) -> int:
        """Bytes that are on disk or were dropped. Takes 50 us."""
        try:
            descriptor = self._open()
        except OSError:
            found = read_state(self._state)
            return found.output_bytes if found else 0
        try:
            return self._base(descriptor) + os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    @property
    def failure(self) -> str:
        """Why a part of the output could not be kept; empty: nothing is lost, or the command still runs."""
        found = read_state(self._state)
        return found.failure if found else ""

    async def written(self) -> None:
        """Return at once: what can be read is on disk."""

    def read(self, start: int, limit_bytes: int) -> OutputPart:
        """See `BoundedOutput.read`."""
        try:
            descriptor = self._open()
        except OSError:
            return OutputPart(start, b"")
        try:
            base = self._base(descriptor)
            start = max(start, base)
            return OutputPart(start, os.pread(descriptor, limit_bytes, start - base))
        except OSError:  # the command has put a pipe or a directory there
            return OutputPart(start, b"")
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | NO_LINK)

    def _base(self, descriptor: int) -> int:
        """Return the offset at which the open file begins in the whole output."""
        # Recorded before the file got its name, so that it is known of every file that can be open here.
        found = read_state(self._state)
        return dict(found.bases).get(os.fstat(descriptor).st_ino, 0) if found else 0


class SupervisedCommand:
    """A command that outlives the daemon; used on one event loop. `follow` has to run until it returns."""

    def __init__(self, path: Path, supervisor: Identity | None, output: SupervisedOutput) -> None:
        """`path` is the file with the `SupervisorState`. None: there is no supervisor any more."""
        self.output = output
        self.state = read_state(path) or SupervisorState(state=ABANDONED)
        """As it was read last."""
        self.is_left = False
        """It goes on without this daemon."""
        self._path = path
        self._supervisor = supervisor
        self._woken = asyncio.Event()

    @property
    def pid(self) -> int:
        """Of the leader of the command's group; 0 as long as it has not started."""
        return self._looked().pid

    @property
    def mark(self) -> str:
        """Value of `census.MARK` in all that it has started."""
        return self._looked().mark

    @property
    def code(self) -> int | None:
        """Exit code in the form of a shell; None until it has ended, and if it is not known."""
        return self.state.exit

    @property
    def has_ended(self) -> bool:
        """Whether there is no supervisor any more."""
        return self._supervisor is None or not is_alive(self._supervisor)

    @property
    def is_lost(self) -> bool:
        """Whether the supervisor has ended without recording how the command did."""
        return not self.is_left and self.state.state != ENDED

    @property
    def took_s(self) -> float:
        """How long the command runs, or has run, in seconds."""
        state = self._looked()
        if state.state == ENDED:
            return state.took_s
        return round(max(0.0, time.time() - state.began), 3) if state.began else 0.0

    async def follow(self) -> None:
        """Return when the command has ended, is lost, or was left. Cancelled, it leaves the command."""
        try:
            await self._until_exit()
        except asyncio.CancelledError:
            self.is_left = True
            raise
        finally:
            if self._supervisor is not None:
                descent.forget(self._supervisor.pid)
                _reap(self._supervisor.pid)
        self.state = read_state(self._path) or self.state

    async def stop(self) -> None:
        """End the command with all that it has started; `follow` returns soon after. Takes at most `STOP_S`."""
        self._signal(signal.SIGTERM)
        if await happened(self._woken, STOP_S):
            return
        self._signal(signal.SIGKILL)  # what it leaves is ended as that of a daemon that was killed

    def leave(self) -> None:
        """Let the command go on without this daemon: `follow` returns."""
        self.is_left = True
        self._woken.set()

    def _looked(self) -> SupervisorState:
        if self.state.state != ENDED:
            self.state = read_state(self._path) or self.state
        return self.state

    def _signal(self, number: int) -> None:
        if self._supervisor is not None and is_alive(self._supervisor):
            with suppress(ProcessLookupError):
                os.kill(self._supervisor.pid, number)

    async def _until_exit(self) -> None:
        """Wait for the exit of the supervisor, or `leave`."""
        supervisor, loop = self._supervisor, asyncio.get_running_loop()
        if supervisor is None:
            self._woken.set()
            return
        try:
            pidfd = os.pidfd_open(supervisor.pid)
        except (OSError, AttributeError):  # it has ended, or this kernel has none
            while is_alive(supervisor) and not await happened(self._woken, LOOK_S):
                pass
            self._woken.set()
            return
        loop.add_reader(pidfd, self._woken.set)
        try:
            if is_alive(supervisor):  # else the descriptor may be that of another process with its number
                await self._woken.wait()
            self._woken.set()
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)


async def happened(event: asyncio.Event, within_s: float) -> bool:
    """Wait for the event, and return whether it has come in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
    return event.is_set()


def state_path(output: Path) -> Path:
    """Return the file with the state of the command whose output is in this file."""
    return output.with_suffix(".state")


def start_supervised(order: SupervisorOrder, owners: Collection[str]) -> SupervisedCommand:
    """Start a supervisor, which starts the command. Blocks for a millisecond.

    Whether the command itself could be started is known when `follow` returns: `SupervisorState.error`.

    Raises:
        OSError: the supervisor could not be started.
    """
    with _unnamed_file() as stdin:
        stdin.write(msgspec.json.encode(order))
        stdin.seek(0)
        process = start_piped(
            [sys.executable, "-P", "-m", "zotd.process.job_supervisor"],
            os.sep,
            _environment(os.environ),
            stdin=stdin.fileno(),
            stderr=subprocess.DEVNULL,
        )
    os.close(process.output)  # it prints nothing
    supervisor = identify(process.pid) or Identity(process.pid, 0)
    descent.belongs(process.pid, owners)
    return SupervisedCommand(Path(order.state), supervisor, SupervisedOutput(Path(order.output), Path(order.state)))


def adopt(output: Path, owners: Collection[str]) -> SupervisedCommand:
    """Return the command with this output that an earlier daemon has started. Blocks for some ms.

    If its supervisor has not come to start it, it never will. Raises OSError if that cannot be made sure.
    """
    path = state_path(output)
    found = read_state(path)
    if found is None and not create_state(path, SupervisorState(state=ABANDONED)):
        found = read_state(path)
    supervisor = found.supervisor if found is not None and found.is_supervised else None
    if supervisor is not None:
        descent.adopted(supervisor, owners)
    return SupervisedCommand(path, supervisor, SupervisedOutput(output, path))


def _unnamed_file() -> IO[bytes]:
    """Return a file that only this process has; in memory where that is possible, because the order has the session's secrets."""
    create: Callable[[str], int] | None = getattr(os, "memfd_create", None)  # Linux has it
    return tempfile.TemporaryFile() if create is None else os.fdopen(create("order"), "w+b")


def _reap(pid: int) -> None:
    """Reap a supervisor that was our child, unless it lives or was reaped: a subreaper reaps every child."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in PASSED_ON if name in env}
