"""What a dead daemon has left of running processes, who goes on with it, and what this one will leave.

found ──> kept for who would start it ──> adopted ──────────────────────┐
              └── nobody comes in time, or it is not the same any more ──> ended, as `OrphanReaper.sweep` does
started ──────────────────────────────────────────────────────────> FdHandover ──> the next daemon
"""

import asyncio
import logging
from collections.abc import Mapping

from zotd.process import descent
from zotd.process.census import is_alive
from zotd.process.fd_handover import FdHandover, Label, Survivor, survivors
from zotd.process.fdstore import UNIT, Store, inherited, is_restarting, store_of
from zotd.process.orphan_reaper import OrphanReaper

log = logging.getLogger(__name__)


class HandoverStore:
    """The processes of one home that outlive its daemon. Used on one event loop."""

    def __init__(
        self, store: Store, reaper: OrphanReaper, found: Mapping[str, list[int]], *, unit: str, within_s: float
    ) -> None:
        """Take what was `found`, before the orphans are swept; what nobody goes on with `within_s` is ended.

        `unit`: what the service manager calls the daemon.
        """
        self._store = store
        self._reaper = reaper
        self._unit = unit
        self._is_left = False
        # Two of a kind: a reload was cut, and the newer one had taken over.
        self._waiting = sorted(survivors(found, store), key=lambda one: one.head.started, reverse=True)
        self._deadline = asyncio.get_running_loop().call_later(within_s, self._end_all)
        descent.in_unit(unit)
        for survivor in self._waiting:
            head = survivor.head
            reaper.ledger.take_over(head.mark, head.identity, head.label.name)
            descent.adopted(head.identity, ())  # it may connect before it is somebody's
        if self._waiting:
            log.info("%d processes of an earlier daemon are still running", len(self._waiting))

    def handover(self, label: Label) -> FdHandover:
        """For a process that is to start: with a survivor, when there is one to go on with instead."""
        survivor: Survivor | None = None
        for one in [one for one in self._waiting if _is_same(one.head.label, label)]:
            if survivor is None and one.head.label == label and is_alive(one.head.identity):
                self._waiting.remove(one)
                survivor = one
            else:
                self._end(one)
        return FdHandover(self._store, label, survivor)

    def settle(self, place: str) -> None:
        """Everything of this place that is to start has come; what is left of it is ended."""
        for one in [one for one in self._waiting if one.head.label.place == place]:
            self._end(one)

    async def decide(self) -> None:
        """We stop: find out whether for good, which takes up to 1 s. When in doubt it is."""
        self._is_left = await is_restarting(self._unit)
        if self._is_left:
            log.info("extensions are handed over to the next daemon")

    def leaves(self, handover: FdHandover | None) -> bool:
        """Whether a process goes on without us."""
        return self._is_left and handover is not None and handover.is_ready

    def close(self) -> None:
        """End what nobody has gone on with, or leave it where it is."""
        self._deadline.cancel()
        if self._is_left:
            for survivor in self._waiting:
                FdHandover(self._store, survivor.head.label, survivor).leave()
                survivor.close()
            self._waiting.clear()
        else:
            self._end_all()

    # --- inside -----------------------------------------------------------------------------------------------

    def _end_all(self) -> None:
        for one in list(self._waiting):
            self._end(one)

    def _end(self, survivor: Survivor) -> None:
        self._waiting.remove(survivor)
        head = survivor.head
        log.info("ending %s (pid %d) of an earlier daemon: nothing takes it over", head.label.name, head.pid)
        FdHandover(self._store, head.label, survivor).end()
        survivor.close()
        self._reaper.end(head.mark, head.identity)


def _is_same(found: Label, wanted: Label) -> bool:
    return (found.place, found.name) == (wanted.place, wanted.name)


def handover_store_of(env: Mapping[str, str], reaper: OrphanReaper, *, within_s: float) -> HandoverStore | None:
    """That of a daemon with this environment, as in `HandoverStore`; None: its service manager keeps nothing."""
    store = store_of(env)
    return None if store is None else HandoverStore(store, reaper, inherited(env), unit=env[UNIT], within_s=within_s)
