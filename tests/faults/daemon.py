"""Daemons that are killed: real processes, forked by `tests.faults.nursery`, each in a folder of its own."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import msgspec

from tests.faults.nursery import POINTS_FILE, Birth, Order
from zotd.testing.live_daemon import ROOT, DaemonPaths

LOAD_S = 30.0
"""Longest wait for the nursery, which loads two vendors' libraries, and for a daemon's start after it."""

STOP_S = 15.0
"""Longest wait for a daemon that was asked to stop; it gives its runs 5 s and its extensions 3.3 s."""


class Nursery:
    """The process that forks daemons, for the time of an `async with`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Use `Nursery.open`."""
        self._process = process
        self._ordered: dict[str, asyncio.Future[Daemon]] = {}
        self._starting: dict[int, asyncio.Future[None]] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Self]:
        """Start it; at the end every daemon of it is dead."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.faults.nursery",
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us: we end it
        )
        nursery = cls(process)
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(nursery._listen(), name="nursery")
            try:
                yield nursery
            finally:
                assert process.stdin is not None
                process.stdin.close()
                async with asyncio.timeout(STOP_S):
                    await process.wait()
                listening.cancel()

    async def bear(self, order: Order) -> "Daemon":
        """Start a daemon; it may die at any moment, also before it serves."""
        born: asyncio.Future[Daemon] = asyncio.get_running_loop().create_future()
        self._ordered[order.folder] = born
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        async with asyncio.timeout(LOAD_S):
            return await born

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            birth = msgspec.json.decode(line, type=Birth)
            if birth.ready:
                ready = self._starting.pop(birth.pid)
                if not ready.done():  # else it was killed meanwhile
                    ready.set_result(None)
                continue
            ready = self._starting[birth.pid] = asyncio.get_running_loop().create_future()
            self._ordered.pop(birth.folder).set_result(Daemon(Path(birth.folder), birth.pid, ready))
        for waiting in self._ordered.values():
            waiting.set_exception(RuntimeError("the nursery has ended; its standard error says why"))


class Daemon:
    """One process."""

    def __init__(self, folder: Path, pid: int, ready: "asyncio.Future[None]") -> None:
        """Made by `Nursery.bear`."""
        self.dead = asyncio.Event()
        """The process is gone, and with it its locks and sockets."""
        self._folder = folder
        self._ready = ready
        self._loop = asyncio.get_running_loop()
        self._pidfd = -1
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:  # dead already, and the nursery has freed the pid for the sake of another one
            self._ended()
        else:
            self._loop.add_reader(self._pidfd, self._ended)

    async def serves(self) -> bool:
        """Wait until it serves; False when it dies before."""
        async with asyncio.timeout(LOAD_S):
            await asyncio.wait({self._ready}, return_when=asyncio.FIRST_COMPLETED)
        return not self._ready.cancelled() and not self.dead.is_set()

    def kill(self) -> None:
        """kill -9; harmless when it is dead."""
        self._send(signal.SIGKILL)

    def pause(self) -> None:
        """Stop it where it is, as the kernel does; `go_on` ends that."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on after `pause`."""
        self._send(signal.SIGCONT)

    async def stop(self) -> Mapping[str, int]:
        """End it in order; how often each point was reached in its life. Empty when it had to be killed, or was."""
        self._send(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self.dead.wait()
        self.kill()
        await self.dead.wait()
        found = self._folder / POINTS_FILE
        if not found.exists():
            return {}
        counts = msgspec.json.decode(found.read_bytes(), type=dict[str, int])
        found.unlink()
        return counts

    def _send(self, number: signal.Signals) -> None:
        if not self.dead.is_set():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _ended(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self.dead.set()
        self._ready.cancel()


def order(
    place: DaemonPaths, *, point: str = "", nth: int = 0, number: int = signal.SIGKILL, network: str = ""
) -> Order:
    """A daemon in this place, and in the network namespace at this path. `number`: the signal at the point."""
    return Order(str(place.folder), dict(place.env), point, nth, number, network=network)
