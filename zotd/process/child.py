"""Runs a command as the leader of its own process group, streams its output, and ends the whole group on demand.

    spawn ──> runs ──> exits by itself ──> DRAIN_S for late output ──> wait() returns
                └────> stop(): SIGTERM to the group, grace, SIGKILL to the group ──> wait() returns

`spawn` blocks for the 0.2 to 1 ms that a `vfork` takes. `preexec_fn` would force a `fork`, which costs 20 ms in a
large process; `start_new_session` costs nothing.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol, Self

from zotd.process import descent, descriptors
from zotd.process.exit import watch_exit
from zotd.process.ledger import ChildEntry, ChildLedger, clock
from zotd.started_process import Started

GRACE_S = 0.5
"""From SIGTERM to SIGKILL: enough for a shell and a compiler, and an abort still feels immediate."""

KILL_S = 0.5
"""Wait after SIGKILL. Longer takes only a process stuck in the kernel, or one that left the group with the pipe."""

DRAIN_S = 0.1
"""Wait for the end of the output after the exit. Something that the child did not wait for may still be writing its
last line (`>(tee log)`); something in the background would hold it for ever."""

CHUNK_BYTES = 64 * 1024
"""Size of one read; the default capacity of a Linux pipe."""

PIPE_BYTES = 1024 * 1024
"""Maximum capacity of an unprivileged user's pipe; bounds the last reads after the child has exited."""

DISCARD_EVERY_S = 0.05
"""Pause between two reads of discarded output, in seconds. The pipe fills up in between, which limits a flood to
1.3 MB/s."""


class Confiner(Protocol):
    """Confines the children that are started through it; `zotd.jail` has some."""

    def start(self, argv: Sequence[str], start: Callable[[Sequence[str]], Started]) -> Started:
        """Call `start` once, with the command to run in place of `argv`, and return or raise what it does.

        Blocks. It may run on another thread. Raises what the confiner raises if the command would not be confined.
        """
        ...


class PipeReader:
    """Passes the bytes of a child's pipe to a callback on the event loop, without blocking.

    reading ⇄ paused      until the child has exited
       ↓
    discarding            only when a descendant of the child still holds the pipe
       ↓
    closed
    """

    def __init__(
        self, fd: int, on_output: Callable[[bytes], None], *, on_end: Callable[[], None] | None = None
    ) -> None:
        """Take ownership of `fd`. `on_end` is called when all writers have closed the pipe, but not by `close`."""
        os.set_blocking(fd, False)
        self.ended = asyncio.Event()
        """Set when no more output will be delivered."""
        self._fd = fd
        self._on_output = on_output
        self._on_end = on_end
        self._paused = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._deliver)

    def pause(self) -> None:
        """Stop delivering until `resume`; the child blocks as soon as the pipe is full."""
        if not self._paused and not self.ended.is_set():
            self._paused = True
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Continue after `pause`."""
        if self._paused and not self.ended.is_set():
            self._paused = False
            self._loop.add_reader(self._fd, self._deliver)

    def drain(self) -> None:
        """Deliver what is in the pipe now, even if paused. After the child's exit that is all it ever wrote."""
        # Bounded, because a descendant may write as fast as this loop reads.
        for _ in range(PIPE_BYTES // CHUNK_BYTES):
            if self.ended.is_set() or not self._deliver():
                return

    def let_go(self) -> None:
        """Drain the pipe, then discard what descendants of the child still write.

        The pipe stays open, because closing it would end a server that the child started in the background with
        SIGPIPE at its next line of output.
        """
        if self.ended.is_set():
            return
        self.drain()
        if not self.ended.is_set():
            self.ended.set()
            self._loop.remove_reader(self._fd)
            self._loop.add_reader(self._fd, self._discard)

    def close(self) -> None:
        """Close the pipe without delivering the rest."""
        self.ended.set()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _deliver(self) -> bool:
        data = self._read()
        if data:
            self._on_output(data)
        return bool(data)

    def _discard(self) -> None:
        self._read()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._loop.call_later(DISCARD_EVERY_S, self._discard_on)

    def _discard_on(self) -> None:
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._discard)

    def _read(self) -> bytes:
        """Read the next chunk; empty if there is none, or at the end of the output, where it closes the pipe."""
        try:
            data = os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.close()
            if self._on_end is not None:
                self._on_end()
        return data


