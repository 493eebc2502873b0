"""Starts the processes of one extension: forked from the daemon's template process, or executed.

launch ──> can be forked? ──> the fork is under way ──> then(start)      `give_up` until here
                 └── no, or it was refused ───────────> then(start)
"""

from collections.abc import Callable

from zotd.exthost.log import ExtensionLog
from zotd.exthost.manifest import Manifest
from zotd.exthost.process import ExtensionProcess, ProcessListener
from zotd.exthost.surroundings import Surroundings
from zotd.process import ServiceClaim
from zotd.process.fd_handover import FdHandover
from zotd.process.service import ForkedProcess
from zotd.template.pending_fork import PendingFork

StartProcess = Callable[[ProcessListener], ExtensionProcess]
"""Starts the process, or lets the forked one run. OSError and ValueError mean that nothing was started."""


class Launches:
    """Processes of one extension that are about to start. Belongs to one event loop."""

    def __init__(self, surroundings: Surroundings, log: ExtensionLog) -> None:
        self._surroundings = surroundings
        self._log = log
        self._pending: dict[int, tuple[PendingFork, ServiceClaim | None]] = {}

    def launch(
        self, number: int, manifest: Manifest, handover: FdHandover | None, then: Callable[[StartProcess], None]
    ) -> None:
        """Call `then` with a function that starts the process, which it must call: now, or unless `give_up` comes before."""
        where = self._surroundings
        env = {**where.env, **where.named(manifest)}
        claim = where.reaper.claim(f"extension {manifest.name}", where.sessions, handover) if where.reaper else None

        def begin(forked: ForkedProcess | None) -> None:
            self._pending.pop(number, None)
            then(
                lambda listener: ExtensionProcess(
                    manifest.argv,
                    cwd=str(manifest.directory),
                    env=env,
                    listener=listener,
                    log=self._log,
                    claim=claim,
                    forked=forked,
                )
            )

        pending = None
        if where.forks is not None and (handover is None or handover.survivor is None):
            pending = where.forks.fork(
                manifest.argv,
                cwd=str(manifest.directory),
                env=claim.environment(env) if claim else env,
                is_bound=handover is None,
                then=begin,
            )
        if pending is None:
            begin(None)
        else:
            self._pending[number] = pending, claim

    def give_up(self, number: int) -> bool:
        """Forget a process that is no longer needed; return False if no start was under way."""
        pending, claim = self._pending.pop(number, (None, None))
        if pending is None:
            return False
        pending.cancel()
        if claim is not None:
            claim.entry.close()
        return True
