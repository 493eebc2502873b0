"""Decides when the daemon ends: at once, as soon as nothing is interrupted by it, after a drain, or when it is idle.

    stop ─────────────────────────────────────────────────────────> over
    stop(when idle) ──> nothing would be interrupted (`sessions.shutdown`) ──> over
    drain ──> every run has stopped where it can be resumed, or `limits.drain_s` have passed ──> over
    autostarted ──> unused for `limits.idle_exit_s` ──> over

Pending approvals do not count as interrupted: they are requested again after the next start.
"""

import asyncio
import logging
from collections.abc import Callable

from zotd.api.context import DaemonContext
from zotd.config.sections import LimitsSection
from zotd.process.supervisor import Supervisor
from zotd.sessions.shutdown import drain, is_awaited, is_busy

STOP_S = 15.0
"""Longest duration of a stop, reported to the service manager: 5 s for runs, 3.3 s for extensions, then the disk."""

log = logging.getLogger(__name__)


class Leaving:
    """Decides when the daemon ends. Used on the event loop."""

    def __init__(self, *, autostarted: bool, supervisor: Supervisor, limits: Callable[[], LimitsSection]) -> None:
        """`limits` returns the current ones."""
        self.over = asyncio.Event()
        """Set when the daemon has to end now."""
        self._autostarted = autostarted
        self._supervisor = supervisor
        self._limits = limits
        self._context: DaemonContext | None = None
        self._when_idle = False
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, context: DaemonContext) -> None:
        """Start to observe this daemon."""
        self._context = context
        context.manager.listen(lambda _: self.look())
        if context.timers is not None:
            context.timers.listen(self.look)
        self.look()

    def stop(self, when_idle: bool = False) -> None:
        """End the daemon, at once or as soon as no run is interrupted by it."""
        if when_idle and self._context is not None:
            self._when_idle = True
            if self._context.batches is not None:
                self._context.batches.take_no_more()
            # Nested calls of extensions belong to no run, so the end of the last one is reported separately.
            self._context.manager.nested.watch_end(self.look)
            self.look()
        else:
            self.over.set()

    def drain(self) -> None:
        """Accept no new work, and end the daemon when every run has stopped where it can be resumed."""
        limit_s = self._limits().drain_s
        if self._context is None or not limit_s:
            self.over.set()
            return
        log.info("zotd accepts no new work and stops when every run can be resumed, or in %g s", limit_s)
        self._context.begin_stop()
        self._supervisor.stopping(limit_s + STOP_S)
        # A run that does not reach such a point in time is interrupted.
        asyncio.get_running_loop().call_later(limit_s, self.over.set)
        drain(self._context.manager)
        self.stop(when_idle=True)

    def look(self) -> None:
        """Check whether the daemon is still needed; called when a session or a connection starts, ends or changes."""
        assert self._context is not None
        manager = self._context.manager
        running = sum(session.state == "running" for session in manager.loaded)
        self._supervisor.status(
            f"{len(manager.loaded)} sessions, {running} running, {self._context.connections} clients"
        )
        if self._when_idle and not is_busy(manager):
            self.over.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        idle_s = self._limits().idle_exit_s
        needed = (
            self._context.connections
            or manager.extension_pool.serves_channels
            or (self._context.batches is not None and self._context.batches.is_active)
            or (self._context.timers is not None and self._context.timers.is_active)
            or any(map(is_awaited, manager.loaded))
        )
        if self._autostarted and idle_s and not needed:
            self._timer = asyncio.get_running_loop().call_later(idle_s, self._leave)

    def _leave(self) -> None:
        """End the daemon after its idle time, unless calls of an extension are running, which do not stop the timer."""
        assert self._context is not None
        if is_busy(self._context.manager):
            self.look()
        else:
            self.over.set()
