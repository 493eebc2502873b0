"""Carries out one run: what `core.turn` decides becomes model requests, tool calls, records and events.

One coroutine (`run`) owns the turn and writes every record but one; the tasks it starts only report back. Records
gather in a `RecordBatch` and are committed where `docs/durability.md` wants them: with the next attempt, before a call
that is not safe, and at the end of the run. What nothing waits for goes with these, or unsynced a moment later.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property, partial

from zotd.clock import rfc3339
from zotd.contributions.guards import noted
from zotd.core import turn, turn_inputs
from zotd.core.ports import ToolOutcome
from zotd.core.reply import Assembler
from zotd.core.retry import Failure, ModelError
from zotd.exthost.guards import GuardRemark
from zotd.ledger.ledger import Ledger, Shown
from zotd.permissions.clearance import Clearance
from zotd.runs import recovery
from zotd.runs.compaction import Summary, compaction_record
from zotd.runs.context import RunContext, RunStart
from zotd.runs.early_summary import EarlyRequest
from zotd.runs.model_ladder import NextModel
from zotd.runs.model_switch import answered, ladder_of, switched
from zotd.runs.queue import Queue
from zotd.runs.record_batch import RecordBatch
from zotd.runs.refused_images import left_out
from zotd.runs.request import Attempts, RequestSender
from zotd.runs.request_billing import RequestBilling
from zotd.runs.request_guard import SentRequest
from zotd.runs.retry_pause import Pause
from zotd.runs.run_summaries import RunSummaries
from zotd.runs.tool_calls import NOT_STARTED, Launch, ToolCalls, start_events
from zotd.wire import events
from zotd.wire.api import RunInfo
from zotd.wire.content import Text, ToolCall

log = logging.getLogger(__name__)

Action = turn.Action | Launch
Report = Callable[[], Sequence[Action]]
"""What a task of the run found, told to the turn by the coroutine that owns it."""


class Runner:
    """One run of one session."""

    def __init__(
        self,
        run: str,
        ledger: Ledger,
        plan: RunContext,
        *,
        queue: Queue,
        start: RunStart,
        early: EarlyRequest,
        rested: Callable[[], None],
    ) -> None:
        """Inputs of `queue` may join it. `early` outlives it. `rested` is called while it drains, when it may be parked."""
        self.id = run
        self._ledger = ledger
        self._plan = plan
        self._queue = queue
        self._billing = RequestBilling(plan, ledger, run)
        self._attempts = Attempts(run, plan, ledger, queue, first=start.input, billing=self._billing)
        window = plan.models.current.model.context_window
        self._early, self._early_from = early, window * plan.compact_early_at
        self._has_cut_reply = False
        self._turn = turn.Turn(
            max_steps=plan.settings.max_steps,
            context=ledger.row.context,
            compact_from=turn.tokens_limit(window, plan.compact_at),
            policy=plan.models.usual,
            fallbacks=plan.models.fallbacks,
            begins_with_choice=plan.models.begins_with_choice,
        )
        self._reports: asyncio.Queue[Report] = asyncio.Queue()  # bounded by the calls of a step
        opening = start.input.opening if start.input else ledger.transcript.opening
        self._sender = RequestSender(run, plan, ledger, self._billing, opening=opening, noted=self._note)
        self._started = rfc3339()
        self._rested = rested
        self._reach = plan.probe or (lambda _: None)
        self._input, self._is_new = start.input, start.new
        self._batch = RecordBatch(ledger, run, start)
        self._notes = list(map(partial(events.Notice, "warn", session=ledger.label), plan.notes))
        self._request: asyncio.Task[None] | None = None
        self._stop: str | None = None
        self._is_draining = False
        self._is_at_rest = False  # what was reported is carried out; a request or calls may run
        calls = () if start.input else self._calls.take_over(ledger.transcript, plan.toolbox().tools)
        # Now, so that an abort that comes before `run` is the second thing it hears.
        self._tell(turn_inputs.Begin(calls))

    async def run(self) -> str:
        """Run until the end; returns how it ended: `end_turn`, `error`, `aborted`, or `cut` without an end (`drain`).

        When the journal cannot write, an ExceptionGroup with a StorageError comes out; nothing that was told is lost.
        """
        if self._input is None:
            self._batch.add(self._attempts.resumed(self._ledger.transcript.run))
        elif self._is_new:
            self._batch.add(Shown(self._input))
        self._reach("input taken")
        with closing(self._billing):
            async with asyncio.TaskGroup() as tasks:
                return await self._heed_reports(tasks)

    def abort(self) -> None:
        """End the run now; harmless when it is ending already."""
        self._tell(turn_inputs.Abort())

    def drain(self) -> None:
        """Stop before the next model request; `run` then returns `cut`."""
        self._is_draining = True
        self._tell(turn_inputs.Drain())

    def is_parked(self, questions: int) -> bool:
        """Return True if the run only waits for people to decide about that many calls."""
        return self._is_at_rest and self._reports.empty() and self._calls.only_ask(questions)

    @cached_property
    def pause(self) -> Pause:
        """Its waits for a model that fails."""
        return Pause(lambda: self._turn.policy.patience_s)

    @cached_property
    def _calls(self) -> ToolCalls:
        return ToolCalls(self.id, self._plan, self._ledger, ended=self._call_ended, judged=self._call_judged)

    @cached_property
    def _summaries(self) -> RunSummaries:
        return RunSummaries(
            self.id, self._plan, self._ledger, attempts=self._attempts, billing=self._billing, early=self._early
        )

    @property
    def written(self) -> int:
        """Characters that have come of the reply under way."""
        return self._sender.written

    def info(self) -> RunInfo:
        """The run as a snapshot shows it."""
        calls, waiting = self._calls.running(), self.pause.info()
        return RunInfo(self.id, self._turn.step, self._started, self._sender.partial(), None, calls, waiting)

    # --- carrying out -----------------------------------------------------------------------------------------

    async def _heed_reports(self, tasks: asyncio.TaskGroup) -> str:
        while self._stop is None:
            self._is_at_rest = True
            if self._is_draining:  # else nothing waits for a run to rest
                self._rested()
            report = await self._reports.get()
            self._is_at_rest = False
            for action in report():
                await self._carry_out(action, tasks)
            await self._batch.commit_soon()
        return self._stop

    async def _carry_out(self, action: Action, tasks: asyncio.TaskGroup) -> None:  # noqa: C901  (a case per action)
        match action:
            case turn.Send():
                self._batch.add(self._attempts.begin(action))
                await self._batch.commit(durable=True)
                self._reach("attempt on record")
                self._ledger.live(self._notes)
                self._notes = []
                self._request = tasks.create_task(self._stream(action), name=f"request of {self.id}")
            case turn.Wait():
                await self._begin_pause(action)
                self._request = tasks.create_task(self._wait(action.attempt), name=f"retry of {self.id}")
            case turn.RequestCompaction(attempt):
                self._batch.add(*self._summaries.begin(self._turn.step))  # a summary takes long: show the prompt first
                await self._batch.commit(durable=True)
                self._request = tasks.create_task(self._compact(attempt), name=f"compaction of {self.id}")
            case turn.Switch():
                self._ask_again()
                self._request = tasks.create_task(self._choose(action), name=f"choice of {self.id}")
            case turn.Cancel():
                self._cancel_request()
            case turn.StartCalls(keys) | Launch(keys):
                await self._start_calls(keys, tasks, judged=isinstance(action, Launch))
            case turn.CancelCalls(keys):
                self._calls.cut(keys)
            case turn.Skip(key):
                self._record_result(key, ToolOutcome.error(NOT_STARTED))
            case turn.End():
                await self._calls.record_end()
                self._batch.close(action)
                await self._batch.commit(durable=True)
                self._reach("ended")
                self._stop = action.stop
            case turn.Leave():
                await self._batch.commit(durable=True)
                self._stop = "cut"

    async def _start_calls(self, keys: Sequence[str], tasks: asyncio.TaskGroup, *, judged: bool) -> None:
        """Start these calls, or have them cleared first."""
        authorization = self._plan.authorization
        if not judged and authorization.is_needed:
            if authorization.asks_guards:  # people see what the model wants while guards think about it
                await self._batch.commit()
            keys = self._calls.judge(keys, authorization, tasks)
        if not keys:
            return
        authorization.settled(key for key in keys if not self._calls.has_known_outcome(key))
        started = self._calls.started(self.id, keys)
        self._batch.add(*map(Shown, started))
        begun = partial(self._calls_begun, keys, [] if judged else self._calls.named(keys))
        waits = bool(started) or not self._calls.are_brief(keys)
        await (self._batch.commit(durable=bool(started)) if waits else self._batch.commit_soon(begun))
        self._reach("calls on record")
        self._calls.start(keys, tasks, hooks=self._plan.hooks(), noted=self._note)
        if waits:
            begun()

    def _calls_begun(self, keys: Sequence[str], waved: Sequence[tuple[str, str]]) -> None:
        self._plan.authorization.waved(waved)
        self._ledger.live(start_events(keys, self._ledger.label))

    def _tell(self, event: turn_inputs.Input) -> None:
        self._reports.put_nowait(partial(self._turn.receive, event))

    # --- model requests ---------------------------------------------------------------------------------------

    async def _stream(self, send: turn.Send) -> None:
        """Read the reply, and report the end of it."""
        try:
            if 0 < self._early_from <= self._ledger.row.context and send.number == 1:
                self._early.begin(self._plan, self.id, send.step)
            asked = await self._sender.ask(send.step, send.number, partial(self._opened, send))
        except ModelError as error:
            self._reports.put_nowait(partial(self._failed, send.attempt, error))
        except Exception:  # a fault of ours or of a vendor's library must end this run only
            log.exception("the model request of %s failed", self.id)
            sentence = f"the request to {self._plan.models.current.provider} failed inside zot; see the daemon's log"
            self._reports.put_nowait(partial(self._failed, send.attempt, ModelError(Failure.INTERNAL, sentence)))
        else:
            self._reports.put_nowait(partial(self._replied, send, asked))

    async def _opened(self, send: turn.Send) -> None:
        """`assistant_start` comes with the provider's 200; nothing has to wait for its commit."""
        self._tell(turn_inputs.ReplyStarted(send.attempt))
        self._reach("opened")
        await self._ledger.begin_reply(self._attempts.answered(send))
        self._reach("begun")

    def _note(self, notes: Sequence[GuardRemark]) -> None:
        self._reports.put_nowait(partial(self._noted, notes))

    def _noted(self, notes: Sequence[GuardRemark]) -> Sequence[Action]:
        self._batch.add(*noted(notes))
        return ()

    def _replied(self, send: turn.Send, asked: SentRequest) -> Sequence[Action]:
        reply = self._sender.take()
        if self._turn.awaited != send.attempt:
            return ()
        if reply is None:
            sentence = f"{self._plan.models.current.provider} sent an empty stream; send the prompt again"
            return self._failed(send.attempt, ModelError(Failure.CUT, sentence))
        if reply.stop == "refusal":
            self._sender.put_back(reply)
            sentence = f"{self._plan.models.current.name} declined to answer; rephrase the prompt or use another model"
            return self._failed(send.attempt, ModelError(Failure.REFUSED, sentence))
        if "pause" in vars(self):  # else no request of this run has failed
            self.pause.passed()
        content = reply.message()
        calls = [block for block in content if isinstance(block, ToolCall)]
        self._record_usage(reply)
        stop = "tool_use" if calls else (reply.stop or "end_turn")
        shown: list[events.Event] = [events.ToolCallEvent(call.id, call.name, call.args) for call in calls]
        self._batch.reply(self._turn.step, content, stop, [*shown, events.TurnEnd(stop)], seen=asked.seen)
        if self._plan.models.fallbacks:
            self._batch.add(*answered(self.id, self._plan, self._ledger.transcript))
        expected = self._calls.expect(calls, reply.broken_calls(), asked.toolbox.tools)
        self._reach("replied")
        steered = not calls and self._queue.has_steering
        return self._turn.receive(turn_inputs.Replied(send.attempt, expected, self._batch.context or 0, steered))

    def _failed(self, attempt: int, error: ModelError) -> Sequence[Action]:
        if self._turn.awaited == attempt:
            self._keep_partial("error", error)
            notes, error = left_out(self._ledger.transcript, error)
            self._batch.add(*notes)
        return self._turn.receive(self._failure(attempt, error))

    def _failure(self, attempt: int, error: ModelError) -> turn_inputs.Failed:
        return turn_inputs.Failed(attempt, error, random.random(), self.pause.failed(error))  # noqa: S311  (spreads retries)

    def _cancel_request(self) -> None:
        if self._request is not None:
            self._request.cancel()
        self._keep_partial("aborted")

    def _keep_partial(self, stop: str, error: ModelError | None = None) -> None:
        """Record what arrived of an interrupted reply: its text, but no calls, since they may be incomplete."""
        reply = self._sender.take()
        self._record_usage(reply, error)
        if reply is None:
            return
        text = reply.text()
        self._has_cut_reply = bool(text)
        # What the guards have not let through yet stays hidden: the transcript keeps it.
        seen = "" if self._sender.holds_text else None
        self._batch.reply(self._turn.step, [Text(text)] if text else [], stop, [], seen=seen)

    def _ask_again(self) -> None:
        """Say that a reply broke off: it stays in the history for people, and the model is asked without it."""
        if self._has_cut_reply:
            self._has_cut_reply = False
            self._batch.add(recovery.asked_again())

    async def _choose(self, switch: turn.Switch) -> None:
        choice = await ladder_of(self._plan).choose(switch.error)
        self._reports.put_nowait(partial(self._chosen, switch, choice))

    def _chosen(self, switch: turn.Switch, choice: NextModel | None) -> Sequence[Action]:
        if self._turn.awaited != switch.attempt:
            return ()
        self.pause.passed()
        if choice is not None:
            self._early_from = choice.opened.model.context_window * self._plan.compact_early_at
        items, told = switched(self.id, self._plan, self._ledger.transcript, switch, choice=choice)
        self._batch.add(*items)
        return self._turn.receive(told)

    async def _begin_pause(self, wait: turn.Wait) -> None:
        self._ask_again()
        await self._batch.commit()  # people see what came of the reply before they see that it is asked for again
        self._ledger.live([self.pause.begin(wait.number, wait.delay_s, self._ledger.label)])

    async def _wait(self, attempt: int) -> None:
        await self.pause.wait()
        self._tell(turn_inputs.Waited(attempt))

    # --- compaction -------------------------------------------------------------------------------------------

    async def _compact(self, attempt: int) -> None:
        try:
            summary = await self._summaries.get()
        except ModelError as error:
            self._reports.put_nowait(partial(self._not_compacted, attempt, error))
        else:
            self._reports.put_nowait(partial(self._compacted, attempt, summary))

    def _compacted(self, attempt: int, summary: Summary | None) -> Sequence[Action]:
        """`summary`: None when the early one that the run waited for did not come."""
        if self._turn.awaited == attempt and summary is not None:
            self.pause.passed()
            self._record_usage(None)
            self._batch.compact(compaction_record(summary, self._ledger.transcript))
        elif self._turn.awaited == attempt and not self._is_draining:
            return [turn.RequestCompaction(attempt)]
        return self._turn.receive(turn_inputs.CompactionDone(attempt))

    def _not_compacted(self, attempt: int, error: ModelError) -> Sequence[Action]:
        if self._turn.awaited == attempt:
            self._record_usage(None, error)
        return self._turn.receive(self._failure(attempt, error))

    # --- tool calls -------------------------------------------------------------------------------------------

    def _call_ended(self, key: str, outcome: ToolOutcome) -> None:
        self._reports.put_nowait(partial(self._finished, key, outcome))

    def _call_judged(self, key: str, verdict: Clearance) -> None:
        self._reports.put_nowait(partial(self._decided, key, verdict))

    def _decided(self, key: str, verdict: Clearance) -> Sequence[Action]:
        self._batch.add(*noted(verdict.notes))
        return [Launch([key])] if self._calls.decide(key, verdict) else ()

    def _finished(self, key: str, outcome: ToolOutcome) -> Sequence[Action]:
        self._reach("call ended")
        self._record_result(key, outcome)
        return self._turn.receive(turn_inputs.Finished(key))

    # --- records ----------------------------------------------------------------------------------------------

    def _record_result(self, key: str, outcome: ToolOutcome) -> None:
        self._plan.authorization.settled([key])
        record, event = self._calls.result(self.id, key, outcome)
        self._batch.add(Shown(record, [event]))

    def _record_usage(self, reply: Assembler | None, error: ModelError | None = None) -> None:
        """Record one row for each attempt, answered (`reply`) or not; without figures if the vendor sent none."""
        row = self._billing.bill(self._turn.step, error)
        if row is not None:  # else what is cancelled is the wait for the next attempt
            self._batch.bill(row, replied=reply is not None)
