"""Starts the processes of one extension: forked from the daemon's template process, or executed.

A bridge to an MCP server is started in the process of all bridges of its workspace (`exthost.bridge_host`).

launch ──> asks to be confined? ──> its jail is found ──┐
                 └── no ────────────────────────────────┴─> can be forked? ──> the fork is under way ──> then(start)
                                                                  └── no, or it was refused ───────────> then(start)
                     `give_up` until here
"""

from collections.abc import Callable, Sequence

from zotd.exthost import data
from zotd.exthost.bridge_host import BridgeHost, PendingBridge
from zotd.exthost.jails import ConfinedProgram, ConfinementError
from zotd.exthost.log import ExtensionLog
from zotd.exthost.manifest import Manifest
from zotd.exthost.process import Begin, ExtensionProcess, ProcessListener
from zotd.exthost.surroundings import Surroundings
from zotd.process import Service, ServiceClaim, start_service
from zotd.process.fd_handover import FdHandover
from zotd.process.service import ForkedProcess, ServiceListener
from zotd.template.pending_fork import PendingFork

NOT_HERE = "asks to be confined, and nothing here can do that"

StartProcess = Callable[[ProcessListener], ExtensionProcess]
"""Starts the process, or lets the forked one run. OSError and ValueError mean that nothing was started."""


class _PendingJail:
    """A program whose jail is being found."""

    def __init__(self, then: Callable[[list[str] | ConfinementError], None]) -> None:
        self._then = then
        self._is_cancelled = False

    def cancel(self) -> None:
        """Give it up; `then` is not called."""
        self._is_cancelled = True

    def found(self, words: list[str] | ConfinementError) -> None:
        """Continue with the words in front of its command, or with the reason why it must not start."""
        if not self._is_cancelled:
            self._then(words)


class Launches:
    """Processes of one extension that are about to start. Belongs to one event loop."""

    def __init__(self, surroundings: Surroundings, log: ExtensionLog, bridges: BridgeHost) -> None:
        self._surroundings = surroundings
        self._bridges = bridges
        self._log = log
        self._pending: dict[int, tuple[PendingFork | PendingBridge | _PendingJail, ServiceClaim | None]] = {}

    def launch(
        self, number: int, manifest: Manifest, handover: FdHandover | None, then: Callable[[StartProcess], None]
    ) -> None:
        """Call `then` with a function that starts the process, which it must call: now, or unless `give_up` comes before."""
        where = self._surroundings
        claim = where.reaper.claim(f"extension {manifest.name}", where.sessions, handover) if where.reaper else None

        def begin(how: Begin) -> None:
            self._pending.pop(number, None)
            then(lambda listener: ExtensionProcess(how, listener=listener, log=self._log))

        def go(words: list[str] | ConfinementError) -> None:
            if isinstance(words, ConfinementError):
                begin(_failing(words, claim))
                return
            launch = self._launch_bridge if manifest.host_argv else self._launch_own
            pending = launch(manifest, words, claim, begin)
            if pending is not None:
                self._pending[number] = pending, claim

        if manifest.sandbox is None or (handover is not None and handover.survivor is not None):
            go([])
        elif where.jails is None:
            go(ConfinementError(NOT_HERE))
        else:
            jail = _PendingJail(go)
            self._pending[number] = jail, claim
            where.jails.confine(confined_program(manifest, where, self._log.say), jail.found)

    def _launch_bridge(
        self, manifest: Manifest, words: Sequence[str], claim: ServiceClaim | None, then: Callable[[Begin], None]
    ) -> PendingBridge | None:
        return self._bridges.launch(manifest, claim, then, env=self._env(manifest), words=words)

    def _launch_own(
        self, manifest: Manifest, words: Sequence[str], claim: ServiceClaim | None, then: Callable[[Begin], None]
    ) -> PendingFork | None:
        cwd, env, forks = str(manifest.directory), self._env(manifest), self._surroundings.forks
        argv = (*words, *manifest.argv)
        handover = claim.handover if claim else None

        def begin(forked: ForkedProcess | None) -> None:
            then(lambda listener: start_service(argv, cwd=cwd, env=env, listener=listener, claim=claim, forked=forked))

        pending = None
        # A confined program is executed: a fork of the template has opened files that are hidden from it.
        if forks is not None and not words and (handover is None or handover.survivor is None):
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

    def _env(self, manifest: Manifest) -> dict[str, str]:
        return {**self._surroundings.env, **self._surroundings.named(manifest)}


def confined_program(manifest: Manifest, where: Surroundings, say: Callable[[str], None]) -> ConfinedProgram:
    """Return the program of a manifest that asks to be confined. Makes its data directory; `say` gets the error if that fails."""
    assert manifest.sandbox is not None, "it does not ask"
    return ConfinedProgram(
        name=manifest.name,
        sandbox=manifest.sandbox,
        workspace=where.cwd,
        directory=str(manifest.directory),
        data=data.made(manifest, where, say),
        env=where.env,
    )


async def confined_argv(manifest: Manifest, where: Surroundings, say: Callable[[str], None]) -> Sequence[str]:
    """Return the command of a manifest, confined if it asks for that. Raises ConfinementError."""
    if manifest.sandbox is None:
        return manifest.argv
    if where.jails is None:
        raise ConfinementError(NOT_HERE)
    return [*await where.jails.words(confined_program(manifest, where, say)), *manifest.argv]


def _failing(error: ConfinementError, claim: ServiceClaim | None) -> Begin:
    def begin(_: ServiceListener) -> Service:
        if claim is not None:
            claim.entry.close()
        raise error

    return begin
