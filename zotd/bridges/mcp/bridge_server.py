"""Runs many bridges in one process, by orders of the daemon (`zotd.wire.bridges`).

    START n ──> a task: request, `ServedBridge.run` ── its end ──> streams closed ──> "n code"
    END n   ──> SIGTERM to the server's processes, and the bridge leaves
    KILL n  ──> SIGKILL to them, and the task ends at once

Nothing here waits for one bridge while others have work: pipes are read and written by the event loop, a flood pauses its own
server, and files and certificates are read in threads. A message is decoded at once, which for the longest takes a while.
"""

import asyncio
import logging
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from zotd.bridges.host_link import HostLink
from zotd.bridges.mcp.bridge_log import CURRENT, BridgeLog
from zotd.bridges.mcp.served import ServedBridge
from zotd.wire.bridges import MESSAGE, STREAMS, BridgeOrder, BridgeRequest, report

MAX_THREADS = 32
"""Threads for names of hosts and for files; one that hangs must not keep the other bridges from theirs."""

REQUEST_S = 5.0
"""How long the request of a bridge may take, which the daemon writes at once."""

ORDERS_AT_ONCE = 16
"""Orders that are read in one turn of the event loop."""

FAILED = 1

log = logging.getLogger(__name__)


class _Running:
    """A bridge whose task runs."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.bridge: ServedBridge | None = None
        """None as long as its request is not there."""
        self.link: HostLink | None = None
        self.is_killed = False


class BridgeServer:
    """All bridges of this process."""

    def __init__(self, control: socket.socket, reports: int) -> None:
        """Read orders from `control`, and write to the descriptor `reports`; both stay the caller's."""
        self._control = control
        self._reports = reports
        self._running: dict[int, _Running] = {}
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Serve until the daemon closes `control`, and end all bridges then."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="bridge"))
        self._control.setblocking(False)
        async with asyncio.TaskGroup() as tasks:
            loop.add_reader(self._control, self._read, tasks)
            await self._over.wait()
            loop.remove_reader(self._control)
            for number in list(self._running):
                self._end(number)

    # --- orders ---------------------------------------------------------------------------------------------------

    def _read(self, tasks: asyncio.TaskGroup) -> None:
        for _ in range(ORDERS_AT_ONCE):
            try:
                message, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE.size, STREAMS)
            except BlockingIOError:
                return
            except OSError:
                message, descriptors = b"", []
            if len(message) < MESSAGE.size:
                self._over.set()
                return
            order, number = MESSAGE.unpack(message)
            match order:
                case BridgeOrder.START:
                    self._start(number, descriptors, tasks)
                case BridgeOrder.END:
                    self._end(number)
                case BridgeOrder.KILL:
                    self._kill(number)
                case _:
                    log.warning("an order is unknown: %d", order)

    def _start(self, number: int, descriptors: list[int], tasks: asyncio.TaskGroup) -> None:
        if len(descriptors) < STREAMS:  # this process has no free ones
            for descriptor in descriptors:
                os.close(descriptor)
            self._report(number, FAILED)
            return
        running = self._running[number] = _Running()
        running.task = tasks.create_task(self._run(number, running, descriptors))

    def _end(self, number: int) -> None:
        self._leave(number, signal.SIGTERM)

    def _kill(self, number: int) -> None:
        running = self._running.get(number)
        if running is not None:
            running.is_killed = True
            self._leave(number, signal.SIGKILL)
            self._leave(number, signal.SIGKILL)  # the second cancellation interrupts the closing of the connection
            if running.link is not None:
                running.link.abort()

    def _leave(self, number: int, how: signal.Signals) -> None:
        running = self._running.get(number)
        if running is None:
            return
        if running.bridge is not None:
            running.bridge.signal(how)
            running.bridge.leave()
        elif running.task is not None:
            running.task.cancel()

    # --- bridges --------------------------------------------------------------------------------------------------

    async def _run(self, number: int, running: _Running, descriptors: list[int]) -> None:
        """Run one bridge to its end, whatever that is, and report it."""
        stdin, stdout, stderr = descriptors
        own_log = BridgeLog(stderr)
        CURRENT.set(own_log)
        code = FAILED
        try:
            link = running.link = await HostLink.opened(stdin, stdout)
            try:
                code = await self._serve(running, link, own_log)
            finally:
                await link.close()
        except asyncio.CancelledError:  # it was told to end before it served
            code = -signal.SIGTERM
        except Exception:
            log.exception("the bridge failed")
        finally:
            CURRENT.set(None)
            own_log.close()
            del self._running[number]
            self._report(number, -signal.SIGKILL if running.is_killed else code)

    async def _serve(self, running: _Running, link: HostLink, own_log: BridgeLog) -> int:
        async with asyncio.timeout(REQUEST_S):
            request = BridgeRequest.unpacked(await link.line())
        bridge = running.bridge = ServedBridge(request, own_log.descriptor, fails=own_log.write_last)
        return await bridge.run(link)

    def _report(self, number: int, code: int) -> None:
        with suppress(BrokenPipeError):  # the daemon has ended
            os.write(self._reports, report(number, code))
