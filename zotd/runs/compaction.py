"""Compaction: replaces what the model sees of a transcript by a summary that a model writes.

`CompactionRun` carries out a `compact` command: one model request, its records, exactly one `done` however it ends.
The compaction of a run that has come to its mark (`runs.run_summaries`) shares the request and the record with it.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext

from msgspec import Struct

from zotd.clock import rfc3339
from zotd.core import compaction, records
from zotd.core.ports import Model, ModelRequest
from zotd.core.retry import Failure, ModelError
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.context import RunContext
from zotd.runs.model_switch import ladder_of
from zotd.runs.request_billing import COMPACTION, RequestBilling
from zotd.runs.side_request import reply_to
from zotd.wire import events
from zotd.wire.api import Partial, RunInfo
from zotd.wire.content import Message


class Summary(Struct, frozen=True):
    """A summary, and how many of the newest messages stay beside it."""

    text: str
    kept: int


async def summarise(
    billing: RequestBilling, model: Model, messages: Sequence[Message], instructions: str = ""
) -> Summary:
    """Summarise all of `messages` but the tail that stays. `billing` pays; what it took is to be billed there.

    Raises:
        ModelError: the request failed, a budget is used up, the summary is empty, or there is nothing to summarise.
    """
    kept = compaction.kept(messages)
    older = messages[: len(messages) - kept]
    if not older:
        raise ModelError(Failure.REFUSED, "nothing to compact: the transcript is empty")
    return Summary(await summary_of(billing, model, older, instructions), kept)


async def summary_of(billing: RequestBilling, model: Model, older: Sequence[Message], instructions: str = "") -> str:
    """Return a summary of exactly these messages; like `summarise` otherwise."""
    request = ModelRequest(
        system=compaction.SYSTEM,
        messages=compaction.request(older, instructions),
        tools=(),
        max_output=compaction.MAX_OUTPUT,
        cache_life=billing.life,
    )
    text = (await reply_to(billing, model, request)).text().strip()
    if not text:
        raise ModelError(Failure.REFUSED, "the model returned an empty summary; the transcript stays as it is")
    return text


def compaction_record(summary: Summary, transcript: Transcript) -> Shown:
    """A summary as the record that moves what the model sees, with what it must not leave behind of the transcript."""
    record = records.Compaction(
        time=rfc3339(),
        summary=summary.text,
        kept=summary.kept,
        known=transcript.known(),
        allowed_tools=transcript.allowed_tools,
    )
    return Shown(record, [events.CompactDone(summary.text)])


def told(run: str, plan: RunContext, ledger: Ledger, *, reason: str) -> AbstractContextManager[None]:
    """Tell the extensions that the transcript of this run is being summarised; `reason`: `manual` or `auto`."""
    hooks = plan.hooks()
    return (
        hooks.compaction(run, len(ledger.transcript.messages), ledger.row.context, reason=reason)
        if hooks is not None
        else nullcontext()
    )


class CompactionRun:
    """One compaction of one session; abort it like a run."""

    def __init__(
        self, run: str, ledger: Ledger, plan: RunContext, *, instructions: str, done_shown: Callable[[], None]
    ) -> None:
        """`instructions`: what the user wants the summary to keep. `done_shown`: see `RunStart`."""
        self.id = run
        self._ledger = ledger
        self._plan = plan
        self._billing = RequestBilling(plan, ledger, run)
        self._instructions = instructions
        self._done_shown = done_shown
        self._started = rfc3339()
        self._aborted = False
        self._task: asyncio.Task[Summary | ModelError] | None = None

    async def run(self) -> str:
        """Summarise; returns how it ended: `end_turn`, `error` or `aborted`."""
        if self._plan.models.begins_with_choice:
            models = ladder_of(self._plan)
            if (choice := await models.choose(None)) is not None:
                models.take(choice)
        with closing(self._billing):
            await self._ledger.write([Shown(self._attempt())], durable=True, state="running")
            if self._aborted:
                return await self._end("aborted")
            async with asyncio.TaskGroup() as tasks:
                task = self._task = tasks.create_task(self._summarise(), name=f"compaction {self.id}")
            if task.cancelled():
                return await self._end("aborted")
            outcome = task.result()
            return await (self._end("error", outcome) if isinstance(outcome, ModelError) else self._keep(outcome))

    def abort(self) -> None:
        """End it now; nothing is changed."""
        self._aborted = True
        if self._task is not None:
            self._task.cancel()

    def info(self) -> RunInfo:
        """Return the compaction as a snapshot shows it."""
        return RunInfo(self.id, 0, self._started, Partial("", []))

    async def _summarise(self) -> Summary | ModelError:
        try:
            with told(self.id, self._plan, self._ledger, reason="manual"):
                messages, model = self._ledger.transcript.messages, self._plan.models.current.model
                return await summarise(self._billing, model, messages, self._instructions)
        except ModelError as error:
            return error

    def _attempt(self) -> records.Attempt:
        """On record before the request is sent, as that of any other."""
        asked = self._plan.models.current
        return records.Attempt(
            time=rfc3339(),
            run=self.id,
            step=0,
            number=0,
            provider=asked.provider,
            model=asked.name,
            estimate=self._billing.begin(COMPACTION),
        )

    async def _keep(self, summary: Summary) -> str:
        note = records.Note(time=rfc3339(), level="info", text="compacted")
        await self._close(
            [compaction_record(summary, self._ledger.transcript), Shown(note, [events.Done(run=self.id)])],
            context=0,
        )
        return "end_turn"

    async def _end(self, stop: str, error: ModelError | None = None) -> str:
        shown: list[events.Event] = [events.Done(run=self.id)]
        if error is not None:
            shown.insert(0, events.Error(error.sentence))
        text = error.sentence if error else "compaction aborted"
        note = records.Note(time=rfc3339(), level="error" if error else "info", text=text)
        await self._close([Shown(note, shown)], error)
        return stop

    async def _close(self, items: list[Shown], error: ModelError | None = None, *, context: int | None = None) -> None:
        """What the request took goes before `items`, in one commit."""
        row = self._billing.bill(0, error)
        assert row is not None, "the request was begun and not billed"
        rest = self._ledger.transcript.rest
        await self._ledger.write(
            [Shown(row), *items],
            durable=True,
            usage=row.tokens,
            context=context,
            accepted=self._done_shown,
            state=rest,
        )
