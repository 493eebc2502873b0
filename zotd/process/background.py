"""Runs a command in the background; all that it has started ends with it.

    start ──> runs ──> exits by itself ──> DRAIN_S for late output ─┐
                └────> stop(): SIGTERM to the group, grace, SIGKILL ┴─> SIGKILL to the rest of the group, reaped
                                                                          └──> what has left the group: `ServiceClaim.ended`

Not a `Child`, whose background processes are left alone: here the leader is not reaped before its group is killed, so that no
other group can have its number by then.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from zotd.process.bounded_output import BoundedOutput
from zotd.process.child import DRAIN_S, KILL_S, Confiner, PipedProcess, PipeReader, start_piped
from zotd.process.exit import watch_exit
from zotd.process.orphan_reaper import ServiceClaim

NO_PIPES = (-1, -1, -1)
"""Of a command that no later daemon takes over."""

GRACE_S = 1.0
"""From SIGTERM to SIGKILL: a server closes what it has open in less."""


class BackgroundCommand:
    """A running command; made by `start_in_background`, used on one event loop. `follow` has to run until it returns."""

    def __init__(
        self, process: PipedProcess, output: BoundedOutput, claim: ServiceClaim, came: Callable[[bytes], None]
    ) -> None:
        """Take ownership of the group leader and of its pipe; `came` gets each chunk of the output."""
        self.pid = process.pid
        self.code: int | None = None
        """Exit code in the form of a shell, 128 + N after signal N; None until it has ended, and if it cannot be ended."""
        self.output = output
        self._claim = claim
        self._came = came
        self._exited = asyncio.Event()
        self._is_killed = False
        self._pipe = PipeReader(process.output, self._take)
        self._watch = watch_exit(process.pid, self._exited.set)

    @property
    def mark(self) -> str:
        """Value of `census.MARK` in all that it has started."""
        return self._claim.entry.mark

    async def follow(self) -> None:
        """Return when it has ended, with its group, and its output is on disk. Cancelled, it kills the group."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.output.write_until_end(self._pipe.resume), name=f"output of {self.pid}")
            try:
                await self._exited.wait()
                await self._drained()
            finally:
                self._close()
                self.output.end()

    async def stop(self) -> None:
        """Send SIGTERM to the group, and SIGKILL after `GRACE_S`; `follow` returns soon after. Takes at most 1.5 s."""
        self._signal(signal.SIGTERM)
        for grace_s in (GRACE_S, KILL_S):
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._exited.wait()
                    return
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the group."""
        self._is_killed = True
        self._signal(signal.SIGKILL)

    async def _drained(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._pipe.ended.wait()

    def _take(self, data: bytes) -> None:
        self.output.feed(data)
        self._came(data)
        if self.output.is_behind:
            self._pipe.pause()

    def _signal(self, number: int) -> None:
        if self.code is None:
            self._watch.signal_group(number)

    def _close(self) -> None:
        self._signal(signal.SIGKILL)  # the rest of its group
        if self._exited.is_set():
            code = self._watch.reap()
            self.code = code if code >= 0 else 128 - code
        else:  # the task was cancelled: a subreaper, or init, reaps it
            self._watch.close()
        # What is in the pipe now is part of the output; a process that has left the group and holds it is not waited for.
        self._pipe.drain()
        self._pipe.close()
        self._claim.ended(is_killed=self._is_killed)


def start_in_background(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    output: BoundedOutput,
    claim: ServiceClaim,
    jail: Confiner | None,
    came: Callable[[bytes], None],
) -> BackgroundCommand:
    """Start a command in a session and process group of its own, without input.

    The caller has to run `BackgroundCommand.follow`, in a task that it starts before its next await.

    Args:
        argv: the command; an absolute path and its arguments.
        cwd: its working directory.
        env: its whole environment, except for the mark that `claim` adds.
        output: where its output goes.
        claim: from `OrphanReaper.claim`, for this call only.
        jail: if given, it is confined, or not started at all.
        came: called with each chunk of output on the event loop; must not block.

    Raises:
        OSError: it could not be started.
        ValueError: an argument contains NUL.
    """
    marked = claim.environment(env)

    def start(command: Sequence[str]) -> PipedProcess:
        return start_piped(command, cwd, marked)

    try:
        process = start(argv) if jail is None else jail.start(argv, start)
    except BaseException:
        claim.entry.close()
        raise
    claim.started(process.pid, NO_PIPES)
    return BackgroundCommand(process, output, claim, came)
