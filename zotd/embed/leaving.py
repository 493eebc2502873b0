"""When the daemon ends: at once, as soon as that cuts nothing, after a drain, or because nobody needs it.

    stop ─────────────────────────────────────────────────────────> over
    stop(when idle) ──> nothing is cut any more (`sessions.stopping`) ──> over
    drain ──> runs stop where they can be gone on with ──> the same, or `limits.drain_s` have passed ──> over
    autostarted ──> nobody has needed it for `limits.idle_exit_s` ──> over

What waits for people cuts nothing: it is asked again after the next start.
"""

import asyncio
import logging
from collections.abc import Callable

from zotd.api.context import DaemonContext
from zotd.config.sections import LimitsSection
from zotd.process.supervisor import Supervisor
from zotd.sessions.shutdown import drain, is_awaited, is_busy

STOP_S = 15.0
"""What a stop may take, told to a service manager: 5 s for runs, 3.3 s for extensions, and then the disk."""

log = logging.getLogger(__name__)


class Leaving:
    """Decides it; used on the event loop."""

    def __init__(self, *, autostarted: bool, supervisor: Supervisor, limits: Callable[[], LimitsSection]) -> None:
        """`limits`: those of the configuration, now."""
        self.over = asyncio.Event()
        """The daemon is to end now."""
        self._autostarted = autostarted
        self._supervisor = supervisor
        self._limits = limits
        self._context: DaemonContext | None = None
        self._when_idle = False
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, context: DaemonContext) -> None:
        """Look after this daemon from now on."""
        self._context = context
        context.manager.listen(lambda _: self.look())
        self.look()

    def stop(self, when_idle: bool = False) -> None:
        """Stop: at once, or as soon as that cuts nothing."""
        if when_idle and self._context is not None:
            self._when_idle = True
            self._context.manager.nested.watch_end(self.look)
            self.look()
        else:
            self.over.set()

    def drain(self) -> None:
        """Take nothing new, and stop as soon as runs have come to where they can be gone on with."""
        limit_s = self._limits().drain_s
        if self._context is None or not limit_s:
            self.over.set()
            return
        log.info("zotd accepts no new work and stops when every run can be resumed, or in %g s", limit_s)
        self._context.begin_stop()
        self._supervisor.stopping(limit_s + STOP_S)
        asyncio.get_running_loop().call_later(limit_s, self.over.set)
        drain(self._context.manager)
        self.stop(when_idle=True)

    def look(self) -> None:
        """Does anybody need the daemon? Asked whenever a session or a connection comes, goes or changes."""
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
            self._context.connections or manager.extension_pool.serves_channels or any(map(is_awaited, manager.loaded))
        )
        if self._autostarted and idle_s and not needed:
            self._timer = asyncio.get_running_loop().call_later(idle_s, self._leave)

    def _leave(self) -> None:
        """Nobody has needed the daemon for so long, unless an extension has calls made: of those nobody is told."""
        assert self._context is not None
        if is_busy(self._context.manager):
            self.look()
        else:
            self.over.set()
