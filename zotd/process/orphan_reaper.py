"""Ends what outlives its owner: helpers that an extension left behind, and children that a killed host left behind.

    claim() ──> started() ──> ended() ──> census ──> SIGTERM, TERM_S ──> SIGKILL until none is left ──> entry closed
                                 host killed ──> sweep() of the next host of this home, the same ladder

A group is killed by its number; what has left its service's group (`setsid`, a double fork) is found by the `MARK`
in its environment. Commands of tools carry none: what they leave in the background is the user's.

Not found: a process without a mark (it dropped it, or we may not read its environment) that has left the group, or
whose host and group leader are both dead.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from pathlib import Path

from zotd.process import descent
from zotd.process.census import MARK, Identity, Process, census
from zotd.process.fd_handover import FdHandover
from zotd.process.ladder import signal_all
from zotd.process.ledger import Abandoned, Entry, Ledger
from zotd.process.parent_death import ending_with_parent

log = logging.getLogger(__name__)

Spawn = Callable[[str, Coroutine[object, object, None]], None]
"""Starts a named task, which somebody owns and whose failure is logged."""

TERM_S = 1.0
"""From SIGTERM to SIGKILL, as for the service itself."""

KILL_S = 0.3
"""Wait after SIGKILL; longer takes only a process that hangs in the kernel."""

ROUNDS = 5
"""How often SIGKILL is repeated for processes that were forked while others were killed."""

CLOSE_S = 5.0
"""Longest wait for all that is under way: a ladder with every round takes half of it."""


class OrphanReaper:
    """What a host of `home` knows about processes that must not outlive somebody. Used on one event loop."""

    def __init__(self, home: Path, spawn: Spawn) -> None:
        """Nothing is touched before the first use."""
        self.ledger = Ledger(home / "run" / "children")
        """For `zotd.process.spawn`."""
        self.swept = asyncio.Event()
        """What dead hosts had left is gone, as far as it can be ended."""
        self._spawn = spawn
        self._under_way = 0
        self._rest = asyncio.Event()
        self._rest.set()
        self._is_closed = False
        self._census: tuple[int, list[Process]] = (0, [])
        self._begun = 0
        self._census_lock = asyncio.Lock()  # held while one is taken: 20 extensions that end together need two, not 20

    def sweep(self, *, spares_kept: bool = False) -> None:
        """Begin to end what dead hosts of this home have left; takes up to 3 s, `swept` tells the end.

        Children of hosts that live, and of other homes, are not touched. `spares_kept`: nor those that a daemon has
        left for the next one, which we are not.
        """
        self._begin("sweep", self._sweep(spares_kept=spares_kept))

    def claim(self, what: str, owners: Collection[str] = (), handover: FdHandover | None = None) -> "Claim":
        """A claim on a service that is about to start, and on all that it will start. `what` it is, for people.

        `owners`: for whom it runs (`process.descent`). `handover`: it is to outlive us, or is a survivor itself.
        """
        survivor = handover.survivor if handover else None
        entry = self.ledger.taken_over(survivor.head.mark) if survivor else self.ledger.open()
        return Claim(entry, what, owners, ended=self._ended, handover=handover)

    def end(self, mark: str, leader: Identity) -> None:
        """Begin to end a child that `Ledger.take_over` has noted, with its group and all that has its mark."""
        child = Abandoned(self.ledger.path(mark), leader)
        self._begin(f"end of {leader.pid}", self._end_abandoned([child], "an earlier daemon"))

    async def close(self) -> None:
        """Wait until all that has begun is done; takes up to `CLOSE_S`. Later ends are left to the next host."""
        self._is_closed = True
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._rest.wait()
        except TimeoutError:
            log.warning("processes that should have ended are left to the next start")
        self.ledger.close()

    # --- inside -----------------------------------------------------------------------------------------------

    def _ended(self, claim: "Claim") -> None:
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

    async def _hunt(self, claim: "Claim") -> None:
        """End what a service has left outside its group."""

        def left(processes: Sequence[Process]) -> list[Identity]:
            return [process.identity for process in processes if process.mark == claim.entry.mark]

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
                    descent.forget(child.leader.pid)

    async def _end(self, left: Callable[[Sequence[Process]], list[Identity]], whose: str, *, is_asked: bool) -> bool:
        """End what is `left` of all processes; whether that worked."""
        if is_asked:
            await signal_all(left(await self._processes()), signal.SIGTERM, TERM_S)
        for _ in range(ROUNDS):
            found = left(await self._processes())
            if not found:
                return True
            log.info("%d processes of %s are killed", len(found), whose)
            await signal_all(found, signal.SIGKILL, KILL_S)
        log.warning("processes of %s cannot be ended", whose)
        return False

    async def _processes(self) -> list[Process]:
        """Those of a moment after this call; callers that wait for each other's census share the next one."""
        asked = self._begun
        async with self._census_lock:
            if self._census[0] <= asked:
                self._begun += 1
                self._census = self._begun, await asyncio.to_thread(census)
            return self._census[1]


class Claim:
    """A claim on one service and its descendants; made by `OrphanReaper.claim`."""

    def __init__(
        self,
        entry: Entry,
        what: str,
        owners: Collection[str],
        *,
        ended: Callable[["Claim"], None],
        handover: FdHandover | None = None,
    ) -> None:
        self.entry = entry
        self.handover = handover
        self.what = what
        self._owners = owners
        self._pid = 0
        self.is_killed = False
        """It was sent SIGKILL, and so is what it leaves, at once."""
        self._ended = ended

    def command(self, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        """What to start, so that the kernel ends it with us where it can, unless it is to outlive us."""
        return ending_with_parent(argv, env) if self.handover is None else list(argv)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """What to start it in, so that its descendants can be found."""
        return {**env, MARK: self.entry.mark}

    def started(self, pid: int, pipes: tuple[int, int, int]) -> None:
        """It runs, and leads a group of its own; `pipes` are our ends of its stdin, stdout and stderr."""
        self._pid = pid
        descent.belongs(pid, self._owners)
        self.entry.started(pid, self.what, is_kept=self.handover is not None)
        if self.handover is not None:
            self.handover.begin(self.entry.mark, pid, pipes)

    def adopted(self, process: Identity) -> None:
        """It is a survivor, and runs since an earlier daemon."""
        self._pid = process.pid
        descent.adopted(process, self._owners)

    def left(self) -> None:
        """It goes on without us."""
        descent.forget(self._pid)
        if self.handover is not None:
            self.handover.leave()

    def ended(self, *, is_killed: bool) -> None:
        """It has ended, and its group was killed; what has left the group is ended now, in the background."""
        descent.forget(self._pid)
        if self.handover is not None:
            self.handover.end()
        self.is_killed = is_killed
        self._ended(self)


class Leftovers:
    """What is left of the children of dead hosts."""

    def __init__(self, abandoned: Sequence[Abandoned]) -> None:
        self._leaders = [child.leader for child in abandoned if child.leader is not None]
        self._marks = {child.mark for child in abandoned}
        self._groups: set[int] = set()

    def among(self, processes: Sequence[Process]) -> list[Identity]:
        """Those of these processes, which are all there are.

        The number of a group is trusted when its leader has been seen alive: without that it may be somebody else's
        by now. Of a command of a tool, which has no mark, nothing is found then: it has come to its end, and what it
        left in the background is the user's.
        """
        living = {process.identity for process in processes}
        self._groups |= {leader.pid for leader in self._leaders if leader in living}
        return [one.identity for one in processes if one.mark in self._marks or one.group in self._groups]