class Child:
    """A running child; made by `spawn`, used on one event loop.

    As a context manager it stops the child when the block is left before the child has exited, by cancellation too.
    """

    def __init__(self, pid: int, output: PipeReader, entry: ChildEntry | None = None) -> None:
        """Take ownership of the group leader `pid`, of `output`, and of the `entry` in the ledger."""
        self.pid = pid
        self.returncode: int | None = None
        """Exit code, or minus a signal's number; None until the child has exited."""
        self._output = output
        self._entry = entry
        self._exited = asyncio.Event()
        self._reaped = asyncio.Event()
        self._stopping = False
        self._is_handed_over = False
        self._loop = asyncio.get_running_loop()
        self._watch = watch_exit(pid, self._on_exit)

    async def wait(self) -> int:
        """Wait until the child has exited and its output is delivered, and return `returncode`. Safe to cancel."""
        await self._reaped.wait()
        await self._output.ended.wait()
        assert self.returncode is not None
        return self.returncode

    def signal_group(self, number: int) -> None:
        """Send a signal to the child and its descendants in the same group.

        Does nothing once the child has exited: processes that it left in the background are not ours any more.
        """
        if self.returncode is None:
            # macOS answers "not permitted" for a group that has only zombies left.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def pause_output(self) -> None:
        """Stop reading until `resume_output`; the child blocks as soon as the pipe is full."""
        self._output.pause()

    def resume_output(self) -> None:
        """Continue reading the output after `pause_output`."""
        self._output.resume()

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Send SIGTERM to the group, and SIGKILL after `grace_s`; return at once if the child has already exited.

        Takes at most `grace_s` + `KILL_S`. If cancelled, it sends SIGKILL before it raises.
        """
        if self.returncode is not None:
            return
        # Not reaped before the last signal: as long as the child is a zombie, no other group can get its number.
        self._stopping = True
        try:
            self.signal_group(signal.SIGTERM)
            await self._gone(grace_s)
            self.signal_group(signal.SIGKILL)
            await self._gone(KILL_S)
        finally:
            # Also after a cancellation. The leader is not reaped yet, so this cannot reach another group.
            self.signal_group(signal.SIGKILL)
            self._stopping = False
            if self._exited.is_set():
                self._reap()
            # What is in the pipe now is part of the output; a process that still holds the pipe is not waited for.
            self._output.drain()
            self._output.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_handed_over:
            await self.stop()

    def hand_over(self) -> None:
        """Belong to somebody else from now on: leaving the block does not stop it any more, and its group ends with it."""
        self._is_handed_over = True

    async def _gone(self, within_s: float) -> None:
        """Wait for the exit and the end of the output, because the kernel reports no event when a group is empty."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._exited.wait()
                await self._output.ended.wait()

    def _on_exit(self) -> None:
        self._exited.set()
        if not self._stopping:
            if self._is_handed_over:
                self.signal_group(signal.SIGKILL)  # before it is reaped: until then no other group has its number
            self._reap()
            # Do not wait for the end of the pipe: a background process may hold it for hours.
            self._loop.call_later(DRAIN_S, self._output.let_go)

    def _reap(self) -> None:
        if self.returncode is None:
            self.returncode = self._watch.reap()
            descent.forget(self.pid)  # from now on the kernel may reuse the pid
            if self._entry is not None:
                self._entry.close()
            self._reaped.set()


def spawn(  # noqa: PLR0913  (each is something that a process has, as in `subprocess.Popen`)
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    on_output: Callable[[bytes], None],
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.STDOUT,
    ledger: ChildLedger | None = None,
    jail: Confiner | None = None,
) -> Child:
    """Start a child in a session and process group of its own.

    The caller owns the child: do not await between this call and the `try` or `async with` that stops it.

    Args:
        argv: the command; `argv[0]` is looked up on the PATH of `env`.
        cwd: its working directory.
        env: its whole environment.
        on_output: called with each chunk of output on the running event loop; must not block.
        stdin: a descriptor, which is not closed, or a constant of `subprocess`.
        stderr: as `stdin`; by default it is part of the output.
        ledger: if given, the next daemon ends the child and its group if this process is killed. Costs 60 us.
        jail: if given, the child is confined, or not started at all; `argv[0]` has to be an absolute path.

    Raises:
        OSError: the command could not be started.
        ValueError: an argument contains NUL.
    """
    since = clock()

    def start(command: Sequence[str]) -> PipedProcess:
        return start_piped(command, cwd, env, stdin=stdin, stderr=stderr)

    pid, readable = start(argv) if jail is None else jail.start(argv, start)
    # After the start, while the kernel loads the program. An entry before it would not help a daemon that is killed in
    # between: without a pid and without a mark in its environment, the child cannot be found.
    entry = None if ledger is None else ledger.started(pid, argv[0].rpartition("/")[2], since)
    return Child(pid, PipeReader(readable, on_output), entry)


class PipedProcess(NamedTuple):
    """A child that was just started, and that the caller has to watch."""

    pid: int
    output: int
    """The read end of its output pipe."""


def start_piped(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    *,
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.STDOUT,
) -> PipedProcess:
    """Start a child as `spawn` does, without watching it; raises like `spawn`."""
    readable, writable = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603  (running what the user's agent asks for is the purpose)
            argv, cwd=cwd, env=descent.marked(env), stdin=stdin, stdout=writable, stderr=stderr, start_new_session=True
        )
    except BaseException:
        os.close(readable)
        raise
    finally:
        # With a copy of the write end open in this process, the output would never reach its end.
        os.close(writable)
    if descriptors.inherited is not None:
        descriptors.give_back(process.pid)
    process.returncode = 0  # disowned: Popen would warn about, and later reap, a child that only its watch waits for
    return PipedProcess(process.pid, readable)
