"""Carries out the claims of timers: finds or begins the session, and sends the prompt that it takes once."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from msgspec import Struct, structs

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.budget import counted
from zotd.core.ports import SessionRow
from zotd.core.timers import Claim, ClaimOutcome, Firing, NewTimerSession, Timer
from zotd.runs.queue import SubmitRequest
from zotd.sessions.defaults import check_directory, new_settings
from zotd.sessions.manager import Manager
from zotd.sessions.opening import SessionElsewhereError
from zotd.sessions.session import Session
from zotd.sessions.timer_prompts import send
from zotd.store.families import sessions_below
from zotd.store.journal import StoredJournal
from zotd.wire.api import SessionCreate, Started
from zotd.wire.errors import Code, CommandError

PAGE_BYTES = 256 * 1024
"""Of the records that are read at a time."""

PASSING = frozenset({Code.BUDGET_EXCEEDED, Code.QUEUE_FULL})
"""What is over by itself, such as a day's budget: it does not pause a timer, unless that is due once."""

NOT_ENDED = "left out, because the firing before it has not ended"

BUSY = "left out, because the session was busy"


class FiringAccount(Struct, frozen=True):
    """What has come of a firing so far."""

    runs: frozenset[str] = frozenset()
    """The runs that its prompt began."""
    usd: float = 0.0
    """What they have cost, with their subagents."""


NOTHING = FiringAccount()


class TimerFirings:
    """Sends the prompts of timers. Methods raise StorageError if the journal cannot be read or written."""

    def __init__(self, manager: Manager, journal: StoredJournal) -> None:
        self._manager = manager
        self._journal = journal

    async def carry_out(self, timer: Timer, now: int) -> ClaimOutcome:
        """Send the prompt of the timer's claim, unless that was done before a crash.

        Raises CommandError if the daemon is stopping, or another one has the session: the claim is to be carried out later.
        """
        claim = timer.claim
        assert claim is not None
        before = await self.account(timer.latest)
        try:
            session = await self._session(timer, claim, before)
            return await self._prompt(session, timer, before, now)
        except SessionElsewhereError:
            raise
        except CommandError as error:
            if error.code is Code.SHUTTING_DOWN:
                raise
            is_gone = error.code is Code.NOT_FOUND and bool(timer.session)
            is_failure = timer.is_single or error.code not in PASSING
            return ClaimOutcome(sentence=error.sentence, failed=is_failure and not is_gone, is_gone=is_gone)

    async def has(self, session: str) -> bool:
        """Return whether there is a stored session with this id."""
        return await self._journal.row(session) is not None

    async def account(self, firing: Firing | None) -> FiringAccount:
        """Return what has come of a firing; nothing if its session is not there any more."""
        if firing is None or await self._journal.row(firing.session) is None:
            return NOTHING
        runs, calls, usd = set[str](), set[str](), 0.0
        async for record in self._records(firing):
            match record:
                case records.Attempt(run=run, input=first) if first == firing.input:
                    runs.add(run)
                case records.Attempt(run=run, continues=cut) if cut in runs:
                    runs.add(run)
                case records.Attempt(input=str()) if runs:
                    break  # the next prompt has begun, and behind it nothing of this one goes on
                case records.UsageRow(run=run) as row if run in runs:
                    usd += counted(row).cost_usd
                case records.CallStarted(run=run, call_id=call) if run in runs:
                    calls.add(call)
                case _:
                    pass
        below = [] if not calls else await sessions_below(self._journal, firing.session)
        return FiringAccount(frozenset(runs), usd + _cost_of(below, calls))

    # --- inside -----------------------------------------------------------------------------------------------

    async def _records(self, firing: Firing) -> AsyncIterator[records.AnyRecord]:
        """Yield what its session has recorded since the firing."""
        after = firing.after
        while page := await self._journal.history.entries(firing.session, after, PAGE_BYTES):
            for entry in page:
                yield entry.record
            after = page[-1].number

    async def _session(self, timer: Timer, claim: Claim, before: FiringAccount) -> Session:
        """Return the session that is prompted; a new one is begun unless that was done before a crash."""
        try:
            return await self._manager.get(timer.session_of(claim))
        except CommandError as error:
            if error.code is not Code.NOT_FOUND or timer.new is None:
                raise
        row = await self._new_row(timer, timer.new, timer.spent_usd + before.usd)
        return await self._manager.begin(row, self._manager.environment(None, None))

    async def _new_row(self, timer: Timer, new: NewTimerSession, spent_usd: float) -> SessionRow:
        await asyncio.to_thread(check_directory, new.cwd)
        asked = SessionCreate(cwd=new.cwd, provider=new.provider, model=new.model, mode=new.mode)
        environment = self._manager.environment(None, None)
        settings = new_settings(asked, environment, self._manager.models, self._manager.config.value)
        if timer.limit_usd is not None:
            settings = structs.replace(settings, budget_usd=max(timer.limit_usd - spent_usd, 0.0))
        now, claim = rfc3339(), timer.claim
        assert claim is not None
        return SessionRow(timer.session_of(claim), "", new.cwd, now, now, settings, "idle", user=new.user)

    async def _prompt(self, session: Session, timer: Timer, before: FiringAccount, now: int) -> ClaimOutcome:
        await session.load()
        parked, claim = await self._is_parked(timer), timer.claim
        assert claim is not None
        key = timer.request_of(claim)
        request = SubmitRequest(id=key, digest=key, unattended=timer.unattended)
        # From here to the prompt nothing else of the session can happen.
        is_new = request.known(session.ledger.transcript) is None
        if is_new and (parked or self._goes_on(timer.latest, before)):
            return ClaimOutcome(sentence=NOT_ENDED)
        if is_new and timer.busy == "skip" and (session.work.is_active or len(session.work.queue)):
            return ClaimOutcome(sentence=BUSY)
        after, told = session.ledger.row.records if is_new else max(session.ledger.row.base - 1, 0), list[Started]()
        await send(self._manager.commands, session, timer, request=request, accepted=told.append)
        started = told[0].input
        assert started is not None
        return ClaimOutcome(Firing(session.id, started, after, now), settled_usd=before.usd)

    async def _is_parked(self, timer: Timer) -> bool:
        """Whether the session that the firing before has begun waits for a person, perhaps since before a restart."""
        if timer.new is None or timer.latest is None or self._manager.is_loaded(timer.latest.session):
            return False
        row = await self._journal.row(timer.latest.session)
        return row is not None and row.state == "waiting"

    def _goes_on(self, firing: Firing | None, account: FiringAccount) -> bool:
        """Whether the prompt of a firing waits, or a run that it began has not ended."""
        session = next((one for one in self._manager.loaded if firing and one.id == firing.session), None)
        if session is None or firing is None:
            return False
        transcript = session.ledger.transcript
        is_its_run = transcript.run in account.runs
        return firing.input in transcript.waiting or (
            is_its_run and (session.work.is_active or session.state == "waiting")
        )


def _cost_of(rows: Sequence[SessionRow], calls: set[str]) -> float:
    """Return what the subagents have cost that these calls began."""
    return sum(
        row.spent.cost_usd + row.spent_below.cost_usd
        for row in rows
        if row.parent is not None and row.parent.call in calls
    )
