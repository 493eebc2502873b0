"""Has one process run all bridges of a workspace, and starts it when there is one to run.

launch ──> is there a process? ──> then(begin)
              └── no: it is forked or executed, and all that wait for it begin then
"""

from collections.abc import Callable, Sequence
from functools import partial

from zotd.exthost.bridge_process import BridgeProcess
from zotd.exthost.manifest import Manifest
from zotd.exthost.process import Begin
from zotd.exthost.surroundings import Surroundings
from zotd.process import Service, ServiceClaim
from zotd.process.service import ForkedProcess, ServiceListener
from zotd.template.pending_fork import PendingFork
from zotd.wire.bridges import BridgeRequest


class PendingBridge:
    """A bridge that waits for its process; made by `BridgeHost.launch`."""

    def __init__(self, request: bytes, claim: ServiceClaim | None, then: Callable[[Begin], None]) -> None:
        self._request = request
        self._claim = claim
        self._then = then
        self.is_cancelled = False

    def cancel(self) -> None:
        """Give it up; `then` is not called."""
        self.is_cancelled = True

    def proceed(self, process: BridgeProcess) -> None:
        """Have it begin in this process."""
        self._then(partial(process.start, self._request, self._claim))

    def fail(self, error: OSError | ValueError) -> None:
        """Have its start fail."""

        def begin(_: ServiceListener) -> Service:
            if self._claim is not None:
                self._claim.entry.close()
            raise error

        self._then(begin)


class BridgeHost:
    """The bridges of one workspace. Belongs to one event loop."""

    def __init__(self, surroundings: Surroundings) -> None:
        """Start nothing yet."""
        self._surroundings = surroundings
        self._process: BridgeProcess | None = None
        """The one that takes bridges."""
        self._ending: set[BridgeProcess] = set()
        self._fork: PendingFork | None = None
        self._claim: ServiceClaim | None = None
        """Of the process that is being forked."""
        self._waiting: list[PendingBridge] = []

    def launch(
        self,
        manifest: Manifest,
        claim: ServiceClaim | None,
        then: Callable[[Begin], None],
        *,
        env: dict[str, str],
        words: Sequence[str] = (),
    ) -> PendingBridge | None:
        """Call `then` with a function that starts the bridge: now, and return None, or unless it is cancelled before.

        `env` is the environment of the bridge, of which its server gets what `docs/mcp.md` says. `words` stand in front of
        the command of its server, which they confine.
        """
        arguments = (*manifest.argv[len(manifest.host_argv) :], *words)
        request = BridgeRequest(arguments, claim.environment(env) if claim else env, str(manifest.directory))
        pending = PendingBridge(request.packed(), claim, then)
        if self._process is not None:
            pending.proceed(self._process)
            return None
        self._waiting.append(pending)
        if self._fork is None and not self._begin(manifest.host_argv):
            return None
        return pending

    def close(self) -> None:
        """Begin to end the process."""
        if self._fork is not None:
            self._fork.cancel()
            self._fork = None
            if self._claim is not None:
                self._claim.entry.close()
        if self._process is not None:
            self._process.close()

    async def wait_ended(self) -> None:
        """Wait for the end of its processes, which takes up to 2 s after `close`."""
        for process in list(self._ending):
            await process.gone.wait()

    # --- inside -----------------------------------------------------------------------------------------------

    def _begin(self, argv: tuple[str, ...]) -> bool:
        """Begin to start the process; return False if it has started, or failed to, at once."""
        where = self._surroundings
        claim = self._claim = where.reaper.claim("bridges to MCP servers", where.sessions) if where.reaper else None
        started = partial(self._start, argv, claim)
        if where.forks is not None:
            env = claim.environment(where.env) if claim else where.env
            self._fork = where.forks.fork(
                argv, cwd=where.cwd, env=env, is_bound=True, takes_descriptors=True, then=started
            )
        if self._fork is None:
            started(None)
        return self._fork is not None

    def _start(self, argv: tuple[str, ...], claim: ServiceClaim | None, forked: ForkedProcess | None) -> None:
        where = self._surroundings
        self._fork = None
        waiting = [one for one in self._waiting if not one.is_cancelled]
        self._waiting.clear()
        try:
            process = BridgeProcess(
                argv, cwd=where.cwd, env=where.env, claim=claim, forked=forked, on_end=self._is_ending
            )
        except (OSError, ValueError) as error:
            for one in waiting:
                one.fail(error)
            return
        self._process = process
        for one in waiting:
            one.proceed(process)

    def _is_ending(self, process: BridgeProcess) -> None:
        self._ending = {process, *(one for one in self._ending if not one.gone.is_set())}
        if self._process is process:
            self._process = None
