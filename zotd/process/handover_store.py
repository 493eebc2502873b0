"""Adopts the processes that the previous daemon left running, and leaves ours to the next one.

found ──> waits for its extension to start ──> adopted ─────────────────┐
              └── not claimed in time, or changed ──> ended by `OrphanReaper.end`
started ──────────────────────────────────────────────────────────> FdHandover ──> the next daemon
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from zotd.process import descent
from zotd.process.census import is_alive
from zotd.process.fd_handover import FdHandover, Label, Survivor, survivors
from zotd.process.fdstore import UNIT, DescriptorStore, inherited, is_restarting, store_of
from zotd.process.orphan_reaper import OrphanReaper

log = logging.getLogger(__name__)


class HandoverStore:
    """The processes of one home that outlive its daemon. Used on one event loop."""

    def __init__(
        self,
        store: DescriptorStore,
        reaper: OrphanReaper,
        found: Mapping[str, list[int]],
        *,
        unit: str,
        within_s: float,
    ) -> None:
        """Take over the processes in `found`; call it before `OrphanReaper.sweep`, which would end them.

        Processes that are not adopted within `within_s` seconds are ended. `unit` is the daemon's systemd unit.
        """
        self._store = store
        self._reaper = reaper
        self._unit = unit
        self._is_left = False
        # Newest first: after an interrupted reload there are two of an extension, and the newer one is in use.
        self._waiting = sorted(survivors(found, store), key=lambda one: one.head.started, reverse=True)
        # For survivors of a workspace that no session opens again.
        self._deadline = asyncio.get_running_loop().call_later(within_s, self._end_all)
        descent.in_unit(unit)
        for survivor in self._waiting:
            head = survivor.head
            reaper.ledger.take_over(head.mark, head.identity, head.label.name)
            descent.adopted(head.identity, ())  # it may connect as a client before an extension adopts it
        if self._waiting:
            log.info("%d processes of an earlier daemon are still running", len(self._waiting))

    def handover(self, label: Label, *, condensed: Callable[[], Sequence[bytes]] = list) -> FdHandover:
        """Return the handover for a process about to start; its `survivor` is set if one can be adopted instead.

        `condensed` returns the recorded lines that are still valid, for a rewrite of the file that has grown too long.
        Ends other survivors with the same place and name, since their configuration or program has changed.
        """
        survivor: Survivor | None = None
        for one in [one for one in self._waiting if _is_same(one.head.label, label)]:
            # It may have ended in the meantime.
            if survivor is None and one.head.label == label and is_alive(one.head.identity):
                self._waiting.remove(one)
                survivor = one
            else:
                self._end(one)
        return FdHandover(self._store, label, survivor, condensed=condensed)

    def settle(self, place: str) -> None:
        """End the remaining survivors of `place`: all its extensions have started."""
        for one in [one for one in self._waiting if one.head.label.place == place]:
            self._end(one)

    async def decide(self) -> None:
        """Ask systemd whether this stop is a restart, for up to 1 s; if unknown, processes are ended."""
        self._is_left = await is_restarting(self._unit)
        if self._is_left:
            log.info("extensions are handed over to the next daemon")

    def leaves(self, handover: FdHandover | None) -> bool:
        """Return whether this process is left running for the next daemon."""
        return self._is_left and handover is not None and handover.is_ready

    def close(self) -> None:
        """End the survivors that were not adopted; in a restart, leave them to the next daemon."""
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
        log.info("ending %s (pid %d) of an earlier daemon, because no extension adopts it", head.label.name, head.pid)
        FdHandover(self._store, head.label, survivor).end()
        survivor.close()
        self._reaper.end(head.mark, head.identity)


def _is_same(found: Label, wanted: Label) -> bool:
    return (found.place, found.name) == (wanted.place, wanted.name)


def handover_store_of(env: Mapping[str, str], reaper: OrphanReaper, *, within_s: float) -> HandoverStore | None:
    """Return the handover store of a daemon with this environment, or None if its service manager has no store."""
    store = store_of(env)
    return None if store is None else HandoverStore(store, reaper, inherited(env), unit=env[UNIT], within_s=within_s)
