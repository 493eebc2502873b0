"""Requests a session's summary before it is needed, while the run goes on (`core.early_summary`).

    begin ──> attempt on record ──> request ──> its usage row, with the summary
                                       └─ the messages are replaced: cancelled, and the row has no summary

The request belongs to the session and not to a run: runs are often shorter than it. There is one at a time, it is never
repeated by itself, and it waits for at most `LIMIT_S`. Clients are not told.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import closing

from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.core import compaction, records
from zotd.core.budget import FREE
from zotd.core.early_summary import PURPOSE
from zotd.core.ports import Model, StorageError
from zotd.core.retry import Failure, ModelError
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.compaction import summary_of
from zotd.runs.context import RunContext
from zotd.runs.request_billing import RequestBilling
from zotd.wire.content import Message

log = logging.getLogger(__name__)

LIMIT_S = 300.0
"""Longest wait for a summary that no run waits for; most take less than a minute."""


class EarlyRequest:
    """The request for the early summary of one session, when there is one."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        ended: Callable[[], None],
    ) -> None:
        """`spawn` runs a named coroutine in a task whose owner outlives the session; `ended` is told when it is over."""
        self._ledger = ledger
        self._spawn = spawn
        self._told = ended
        self._is_refused = False
        self._is_cancelled = False
        self._task: asyncio.Task[str | ModelError] | None = None
        self.ended = asyncio.Event()
        """Set while no request is under way, and what came of the last one is on record."""
        self.ended.set()

    def begin(self, plan: RunContext, run: str, step: int) -> None:
        """Request a summary of what this step of this run reads, but for the newest messages; returns at once.

        Nothing is requested if there is a summary already, if the last request failed, if a budget is nearly used up, or
        if the model is a local one.
        """
        transcript, asked = self._ledger.transcript, plan.models.current
        # A local model answers one request after the other, so the run would wait for the summary all the same.
        if not self.ended.is_set() or self._is_refused or not transcript.early.may_begin or asked.model.rates == FREE:
            return
        billing, row = RequestBilling(plan, self._ledger, run), self._ledger.row
        estimate = billing.begin(PURPOSE)
        if plan.spending.is_scarce(row, estimate):
            return
        covers = len(transcript.messages) - compaction.kept(transcript.messages)
        attempt = records.Attempt(
            time=rfc3339(),
            run=run,
            step=step,
            number=0,
            provider=asked.provider,
            model=asked.name,
            estimate=estimate,
            covers=covers,
        )
        older = transcript.messages[:covers]
        self._is_cancelled = False
        self.ended.clear()
        on_record = self._ledger.write([Shown(attempt)], durable=True)
        self._spawn(
            f"early summary of {self._ledger.row.id}",
            self._run(asked.model, billing, attempt, older=older, on_record=on_record),
        )

    def cancel(self) -> None:
        """End the request under way; harmless when there is none."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

    def refuse(self) -> None:
        """Begin no more requests, because the process ends soon."""
        self._is_refused = True

    async def _run(
        self,
        model: Model,
        billing: RequestBilling,
        attempt: records.Attempt,
        *,
        older: Sequence[Message],
        on_record: Awaitable[None],
    ) -> None:
        self._ledger.watchers.append(self._heed)
        try:
            with closing(billing):
                await on_record
                await self._keep(billing, attempt, await self._summary(model, billing, older))
        except StorageError:
            pass  # the session is read anew when the journal can be written, and the request is billed then
        finally:
            self._ledger.watchers.remove(self._heed)
            self.ended.set()
            self._told()

    async def _summary(
        self, model: Model, billing: RequestBilling, older: Sequence[Message]
    ) -> str | ModelError | None:
        """The summary, or why there is none; None: it was cancelled."""
        if self._is_cancelled:
            return None
        async with asyncio.TaskGroup() as tasks:
            task = self._task = tasks.create_task(_ask(model, billing, older), name="early summary")
        self._task = None
        return None if task.cancelled() else task.result()

    def _heed(self, _: Sequence[Shown]) -> None:
        """Spare the rest of a summary that nothing can use any more."""
        if not self._ledger.transcript.early.is_wanted:
            self.cancel()

    async def _keep(self, billing: RequestBilling, attempt: records.Attempt, outcome: str | ModelError | None) -> None:
        """Record the usage, and with it the summary, if it still covers what the model sees."""
        transcript = self._ledger.transcript
        if transcript.early.sent != attempt:
            return  # the session was read anew meanwhile, which billed the request
        text = outcome if isinstance(outcome, str) and transcript.early.is_wanted else ""
        row = billing.bill(attempt.step, outcome if isinstance(outcome, ModelError) else None)
        assert row is not None, "the request was begun and not billed"
        is_at_rest = not transcript.run_open and transcript.shell is None and not transcript.waiting
        # The state was `running` only so that a restart bills the request (`Transcript.rest`).
        state = "idle" if is_at_rest and self._ledger.row.state == "running" else self._ledger.row.state
        await self._ledger.write([Shown(replace(row, summary=text))], durable=True, usage=row.tokens, state=state)


async def _ask(model: Model, billing: RequestBilling, older: Sequence[Message]) -> str | ModelError:
    try:
        async with asyncio.timeout(LIMIT_S):
            return await summary_of(billing, model, older)
    except ModelError as error:
        return error
    except TimeoutError:
        return ModelError(Failure.CUT, f"no early summary came within {LIMIT_S:g} s")
    except Exception:  # a fault of ours or of a vendor's library: the run does without the summary
        log.exception("the early summary failed")
        return ModelError(Failure.INTERNAL, "the early summary failed inside zot; see the daemon's log")
