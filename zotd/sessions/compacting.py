"""A `compact` command, carried out: one model request, a record, exactly one `done` however it ends."""

import asyncio
from contextlib import nullcontext

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.retry import ModelError
from zotd.sessions.ledger import Ledger, Shown
from zotd.sessions.plan import Plan
from zotd.sessions.summary import Summary, compaction_records, summarise
from zotd.wire import events
from zotd.wire.api import Partial, RunInfo


class Compacting:
    """One compaction of one session; abort it like a run."""

    def __init__(self, run: str, ledger: Ledger, plan: Plan, *, instructions: str) -> None:
        """`instructions`: what the user wants the summary to keep."""
        self.id = run
        self._ledger = ledger
        self._plan = plan
        self._instructions = instructions
        self._started = rfc3339()
        self._aborted = False
        self._task: asyncio.Task[Summary | ModelError] | None = None

    async def run(self) -> str:
        """Summarise; returns how it ended: `end_turn`, `error` or `aborted`."""
        if self._aborted:
            return await self._end("aborted")
        async with asyncio.TaskGroup() as tasks:
            task = self._task = tasks.create_task(self._summarise(), name=f"compaction {self.id}")
        if task.cancelled():
            return await self._end("aborted")
        outcome = task.result()
        return await (self._end("error", outcome.sentence) if isinstance(outcome, ModelError) else self._keep(outcome))

    def abort(self) -> None:
        """End it now; nothing is changed."""
        self._aborted = True
        if self._task is not None:
            self._task.cancel()

    def info(self) -> RunInfo:
        """As a snapshot shows it."""
        return RunInfo(self.id, 0, self._started, Partial("", []))

    async def _summarise(self) -> Summary | ModelError:
        hooks, messages = self._plan.hooks, self._ledger.transcript.messages
        try:
            with hooks.compaction(self.id, len(messages), self._ledger.row.context) if hooks else nullcontext():
                return await summarise(self._plan.model, messages, self._instructions)
        except ModelError as error:
            return error

    async def _keep(self, summary: Summary) -> str:
        items = compaction_records(self.id, self._plan.settings, summary)
        last = items[-1]
        items[-1] = Shown(last.record, [*last.shows, events.Done(run=self.id)])
        await self._ledger.write(items, durable=True, usage=summary.tokens, context=0, state=self._ledger.rest)
        return "end_turn"

    async def _end(self, stop: str, failure: str | None = None) -> str:
        shown: list[events.Event] = [events.Done(run=self.id)]
        if failure is not None:
            shown.insert(0, events.Error(failure))
        note = records.Note(time=rfc3339(), level="error" if failure else "info", text=failure or "compaction aborted")
        await self._ledger.write([Shown(note, shown)], durable=False, state=self._ledger.rest)
        return stop
