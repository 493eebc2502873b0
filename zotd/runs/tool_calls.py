"""Runs the tool calls of one step: has them cleared, says what must be recorded first, gives every call a result.

A run that goes on after a crash begins with the calls that were left without one (`take_over`).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

from msgspec import Struct
from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.contributions.guards import Hooks
from zotd.core import records
from zotd.core.call_jail import CallJail
from zotd.core.closings import NOT_RUN
from zotd.core.model_questions import ModelQuestion, QuestionReply
from zotd.core.ports import Replay, Tool, ToolContext, ToolOutcome
from zotd.core.transcript import Transcript
from zotd.core.turn_inputs import RequestedCall
from zotd.exthost.guards import GuardRemark
from zotd.ids import new as new_id
from zotd.ledger.ledger import Ledger, Shown
from zotd.permissions.authorization import Authorization
from zotd.permissions.clearance import Clearance
from zotd.permissions.tool_questions import ask_person
from zotd.runs.context import RunContext
from zotd.runs.repeat import check_lease, known_outcome, repeat
from zotd.runs.result_guard import ResultGuard
from zotd.runs.sampling import RunSampling
from zotd.runs.search_bills import SearchBills
from zotd.wire import events
from zotd.wire.api import RunningCall
from zotd.wire.content import Image, ToolCall, ToolContent
from zotd.workspace.session_checkpoints import StepRecording

log = logging.getLogger(__name__)

ABORTED = "aborted by the user before it was done; what it had already done stays done"
NOT_STARTED = "not run: the user aborted first"
NO_OBJECT = "the arguments of {name} were not a JSON object; call it again with valid JSON"


class Launch(Struct, frozen=True):
    """These calls may run: the guards, if there are any, have nothing against it."""

    calls: Sequence[str]


def call_context(plan: RunContext, ledger: Ledger, key: str) -> ToolContext:
    """Return the context of the call with this id; its progress is shown live."""

    def progress(text: str) -> None:
        ledger.live([events.ToolProgress(key, text, session=ledger.label)])

    return plan.tool_context(key, progress)


class ToolCalls:
    """The calls of one run."""

    def __init__(
        self,
        run: str,
        plan: RunContext,
        ledger: Ledger,
        *,
        ended: Callable[[str, ToolOutcome], None],
        judged: Callable[[str, Clearance], None],
    ) -> None:
        """`ended` is called on the loop with each call's outcome, exactly once per call that was judged or started.

        `judged` is called with what the guards decided, which `decide` has to be told when it is recorded.
        """
        self._context = partial(call_context, plan, ledger)
        self._absent = plan.absent
        self._authorization = plan.authorization
        self._new_sampling = partial(RunSampling, run, plan, ledger)
        self._new_searches = partial(SearchBills, run, plan, ledger)
        self._ledger = ledger
        self._ended = ended
        self._judged = judged
        self._recording = StepRecording(run, plan.checkpoints, last_seq=lambda: ledger.row.seq)
        self._tools: Mapping[str, Tool] = {}
        self._calls: dict[str, ToolCall] = {}
        self._broken: frozenset[str] = frozenset()
        self._args: dict[str, dict[str, object]] = {}
        """Arguments of calls that a guard has changed, by call."""
        self._jails: dict[str, CallJail] = {}
        """What calls are confined to, by call; absent: to nothing."""
        self._operations: dict[str, str] = {}
        """The operation keys of calls that have one."""
        self._started: dict[str, records.CallStarted] = {}
        """How calls had started that a crash has cut, by call."""
        self._dropped: frozenset[str] = frozenset()
        """Calls that are not made, because the outcome of one before them is unknown."""
        self._known: dict[str, ToolOutcome] = {}
        """Outcomes that a crash has left without a decision about what was refused, by call."""
        self._undecided: set[str] = set()
        """Calls that have ended, and wait for that decision."""
        self._since: dict[str, float] = {}
        """When calls began to run, in seconds of the loop's clock."""
        self._took: dict[str, float] = {}
        """How long calls ran that have ended and are not recorded yet, in seconds."""
        self._cut: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._questions: dict[str, asyncio.Task[Clearance]] = {}

    def expect(
        self, calls: Sequence[ToolCall], broken: frozenset[str], tools: Mapping[str, Tool]
    ) -> list[RequestedCall]:
        """The calls of a reply, as the turn wants to know them; `broken` have arguments that are not JSON.

        `tools`: those that the model could choose from.
        """
        self._tools = tools
        self._calls = {call.id: call for call in calls}
        self._broken = broken
        self._args = {}
        self._jails = {}
        self._operations = {}
        self._started = {}
        self._dropped = frozenset()
        self._known = {}
        self._recording.begin_step(sorted({call.name for call in calls if not self._is_safe(call)}))
        return [RequestedCall(call.id, self._is_parallel(call)) for call in calls]

    def take_over(self, transcript: Transcript, tools: Mapping[str, Tool]) -> list[RequestedCall]:
        """The same for the calls that a run before this one has left without a result.

        Those that had started are repeated as their tools allow. When it is not known of one whether it happened, the
        others that change something are not made: they were meant to follow it.
        """
        calls = transcript.open_calls
        expected = self.expect(calls, frozenset(), tools)
        self._started = dict(transcript.started)
        self._known = {key: known_outcome(row) for key, row in transcript.ended.items()}
        if transcript.has_unknown:
            self._drop_new()
        return expected

    async def record_end(self) -> None:
        """Return when the files are recorded as the calls have left them, or that has failed."""
        await self._recording.end()

    # --- authorization ----------------------------------------------------------------------------------------

    def judge(self, ids: Sequence[str], authorization: Authorization, tasks: asyncio.TaskGroup) -> list[str]:
        """Have these calls cleared side by side; returns those about which there is nothing to ask."""
        settled: list[str] = []
        for key in ids:
            call = self._calls[key]
            tool = self._tools.get(call.name)
            if tool is None or key in self._broken or key in self._dropped or key in self._known:
                settled.append(key)
                continue
            started = self._started.get(key)
            check = authorization.again(tool, started.args) if started else authorization.clear(key, tool, call.args)
            task = tasks.create_task(check, name=f"authorization of {key}")
            self._questions[key] = task
            task.add_done_callback(partial(self._answered, key))
        return settled

    def decide(self, key: str, verdict: Clearance) -> bool:
        """Whether the call may start, with the arguments as cleared; if not, it gets its outcome."""
        if key in self._cut:  # between the answer and now
            self._ended(key, ToolOutcome.error(NOT_STARTED))
        elif verdict.is_blocked:
            self._ended(key, ToolOutcome.error(verdict.reason))
        else:
            self._args[key] = verdict.value
            if verdict.jail is not None:
                self._jails[key] = verdict.jail
            return True
        return False

    # --- running ----------------------------------------------------------------------------------------------

    def only_ask(self, questions: int) -> bool:
        """Return True if that many calls wait for people, and no other call runs or is before a guard."""
        is_idle = self._undecided.issuperset(self._tasks)
        return is_idle and len(self._questions) + len(self._undecided) == questions > 0

    def started(self, run: str, ids: Sequence[str]) -> list[records.CallStarted]:
        """What has to be on disk before these calls start: one record for each that is not safe to repeat."""
        found: list[records.CallStarted] = []
        for call in (self._calls[key] for key in ids):
            tool = self._tools.get(call.name)
            is_new = call.id not in self._started and call.id not in self._dropped  # else it is on record, or not made
            if tool is not None and is_new and call.id not in self._broken and tool.replay is not Replay.SAFE:
                operation = operation_key(tool)
                if operation is not None:
                    self._operations[call.id] = operation
                record = records.CallStarted(
                    time=rfc3339(),
                    run=run,
                    call_id=call.id,
                    name=call.name,
                    args=self._args.get(call.id, call.args),
                    replay=tool.replay,
                    operation_key=operation,
                )
                found.append(record)
        return found

    def are_brief(self, ids: Sequence[str]) -> bool:
        """Whether these calls are likely to end at once: of built-in tools that only read, or not made at all."""
        tools = (self._tools.get(self._calls[key].name) for key in ids)
        return all(tool is None or (tool.replay is Replay.SAFE and tool.extension is None) for tool in tools)

    def named(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """These calls, each with the name of its tool."""
        return [(key, self._calls[key].name) for key in ids]

    def start(
        self,
        ids: Sequence[str],
        tasks: asyncio.TaskGroup,
        *,
        hooks: Hooks | None,
        noted: Callable[[Sequence[GuardRemark]], None],
    ) -> None:
        """Run these calls side by side; guards of `hooks` are asked about their results, `noted` is told what they did."""
        guard = ResultGuard(hooks, noted) if hooks is not None and hooks.concerns("tool_result") else None
        now = asyncio.get_running_loop().time()
        for key in ids:
            self._since[key], call = now, self._calls[key]
            task = tasks.create_task(self._call(call, guard if self._is_made(call) else None), name=f"call {key}")
            self._tasks[key] = task
            # A task that is cancelled before its first step never runs a line of its own.
            task.add_done_callback(partial(self._tell_cut, key))

    def running(self) -> list[RunningCall]:
        """The calls that run now, and for how long."""
        now = asyncio.get_running_loop().time()
        return [RunningCall(key, round(now - self._since[key], 3)) for key in self._tasks]

    def cut(self, ids: Sequence[str]) -> None:
        """End these calls now; each still gets its outcome."""
        for key in ids:
            question, task = self._questions.pop(key, None), self._tasks.get(key)
            self._cut.add(key)
            if question is not None:
                question.cancel()
                self._ended(key, ToolOutcome.error(NOT_STARTED))
            elif task is not None:  # else it has ended, and its outcome is on its way to the turn
                task.cancel()

    def result(self, run: str, key: str, outcome: ToolOutcome) -> tuple[records.CallResult, events.ToolResultEvent]:
        """The record of a call's outcome, and the event that shows it."""
        if outcome.state == "unknown":
            self._drop_new()
        call = self._calls[key]
        record = records.CallResult(
            time=rfc3339(),
            run=run,
            call_id=key,
            name=call.name,
            is_error=outcome.is_error,
            content=outcome.content,
            unknown=outcome.state == "unknown",
            took_s=self._took.pop(key, None),
        )
        tool = self._tools.get(call.name)
        shows = events.ToolResultEvent(
            key,
            outcome.is_error,
            shown(outcome),
            name=call.name,
            extension=tool.extension if tool else None,
            time=record.time,
        )
        return record, shows

    def _drop_new(self) -> None:
        new = (call for call in self._calls.values() if call.id not in self._started)
        self._dropped = frozenset(call.id for call in new if not self._is_safe(call))

    def _is_made(self, call: ToolCall) -> bool:
        return call.name in self._tools and call.id not in self._broken and call.id not in self._dropped

    def _is_parallel(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is None or tool.parallel

    def _is_safe(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and tool.replay is Replay.SAFE

    async def _call(self, call: ToolCall, guard: ResultGuard | None) -> None:
        # Told here and not when the task is done, which is an iteration of the event loop later.
        outcome: ToolOutcome | None = None
        try:
            outcome = self._known.get(call.id) or await self._run(call)
            if outcome.closed:
                outcome = await self._decided(call, outcome)
            if guard is not None:
                outcome = await guard.reviewed(call.id, call.name, self._args.get(call.id, call.args), outcome)
        finally:
            self._tell(call.id, ToolOutcome.error(ABORTED) if outcome is None else outcome)

    async def _decided(self, call: ToolCall, outcome: ToolOutcome) -> ToolOutcome:
        started = self._started.get(call.id)
        args = self._args.get(call.id, call.args) if started is None else started.args
        self._undecided.add(call.id)
        try:
            return await self._authorization.beyond(call.id, args, outcome)
        finally:
            self._undecided.discard(call.id)

    def has_known_outcome(self, key: str) -> bool:
        """Return whether the call had ended before a restart, and only waits for a decision."""
        return key in self._known

    def _context_of(self, key: str) -> ToolContext:
        return replace(
            self._context(key),
            jail=self._jails.get(key),
            operation_key=self._operations.get(key),
            check_lease=partial(check_lease, self._ledger),
            ask=partial(ask_person, self._authorization, key),
            ask_model=partial(self._ask_model, key),
            pay_search=lambda engine, query: self._searches.paid(key, engine, query),
            web=partial(self._authorization.web, key, self._calls[key].name),
        )

    @cached_property
    def _sampling(self) -> RunSampling:
        return self._new_sampling()  # few runs have a call that asks

    @cached_property
    def _searches(self) -> SearchBills:
        return self._new_searches()

    async def _ask_model(self, key: str, question: ModelQuestion) -> QuestionReply:
        return await self._sampling.answer(key, question)

    async def _run(self, call: ToolCall) -> ToolOutcome:
        if call.id in self._dropped:
            return ToolOutcome.error(NOT_RUN)
        tool = self._tools.get(call.name)
        if tool is None and call.id not in self._started:
            names = ", ".join(sorted(self._tools)) or "none"
            reason = self._absent(call.name) or f'unknown tool "{call.name}"'
            return ToolOutcome.error(f"{reason}; the tools here are: {names}")
        if call.id in self._broken:
            return ToolOutcome.error(NO_OBJECT.format(name=call.name))
        if not self._is_safe(call):
            await self._recording.before_change()
        try:
            if call.id in self._started:
                return await repeat(tool, self._started[call.id], self._context_of(call.id), self._ledger)
            assert tool is not None
            if self._ledger.journal.check_lease is not None and not self._is_safe(call):
                check_lease(self._ledger)  # last, because the process may have been stopped for a while
            return await tool.run(self._args.get(call.id, call.args), self._context_of(call.id))
        except Exception as error:  # a tool's fault must cost this call only
            if self._ledger.failure is not None:
                raise
            log.exception("tool %s failed", call.name)
            return ToolOutcome.error(f"{call.name} failed inside zot: {type(error).__name__}; see the daemon's log")

    def _answered(self, key: str, task: asyncio.Task[Clearance]) -> None:
        if self._questions.pop(key, None) is not None and not task.cancelled() and task.exception() is None:
            self._judged(key, task.result())

    def _tell(self, key: str, outcome: ToolOutcome) -> None:
        del self._tasks[key]
        self._recording.end_call()
        self._took[key] = round(asyncio.get_running_loop().time() - self._since.pop(key), 4)
        self._ended(key, outcome)

    def _tell_cut(self, key: str, task: asyncio.Task[None]) -> None:
        if task.cancelled() and key in self._tasks:
            self._tell(key, ToolOutcome.error(ABORTED))


def operation_key(tool: Tool) -> str | None:
    """A new key for a call of this tool, by which a repetition is known; None: it would not be repeated as such."""
    return new_id("o") if tool.replay in {Replay.IDEMPOTENT, Replay.RECONCILE} else None


def start_events(ids: Sequence[str], session: str | None) -> list[events.ToolStart]:
    """The events that show that these calls run; none on stdio (`session` is None), where the original sends none."""
    return [] if session is None else [events.ToolStart(key, session=session) for key in ids]


def shown(outcome: ToolOutcome) -> ToolContent:
    """The outcome's content as clients see it: images as byte counts."""
    return [Image(block.mime_type, block.bytes) if isinstance(block, Image) else block for block in outcome.content]


def cut_results(found: Sequence[records.CallResult]) -> list[Shown]:
    """The results of calls that were cut, with the events that show them."""
    return [
        Shown(result, [events.ToolResultEvent(result.call_id, True, result.content, name=result.name)])
        for result in found
    ]
