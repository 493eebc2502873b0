"""One attempt at a prompt of a batch: finds or makes its session, runs the prompt there once, and says what came of it."""

import asyncio
import time
from datetime import datetime

from zotd.clock import rfc3339
from zotd.core.batches import PromptResult, ResultState, RunEnd, run_end
from zotd.core.ports import SessionRow
from zotd.runs.queue import SubmitRequest
from zotd.sessions.defaults import check_directory, new_settings
from zotd.sessions.manager import Manager
from zotd.sessions.opening import SessionElsewhereError
from zotd.sessions.session import Session
from zotd.store.batches import CANCELLED, PromptClaim
from zotd.store.families import sessions_below
from zotd.store.journal import StoredJournal
from zotd.wire.api import SessionCreate, Started
from zotd.wire.errors import Code, CommandError

PAGE_BYTES = 256 * 1024
"""Of the records that are read at a time."""

PASSING = frozenset({Code.SHUTTING_DOWN, Code.STORAGE_BLOCKED})
"""Refusals of a daemon that ends, of a session that moves, and of a journal that cannot be written: the attempt goes on later."""

GOES_ON = frozenset({Code.BUSY, Code.CONFLICT})
"""Refusals of a run that another client goes on with, or that has ended."""

ABORTED = "aborted"
"""`PromptResult.error` of a run that a person has aborted, who does not want it again."""

NO_REPLY = "the run has ended without a reply"

TOO_LONG = "aborted after {limit_s:g} s, the limit of the prompt"

UNKNOWN = "{call}; what it has done is not known, so the prompt is not run again"


class PromptRuns:
    """Carries out claims. What is cut goes on where it was cut, in this daemon or in another one."""

    def __init__(self, manager: Manager, journal: StoredJournal) -> None:
        self._manager = manager
        self._journal = journal
        self._cancelled: set[tuple[str, int, int]] = set()

    async def carry_out(self, claim: PromptClaim) -> PromptResult | None:
        """Run the prompt, or go on with it, and return its result; None if it has no end yet, and goes on later.

        Raises:
            SessionElsewhereError: another daemon has the session.
            StorageError: the journal cannot be read or written.
        """
        try:
            session = await self._session(claim)
            await session.load()
            begun = time.time() if claim.prompt.limit_s is None else _begun(session.ledger.row)
            before = await self._end_of(session)
            if before.cut_call and not session.work.is_active:
                return await self._result(session, claim, "unknown", before, error=UNKNOWN.format(call=before.cut_call))
            await self._start(session, claim)
            is_late = await self._wait(session, claim.prompt.limit_s, begun)
            return await self._outcome(session, claim, is_late=is_late)
        except SessionElsewhereError:
            raise
        except CommandError as error:
            if error.code in PASSING or self._manager.is_stopping:
                return None
            made = claim.session if self._manager.is_loaded(claim.session) else ""
            return PromptResult(state="failed", error=error.sentence, session=made, attempts=claim.attempt)
        finally:
            self._cancelled.discard(claim.key)

    def cancel(self, claim: PromptClaim) -> None:
        """Abort the run of a claim that is being carried out; its result says that it was cancelled."""
        self._cancelled.add(claim.key)
        for session in self._manager.loaded:
            if session.id == claim.session:
                session.abort()

    async def release(self, session_id: str) -> None:
        """Let a session leave memory in which nothing happens any more, so that a long batch does not fill it."""
        for session in self._manager.loaded:
            is_used = session.ledger.followers or session.work.is_active or session.jobs.running
            if session.id == session_id and not is_used:
                await self._manager.close(session)

    # --- inside -----------------------------------------------------------------------------------------------

    async def _session(self, claim: PromptClaim) -> Session:
        try:
            return await self._manager.get(claim.session)
        except CommandError as error:
            if error.code is not Code.NOT_FOUND:
                raise
        return await self._manager.begin(await self._new_row(claim), self._manager.environment(None, None))

    async def _new_row(self, claim: PromptClaim) -> SessionRow:
        prompt, manager = claim.prompt, self._manager
        await asyncio.to_thread(check_directory, prompt.cwd)
        asked = SessionCreate(
            cwd=prompt.cwd,
            provider=prompt.provider,
            model=prompt.model,
            mode=prompt.mode,
            budget_usd=prompt.limit_usd,
        )
        settings = new_settings(asked, manager.environment(None, None), manager.models, manager.config.value)
        now = rfc3339()
        return SessionRow(claim.session, "", prompt.cwd, now, now, settings, "idle", user=prompt.user)

    async def _start(self, session: Session, claim: PromptClaim) -> None:
        """Send the prompt, once, or go on with a run that was cut; return when it runs, or has ended."""
        if claim.key in self._cancelled:
            return
        request = SubmitRequest(id=claim.name, digest=claim.name, unattended="deny")
        if request.known(session.ledger.transcript) is None:
            await session.prompt(
                claim.prompt.message,
                (),
                sender=f"batch {claim.batch}",
                when_busy="queue",
                accepted=_unheard,
                request=request,
            )
        elif not session.work.is_active and (session.ledger.transcript.can_resume or len(session.work.queue)):
            try:
                await session.go_on(accepted=_unheard)
            except CommandError as error:
                if error.code not in GOES_ON:
                    raise

    async def _wait(self, session: Session, limit_s: float | None, begun: float) -> bool:
        """Wait for the end of the run; return whether it took too long, and was aborted."""
        try:
            async with asyncio.timeout(None if limit_s is None else max(begun + limit_s - time.time(), 0.0)):
                await session.work.stopped()
        except TimeoutError:
            session.abort()
            await session.work.stopped()
            return True
        return False

    async def _outcome(self, session: Session, claim: PromptClaim, *, is_late: bool) -> PromptResult | None:
        if self._manager.is_stopping:
            return None
        if session.ledger.failure is not None:
            raise session.ledger.failure
        if session.ledger.transcript.interrupted:  # it was stopped to go on elsewhere
            return None
        if session.ledger.is_let_go:  # closed or deleted by a client: then there is none to go on with
            session = await self._manager.get(claim.session)
        end = await self._end_of(session)
        if claim.key in self._cancelled:
            return await self._result(session, claim, "cancelled", end, error=CANCELLED)
        if is_late:
            return await self._result(
                session, claim, "failed", end, error=TOO_LONG.format(limit_s=claim.prompt.limit_s)
            )
        error = end.error or ("" if end.text else NO_REPLY)
        return await self._result(session, claim, "failed" if error else "done", end, error=error)

    async def _end_of(self, session: Session) -> RunEnd:
        """Return what the records of the session say of its last run."""
        await session.ledger.settled.wait()
        end, after = RunEnd(), 0
        while page := await self._journal.history.entries(session.id, after, PAGE_BYTES):
            end, after = run_end([entry.record for entry in page], end), page[-1].number
        return end

    async def _result(
        self, session: Session, claim: PromptClaim, state: ResultState, end: RunEnd, *, error: str
    ) -> PromptResult:
        row = session.ledger.row
        below = await sessions_below(self._journal, session.id)
        cost_usd = sum(one.spent.cost_usd for one in [row, *below])
        took_s = round(max(time.time() - _begun(row), 0.0), 3)
        return PromptResult(
            state=state,
            text=end.text,
            error=error,
            session=session.id,
            attempts=claim.attempt,
            cost_usd=cost_usd,
            took_s=took_s,
        )


def _begun(row: SessionRow) -> float:
    """Return when the attempt began, in seconds since the epoch: it made the session."""
    return datetime.fromisoformat(row.created).timestamp()


def _unheard(_: Started) -> None:
    """No client waits for the answer."""
