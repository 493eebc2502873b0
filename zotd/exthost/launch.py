"""Starts the processes of one extension: forked from the daemon's template process, or executed.

A bridge to an MCP server is started in the process of all bridges of its workspace (`exthost.bridge_host`).

launch ──> can be forked? ──> the fork is under way ──> then(start)      `give_up` until here
                 └── no, or it was refused ───────────> then(start)
"""

from collections.abc import Callable

from zotd.exthost.bridge_host import BridgeHost, PendingBridge
from zotd.exthost.log import ExtensionLog
from zotd.exthost.manifest import Manifest
from zotd.exthost.process import Begin, ExtensionProcess, ProcessListener
from zotd.exthost.surroundings import Surroundings
from zotd.process import ServiceClaim, start_service
from zotd.process.fd_handover import FdHandover
from zotd.process.service import ForkedProcess
from zotd.template.pending_fork import PendingFork

StartProcess = Callable[[ProcessListener], ExtensionProcess]
"""Starts the process, or lets the forked one run. OSError and ValueError mean that nothing was started."""


class Launches:
    """Processes of one extension that are about to start. Belongs to one event loop."""

    def __init__(self, surroundings: Surroundings, log: ExtensionLog, bridges: BridgeHost) -> None:
        self._surroundings = surroundings
        self._bridges = bridges
        self._log = log
        self._pending: dict[int, tuple[PendingFork | PendingBridge, ServiceClaim | None]] = {}

    def launch(
        self, number: int, manifest: Manifest, handover: FdHandover | None, then: Callable[[StartProcess], None]
    ) -> None:
        """Call `then` with a function that starts the process, which it must call: now, or unless `give_up` comes before."""
        where = self._surroundings
        env = {**where.env, **where.named(manifest)}
        claim = where.reaper.claim(f"extension {manifest.name}", where.sessions, handover) if where.reaper else None

        def begin(how: Begin) -> None:
            self._pending.pop(number, None)
            then(lambda listener: ExtensionProcess(how, listener=listener, log=self._log))

        pending: PendingFork | PendingBridge | None
        if manifest.host_argv:
            pending = self._bridges.launch(manifest, env, claim, begin)
        else:
            pending = self._launch_own(manifest, env, claim, begin)
        if pending is not None:
            self._pending[number] = pending, claim

    def _launch_own(
        self, manifest: Manifest, env: dict[str, str], claim: ServiceClaim | None, then: Callable[[Begin], None]
    ) -> PendingFork | None:
        cwd, forks = str(manifest.directory), self._surroundings.forks
        handover = claim.handover if claim else None

        def begin(forked: ForkedProcess | None) -> None:
            then(
                lambda listener: start_service(
                    manifest.argv, cwd=cwd, env=env, listener=listener, claim=claim, forked=forked
                )
            )

        pending = None
        if forks is not None and (handover is None or handover.survivor is None):
            pending = forks.fork(
                manifest.argv,
                cwd=cwd,
                env=claim.environment(env) if claim else env,
                is_bound=handover is None,
                then=begin,
            )
        if pending is None:
            begin(None)
        return pending

    def give_up(self, number: int) -> bool:
        """Forget a process that is no longer needed; return False if no start was under way."""
        pending, claim = self._pending.pop(number, (None, None))
        if pending is None:
            return False
        pending.cancel()
        if claim is not None:
            claim.entry.close()
        return True
