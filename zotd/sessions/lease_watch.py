"""What happens to sessions when this daemon loses its lease on them, or gets those of another one (`docs/postgresql.md`)."""

import asyncio
import logging
from collections.abc import Sequence

from zotd.core.ports import StorageError
from zotd.sessions.boot_recovery import cut_states, receive, recover_these
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.timers import Timers
from zotd.store.ownership import Handover, LeaseEvents

LOST = "ended because this daemon has lost its sessions"
"""Why jobs ended, as the model reads it."""

RECEIVED_AT_ONCE = 16
"""Sessions that are loaded at the same time. Each waits for several answers and commits of the database."""

log = logging.getLogger(__name__)


class LeaseWatch:
    """Does to sessions and timers what follows from the lease of this daemon."""

    def __init__(self, manager: Manager, timers: Timers | None, *, spawn: Spawn, resumes: bool) -> None:
        """`resumes`: runs that were cut go on, as after a start."""
        self._manager = manager
        self._timers = timers
        self._spawn = spawn
        self._resumes = resumes

    @property
    def events(self) -> LeaseEvents:
        """What to call."""
        return LeaseEvents(self.lost, self.changed, self.given, cut_states(resumes=self._resumes))

    def lost(self, error: StorageError) -> None:
        """Abort what runs in stored sessions. Each begins anew from what is stored when it can be taken again."""
        for session in self._manager.loaded:
            if session.ephemeral or session.ledger.failure is not None:
                continue
            if session.work.is_active:
                log.warning("session %s is aborted: %s", session.id, error)
            session.ledger.fail(error)
            session.abort()
            self._spawn(f"end of the jobs of {session.id}", session.jobs.end_all(LOST))

    def changed(self, sessions: Sequence[str]) -> None:
        """Repair these sessions, which were another daemon's, and fire its timers."""
        self._spawn("recovery of the sessions of another daemon", self._recover(sessions, resumes=self._resumes))

    def given(self, handovers: Sequence[Handover]) -> None:
        """Go on with these sessions where other daemons have stopped in order, and fire their timers."""
        self._spawn("sessions that another daemon has handed over", self._receive(handovers))

    async def _receive(self, handovers: Sequence[Handover]) -> None:
        if self._manager.is_stopping:
            return  # the lease passes them on
        places = asyncio.Semaphore(RECEIVED_AT_ONCE)

        async def in_turn(handover: Handover) -> None:
            async with places:
                await receive(self._manager, handover)

        async with asyncio.TaskGroup() as tasks:
            for handover in handovers:
                tasks.create_task(in_turn(handover), name=f"receipt of {handover.session}")
        assert self._manager.journal is not None
        await self._manager.journal.ownership.receive([handover.session for handover in handovers])
        await self._load_timers()  # last: people wait for the sessions

    async def _recover(self, sessions: Sequence[str], *, resumes: bool) -> None:
        await self._load_timers()
        await recover_these(self._manager, sessions, resumes=resumes)

    async def _load_timers(self) -> None:
        try:
            if self._timers is not None:
                await self._timers.load()
        except StorageError as error:
            log.warning("timers of another daemon do not fire: %s", error)
