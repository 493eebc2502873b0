"""What a daemon does for batches: takes prompts that wait, as many as it has places for, and runs each in a session.

a place is free ──> claim ──> run ──> result stored ──> a place is free
a daemon has ended, or has moved the session here ──> adopt its claim ──> go on
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress

from zotd.batches.prompt_runs import ABORTED, PromptRuns
from zotd.core.ports import StorageError
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.opening import SessionElsewhereError
from zotd.store.batches import LostClaimError, PromptClaim, StoredBatches
from zotd.store.ownership import OwnedElsewhereError
from zotd.wire.errors import CommandError

LOOK_S = 30.0
"""Longest time between two looks into a database that other daemons use: what they tell may be lost."""

RETRY_S = 5.0
"""Time until the next look when the journal could not be used, or a prompt was left for later."""

log = logging.getLogger(__name__)


class Batches:
    """The prompts that this daemon runs. `run` does the work."""

    def __init__(
        self,
        manager: Manager,
        store: StoredBatches,
        runs: PromptRuns,
        *,
        spawn: Spawn,
        labels: Callable[[], Collection[str]],
        places: Callable[[], int],
    ) -> None:
        """`labels`: those of this daemon. `places`: how many prompts it runs at once."""
        self.store = store
        """Where batches are."""
        self._manager = manager
        self._runs = runs
        self._spawn = spawn
        self.labels = labels
        """Returns those of this daemon."""
        self._places = places
        self._at_work: dict[tuple[str, int, int], PromptClaim] = {}
        self._woken = asyncio.Event()
        self._is_held_up = False
        self._is_full = False
        self._news = asyncio.Event()
        store.rules.listen(self.look)

    @property
    def is_active(self) -> bool:
        """Whether this daemon runs a prompt."""
        return bool(self._at_work)

    def look(self) -> None:
        """Look for work soon, and let those who wait for results look, too."""
        self._woken.set()
        news, self._news = self._news, asyncio.Event()
        news.set()

    def take_no_more(self) -> None:
        """Take no more prompts that wait, because the daemon ends when nothing runs; what runs goes on."""
        self._is_full = True

    async def news(self, limit_s: float) -> None:
        """Wait until something has changed, at most so many seconds. It may have changed elsewhere without being noticed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._news.wait()

    async def run(self) -> None:
        """Take and run prompts, until cancelled."""
        if labels := self.labels():
            self.store.offer(labels)
        while not self._manager.is_stopping:
            self._woken.clear()
            try:
                await self._take()
            except StorageError as error:
                log.warning("batches are looked at again: %s", error)
                self._is_held_up = True
            await self._rest()

    # --- inside -----------------------------------------------------------------------------------------------

    async def _rest(self) -> None:
        """Wait for a reason to look again. Nothing wakes a daemon that has its journal for itself, and no batch."""
        is_held_up, self._is_held_up = self._is_held_up, False
        if is_held_up:
            await asyncio.sleep(RETRY_S)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S if self.store.rules.is_shared else None):
                await self._woken.wait()

    async def _take(self) -> None:
        await self._abort_cancelled()
        for claim in await self.store.adoptable():
            if claim.key not in self._at_work and not self._manager.is_stopping and await self.store.adopt(claim):
                log.info("%s goes on in session %s", claim.name, claim.session)
                self._begin(claim)
        labels = self.labels()
        while len(self._at_work) < self._places() and not (self._is_full or self._manager.is_stopping):
            # A look is cheaper than a transaction that finds nothing.
            if not await self.store.has_work(labels) or (found := await self.store.claim(labels)) is None:
                return
            self._begin(found)

    async def _abort_cancelled(self) -> None:
        batches = {claim.batch for claim in self._at_work.values()}
        cancelled = await self.store.cancelled(batches) if batches else ()
        for claim in list(self._at_work.values()):
            if claim.batch in cancelled:
                self._runs.cancel(claim)

    def _begin(self, claim: PromptClaim) -> None:
        self._at_work[claim.key] = claim
        self._spawn(claim.name, self._work(claim))

    async def _work(self, claim: PromptClaim) -> None:
        try:
            result = await self._runs.carry_out(claim)
            if result is None:
                self._is_held_up = True
            elif result.state == "failed" and result.error != ABORTED and claim.attempt <= claim.prompt.retries:
                log.info("%s has failed, and is tried again: %s", claim.name, result.error)
                await self.store.retry(claim)
            else:
                await self.store.end(claim, result)
            await self._runs.release(claim.session)
        except (SessionElsewhereError, OwnedElsewhereError, LostClaimError) as error:
            log.info("%s goes on in another daemon: %s", claim.name, error)
        except (StorageError, CommandError) as error:
            log.warning("%s is looked at again: %s", claim.name, error)
            self._is_held_up = True
        finally:
            del self._at_work[claim.key]
            self.look()
