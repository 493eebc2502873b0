"""Ends processes that outlive their owner: helpers that an extension left, and children of a host that was killed.

    claim() ──> started() ──> ended() ──> census ──> SIGTERM, TERM_S ──> SIGKILL until none is left ──> entry closed
                                 host killed ──> sweep() of the next host of this home, the same ladder

A process is found by its group, or by the `MARK` in its environment if it has left the group (`setsid`, a double fork).
Commands of tools get no mark, because what they leave in the background belongs to the user.

Not found: a process without a readable mark that has left its group, or whose host and group leader have both ended.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from pathlib import Path

from zotd.process import descent
from zotd.process.census import MARK, Identity, ProcessInfo, census
from zotd.process.fd_handover import FdHandover
from zotd.process.ladder import signal_all
from zotd.process.ledger import Abandoned, ChildEntry, ChildLedger
from zotd.process.parent_death import ending_with_parent

log = logging.getLogger(__name__)

Spawn = Callable[[str, Coroutine[object, object, None]], None]
"""Starts a named task; the callee owns it and logs its failure."""

TERM_S = 1.0
"""Time from SIGTERM to SIGKILL in seconds, as for the service itself."""

KILL_S = 0.3
"""Wait after SIGKILL in seconds; only a process that hangs in the kernel takes longer."""

ROUNDS = 5
"""Maximum number of SIGKILL rounds; processes can fork while others are killed."""

CLOSE_S = 5.0
"""Timeout of `OrphanReaper.close` in seconds; SIGTERM and all rounds take half of it."""


class OrphanReaper:
    """Ends orphans of the services of this host, and of earlier hosts of `home`. Used on one event loop."""

    def __init__(self, home: Path, spawn: Spawn) -> None:
        """Reads and writes nothing yet; `spawn` starts the tasks that end processes."""
        self.home = home
        self.ledger = ChildLedger(home / "run" / "children")
        """The ledger to pass to `zotd.process.spawn`."""
        self.swept = asyncio.Event()
        """Set when `sweep` is done, even if some process could not be ended."""
        self._spawn = spawn
        self._under_way = 0
        self._rest = asyncio.Event()
        self._rest.set()
        self._is_closed = False
        self._census: tuple[int, list[ProcessInfo]] = (0, [])
        self._begun = 0
        # Held while a census is taken, so that 20 extensions that end at the same time need two of them, not 20.
        self._census_lock = asyncio.Lock()

    def sweep(self, *, spares_kept: bool = False) -> None:
        """Start to end the children that earlier hosts of this home left; takes up to 3 s, then sets `swept`.

        Does not touch children of running hosts or of other homes. With `spares_kept` it also leaves those that a
        daemon left for its successor; set it if this process is not that successor.
        """
        self._begin("sweep", self._sweep(spares_kept=spares_kept))

    def claim(self, what: str, owners: Collection[str] = (), handover: FdHandover | None = None) -> "ServiceClaim":
        """Claim a service that is about to start, with all its descendants.

        Args:
            what: a description of the service for log messages.
            owners: the sessions for which it runs (`process.descent`).
            handover: set if the service may outlive this daemon, or is itself a survivor of an earlier one.
        """
        survivor = handover.survivor if handover else None
        # A survivor keeps its entry: the environments of its descendants contain the mark of that entry.
        entry = self.ledger.taken_over(survivor.head.mark) if survivor else self.ledger.open()
        return ServiceClaim(entry, what, owners, ended=self._ended, handover=handover)

    def end(self, mark: str, leader: Identity) -> None:
        """Start to end a child recorded by `ChildLedger.take_over`, with its group and all processes with its mark."""
        child = Abandoned(self.ledger.path(mark), leader)
        self._begin(f"end of {leader.pid}", self._end_abandoned([child], "an earlier daemon"))

    async def close(self) -> None:
        """Wait for running work, at most `CLOSE_S`. Services that exit later leave their orphans to the next host."""
        self._is_closed = True
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._rest.wait()
        except TimeoutError:
            log.warning("processes that should have ended are left to the next start")
        self.ledger.close()

    # --- inside -----------------------------------------------------------------------------------------------

    def _ended(self, claim: "ServiceClaim") -> None:
        # After `close` no census is taken any more. The entry stays in the ledger, for the next host.
        if not self._is_closed:
            self._begin(f"strays of {claim.what}", self._hunt(claim))

    def _begin(self, name: str, work: Coroutine[object, object, None]) -> None:
        self._under_way += 1
        self._rest.clear()
        self._spawn(name, self._counted(work))

    async def _counted(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._rest.set()

    async def _hunt(self, claim: "ServiceClaim") -> None:
        """End the processes of a service that have left its group."""

        def left(processes: Sequence[ProcessInfo]) -> list[Identity]:
            return [process.identity for process in processes if process.mark == claim.entry.mark]

        # The entry stays if a process survives: the next host tries again.
        if await self._end(left, claim.what, is_asked=not claim.is_killed):
            claim.entry.close()

    async def _sweep(self, *, spares_kept: bool) -> None:
        try:
            abandoned = await asyncio.to_thread(self.ledger.abandoned, spares_kept=spares_kept)
            if abandoned:
                await self._end_abandoned(abandoned, "a host that was killed")
        finally:
            self.swept.set()

    async def _end_abandoned(self, abandoned: Sequence[Abandoned], whose: str) -> None:
        if await self._end(Leftovers(abandoned).among, whose, is_asked=True):
            for child in abandoned:
                self.ledger.forget(child)
                if child.leader is not None:
                    # The pid may be reused from now on.
                    descent.forget(child.leader.pid)

    async def _end(
        self, left: Callable[[Sequence[ProcessInfo]], list[Identity]], whose: str, *, is_asked: bool
    ) -> bool:
        """End the processes that `left` selects until it selects none; return whether that was achieved."""
        if is_asked:
            await signal_all(left(await self._processes()), signal.SIGTERM, TERM_S)
        for _ in range(ROUNDS):
            # A new census each round: a process may have forked between the census and its death.
            found = left(await self._processes())
            if not found:
                return True
            log.info("%d processes of %s are killed", len(found), whose)
            await signal_all(found, signal.SIGKILL, KILL_S)
        log.warning("processes of %s cannot be ended", whose)
        return False

    async def _processes(self) -> list[ProcessInfo]:
        """Return a census taken after this call began; concurrent callers share one."""
        asked = self._begun
        async with self._census_lock:
            # A census that began before this call may miss processes that the caller knows about.
            if self._census[0] <= asked:
                self._begun += 1
                self._census = self._begun, await asyncio.to_thread(census)
            return self._census[1]


class ServiceClaim:
    """A claim on one service and its descendants; made by `OrphanReaper.claim`."""

    def __init__(
        self,
        entry: ChildEntry,
        what: str,
        owners: Collection[str],
        *,
        ended: Callable[["ServiceClaim"], None],
        handover: FdHandover | None = None,
    ) -> None:
        self.entry = entry
        self.handover = handover
        self.what = what
        self._owners = owners
        self._pid = 0
        self.is_killed = False
        """Whether the service was sent SIGKILL; if so, its orphans get SIGKILL without SIGTERM before."""
        self._ended = ended

    def command(self, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        """Return the command to run: with a parent-death signal, unless the service may outlive this daemon."""
        # The signal would also end a service that is meant to outlive this daemon.
        return ending_with_parent(argv, env) if self.handover is None else list(argv)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return `env` with the mark by which its descendants can be found."""
        return {**env, MARK: self.entry.mark}

    def started(self, pid: int, pipes: tuple[int, int, int]) -> None:
        """Record the started service, which leads its own group; `pipes` are our ends of stdin, stdout and stderr."""
        self._pid = pid
        descent.belongs(pid, self._owners)
        self.entry.started(pid, self.what, is_kept=self.handover is not None)
        if self.handover is not None:
            self.handover.begin(self.entry.mark, pid, pipes)

    def joined(self, pid: int) -> None:
        """Record a service that runs within the process `pid`, which has a claim of its own, and so its owners."""
        self.entry.started(pid, self.what)

    def adopted(self, process: Identity) -> None:
        """Register the owners of a service that an earlier daemon started."""
        self._pid = process.pid
        descent.adopted(process, self._owners)

    def left(self) -> None:
        """Release the service without ending it, for the next daemon."""
        descent.forget(self._pid)
        if self.handover is not None:
            self.handover.leave()

    def ended(self, *, is_killed: bool) -> None:
        """Start to end the orphans of a service that has exited and whose group was killed; does not wait."""
        descent.forget(self._pid)
        if self.handover is not None:
            # Out of the store, or the next daemon would look for a process that has ended.
            self.handover.end()
        self.is_killed = is_killed
        self._ended(self)


class Leftovers:
    """Finds the remaining processes of abandoned children."""

    def __init__(self, abandoned: Sequence[Abandoned]) -> None:
        self._leaders = [child.leader for child in abandoned if child.leader is not None]
        self._marks = {child.mark for child in abandoned}
        self._groups: set[int] = set()

    def among(self, processes: Sequence[ProcessInfo]) -> list[Identity]:
        """Select the remaining ones from a complete census.

        A group counts only if its leader was seen alive in this or an earlier census; otherwise its number may be
        reused. So nothing is found of a tool's command that has exited: it has no mark, and what it left in the
        background belongs to the user.
        """
        living = {process.identity for process in processes}
        self._groups |= {leader.pid for leader in self._leaders if leader in living}
        return [one.identity for one in processes if one.mark in self._marks or one.group in self._groups]
