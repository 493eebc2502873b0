"""One process that runs the bridges of a workspace; to their extensions, each of them is a process.

start ──> a Service with pipes of its own ── terminate, kill ──> orders
                                          <── its exit ───────── reports; or the process has ended, and all with it
no bridge for LINGER_S, or `close` ──> its stdin is closed ── END_S ──> SIGKILL
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from zotd.process import Service, ServiceClaim, start_service
from zotd.process.exit import UNKNOWN_EXIT
from zotd.process.service import ForkedProcess, ServiceListener
from zotd.wire.bridges import MESSAGE, REPORT_BYTES, BridgeOrder, read_report
from zotd.wire.framing import Lines, TooLong

LINGER_S = 5.0
"""How long a process without a bridge waits for another one, for example after a crash of its only server."""

KILL_S = 2.0
"""How long the process may take to confirm that a bridge was killed. It takes milliseconds, unless it hangs."""

END_S = 2.0
"""Time from the end of its stdin to SIGKILL; its bridges take up to 1.6 s to end their servers."""

log = logging.getLogger(__name__)


class BridgeWatch:
    """The exit of one bridge, as `process.exit.ExitWatch`: signals become orders."""

    def __init__(self, order: Callable[[BridgeOrder], None], on_exit: Callable[[], None]) -> None:
        self._order = order
        self._on_exit = on_exit
        self._code: int | None = None

    def signal_group(self, number: int) -> None:
        """Have the bridge end, or be killed."""
        if self._code is None:
            self._order(BridgeOrder.KILL if number == signal.SIGKILL else BridgeOrder.END)

    def reap(self) -> int:
        """Return the exit code."""
        return UNKNOWN_EXIT if self._code is None else self._code

    def close(self) -> None:
        """Bridges are not left to the next daemon, so that nothing is to be closed."""

    def ended(self, code: int) -> None:
        """Report the exit."""
        self._code = code
        self._on_exit()


class BridgeProcess:
    """A running process; belongs to one event loop."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        claim: ServiceClaim | None,
        forked: ForkedProcess | None,
        on_end: Callable[["BridgeProcess"], None],
        linger_s: float = LINGER_S,
    ) -> None:
        """Start it with `start_service`; `on_end` is called as soon as it takes no more bridges.

        Raises:
            OSError, ValueError: nothing was started.
        """
        self.gone = asyncio.Event()
        """Set when the process has ended."""
        self._on_end = on_end
        self._is_closed = False
        self._numbers = 0
        self._bridges: dict[int, BridgeWatch] = {}
        self._kills: dict[int, asyncio.TimerHandle] = {}
        self._reports = Lines(REPORT_BYTES)
        self._linger_s = linger_s
        self._loop = asyncio.get_running_loop()
        self._service = start_service(
            argv, cwd=cwd, env=env, listener=self, claim=claim, forked=forked, takes_descriptors=True
        )
        self._end = self._loop.call_later(linger_s, self.close)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._service.pid

    def start(self, request: bytes, claim: ServiceClaim | None, listener: ServiceListener) -> Service:
        """Start a bridge, with the environment of the claim in its request.

        Raises:
            OSError: it was not started.
        """
        number = self._numbers = self._numbers + 1
        theirs: list[int] = []
        ours: list[int] = []
        try:
            for is_input in (True, False, False):
                readable, writable = os.pipe()
                theirs.append(readable if is_input else writable)
                ours.append(writable if is_input else readable)
            self._service.pass_on(MESSAGE.pack(BridgeOrder.START, number), theirs)
        except OSError:
            for descriptor in ours:
                os.close(descriptor)
            if claim is not None:
                claim.entry.close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        if claim is not None:
            claim.joined(self.pid)
        self._end.cancel()
        stdin, stdout, stderr = ours
        service = Service(self.pid, (stdin, stdout, stderr), listener, claim, watch=partial(self._watch, number))
        service.write(request)
        return service

    def close(self) -> None:
        """Take no more bridges, and end."""
        if not self._is_closed:
            self._is_closed = True
            self._on_end(self)
            self._service.end_input()
            self._end.cancel()
            self._end = self._loop.call_later(END_S, self._service.kill)

    # --- process.service.ServiceListener ------------------------------------------------------------------------------

    def output(self, data: bytes) -> None:
        """Handle reports."""
        for line in self._reports.feed(data):
            try:
                number, code = read_report(line.head if isinstance(line, TooLong) else line)
            except ValueError:
                log.warning("the process of the MCP bridges wrote %r instead of a report", line)
            else:
                self._ended(number, code)

    def errors(self, data: bytes) -> None:
        """Log what it says besides the logs of its bridges."""
        log.warning("the process of the MCP bridges: %s", data.decode(errors="replace").rstrip()[:2000])

    def closed(self, pipe: str) -> None:
        """It does so when it ends."""

    def stalled(self, reason: str) -> None:
        """Nothing is queued for it: `Service.pass_on` sends at once."""

    def exited(self, code: int | None) -> None:
        """Report the exit of all its bridges."""
        self._end.cancel()
        if not self._is_closed:
            self._is_closed = True
            self._on_end(self)
        for number in list(self._bridges):
            self._ended(number, UNKNOWN_EXIT if code is None else code)
        self._end.cancel()
        self.gone.set()

    # --- inside -----------------------------------------------------------------------------------------------

    def _watch(self, number: int, on_exit: Callable[[], None]) -> BridgeWatch:
        watch = self._bridges[number] = BridgeWatch(partial(self._order, number), on_exit)
        return watch

    def _order(self, number: int, order: BridgeOrder) -> None:
        if order is BridgeOrder.KILL and number not in self._kills:
            self._kills[number] = self._loop.call_later(KILL_S, self._kill, number)
        try:
            self._service.pass_on(MESSAGE.pack(order, number), ())
        except OSError as error:
            # After END comes KILL, and after that, all its bridges end with the process.
            log.warning("the process of the MCP bridges does not read: %s", error)

    def _kill(self, number: int) -> None:
        log.warning("the process of the MCP bridges did not end bridge %d within %g s and is killed", number, KILL_S)
        self._service.kill()

    def _ended(self, number: int, code: int) -> None:
        watch = self._bridges.pop(number, None)
        if (kill := self._kills.pop(number, None)) is not None:
            kill.cancel()
        if not self._bridges and not self._is_closed:
            self._end.cancel()
            self._end = self._loop.call_later(self._linger_s, self.close)
        if watch is not None:
            watch.ended(code)
