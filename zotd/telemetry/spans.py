"""Derives the spans of one session from its records, when they are committed (`docs/observability.md`).

    invoke_agent zot                    a run: from its first attempt to its `done`
        chat MODEL                      a step's request, with its retries as events; or a summary
        guard EXTENSION EVENT           an answer of a guard
        approval TOOL                   from the question to the decision
        execute_tool TOOL               a tool call, without the time before it was allowed
            execute_tool TOOL           a call that an extension made during it

Names and attributes follow the semantic conventions for generative AI; what they do not define is named `zot.*`. A span is
made when it is over, so a run that a crash cuts has no span until its session is opened again: then it gets one of its own,
which ends there.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

from zotd.core import records
from zotd.core.model_questions import BESIDE, SAMPLING, WEB_SEARCH
from zotd.core.run_watch import GuardAnswer, NestedCall
from zotd.core.transcript import Transcript
from zotd.ids import milliseconds
from zotd.ledger.ledger import Shown
from zotd.telemetry import content
from zotd.telemetry.figures import outcome_of
from zotd.telemetry.finished import AGENT, FINISH_REASONS, FinishedSpan, SpanEvent, Value, model, tool, usage
from zotd.telemetry.ids import VARIABLE, TraceParent, root_span_id, trace_id_of
from zotd.wire import events
from zotd.wire.content import Tokens

MAX_EVENTS = 128
"""Retries of one request that are events of its span; of a run that waits for hours, the first ones."""

NOT_RUN, TOOL_ERROR, INTERRUPTED = "not_run", "tool_error", "interrupted"
"""`error.type` of a tool call that did not run (denied, refused, aborted before it began), that failed, or that a crash
cut."""


class _Request(Struct):
    """The requests of one step, until one of them is answered or the run gives up."""

    attempt: records.Attempt
    start_ns: int
    row: records.UsageRow | None = None
    """How the last of them ended."""
    stop: str = ""
    events: list[SpanEvent] = field(default_factory=list)
    tried: int = 1
    read: list[content.Said] = field(default_factory=list)
    """What is new in the request, if content is wanted."""
    written: list[content.Said] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.row is not None and not self.row.failure


class _Run(Struct):
    id: str
    own: TraceParent
    parent: TraceParent | None
    start_ns: int
    provider: str
    model: str
    link: TraceParent | None = None
    tokens: Tokens = field(default_factory=Tokens)
    steps: int = 0
    failure: str = ""
    """Why the last request failed."""
    request: _Request | None = None
    heard: list[content.Said] = field(default_factory=list)
    """What the next request reads for the first time, if content is wanted."""


class SpanSink(Protocol):
    """Takes finished spans."""

    def put(self, span: FinishedSpan) -> None:
        """Send the span later; returns at once."""
        ...

    def is_sampled(self, trace_id: int, parent: TraceParent | None) -> bool:
        """Return whether spans of this trace are wanted."""
        ...


class SessionSpans:
    """The spans of one session."""

    def __init__(
        self,
        session: str,
        workspace: str,
        sink: SpanSink,
        *,
        environment: Callable[[], Mapping[str, str]],
        transcript: Callable[[], Transcript],
        has_content: bool,
    ) -> None:
        """Derive the spans of the session with this id.

        Args:
            session: id of the session.
            workspace: its working directory.
            sink: gets the finished spans.
            environment: returns the environment of its client, whose `TRACEPARENT` its runs join.
            transcript: returns its transcript, for approvals from before a restart.
            has_content: prompts, replies, arguments and results become attributes.
        """
        self._session, self._workspace, self._sink = session, workspace, sink
        self._environment, self._transcript, self._has_content = environment, transcript, has_content
        self._run: _Run | None = None
        self._approvals: dict[str, records.ApprovalRow] = {}
        """Questions that are not decided, by id."""
        self._args: dict[str, Mapping[str, object]] = {}
        """Arguments of calls that have no result yet, if content is wanted."""

    # --- what others ask ----------------------------------------------------------------------------------------------

    def traceparent(self, key: str) -> str:
        """Return the `traceparent` for what belongs to the call `key` of the current run; empty without a run."""
        return "" if self._run is None else str(self._run.own.child(key))

    def guarded(self, answer: GuardAnswer) -> None:
        """Add the answer of a guard to the current run."""
        if self._run is None:
            return
        attributes: dict[str, Value] = {
            "zot.extension": answer.extension,
            "zot.guard.event": answer.event,
            "zot.guard.outcome": answer.outcome,
        }
        if answer.tool_id:
            attributes["gen_ai.tool.call.id"] = answer.tool_id
        end_ns = int(answer.ended * 1e9)
        start_ns = end_ns - int(answer.took_s * 1e9)
        own = self._run.own.child(answer.key or f"{answer.extension} {answer.event} {answer.ended}")
        name = f"guard {answer.extension} {answer.event}"
        self._finish(FinishedSpan(name, own, self._run.own, start_ns, end_ns, attributes))

    def nested(self, call: NestedCall) -> None:
        """Add a call that an extension made."""
        if self._run is None:
            return
        own = self._run.own.child(call.key)
        parent = self._run.own.child(call.within) if call.within else self._run.own
        attributes = tool(self._session, call.tool, call.key)
        attributes["zot.extension"] = call.extension
        if call.is_error:
            attributes["error.type"] = TOOL_ERROR
        end_ns = int(call.ended * 1e9)
        start_ns = end_ns - int(call.took_s * 1e9)
        self._finish(FinishedSpan(f"execute_tool {call.tool}", own, parent, start_ns, end_ns, attributes))

    # --- records --------------------------------------------------------------------------------------------------

    def committed(self, items: Sequence[Shown]) -> None:
        """Derive spans from these records; a watcher (`Ledger.watchers`)."""
        for item in items:
            self._apply(item)
            if item.shows and isinstance(done := item.shows[-1], events.Done):
                self._end(item.record, done.run or "")
        if self._run is not None and self._run.request is not None and self._run.request.is_over:
            self._close_request(self._run)

    def _apply(self, item: Shown) -> None:
        match item.record:
            case records.Attempt(answered=False, covers=0, asked_by="") as attempt:
                self._attempt(attempt, item.shows)
            case records.UsageRow() as row if row.purpose in BESIDE:
                self._billed_beside(row)
            case records.UsageRow() as row:
                self._billed(row)
            case records.Reply() as reply:
                self._replied(reply)
            case records.CallStarted() as started if self._has_content:
                self._args[started.call_id] = started.args
            case records.CallResult() as result:
                self._called(result, item.shows)
            case records.ApprovalRow() as asked:
                self._approvals[asked.id] = asked
            case records.Decision() as decision:
                self._decided(decision)
            case _:
                pass

    def _attempt(self, attempt: records.Attempt, shows: Sequence[events.Event]) -> None:
        start_ns = _nanoseconds(attempt.time)
        run = self._run
        if run is None or run.id != attempt.run:
            run = self._run = self._begin(attempt, start_ns)
        if self._has_content:
            run.heard += [content.heard(event) for event in shows if isinstance(event, events.UserMessage)]
        if attempt.resumes or attempt.waits:
            return
        request = run.request
        if request is not None and _same(request.attempt, attempt):
            request.tried += 1
            if len(request.events) < MAX_EVENTS:
                retry: dict[str, Value] = {"zot.attempt": request.tried, "error.type": run.failure}
                request.events.append(SpanEvent("retry", start_ns, retry))
            return
        self._close_request(run)
        run.request = _Request(attempt, start_ns)
        if attempt.number:  # a summary reads all of it once more
            run.request.read, run.heard = run.heard, []
        run.steps = max(run.steps, attempt.step)

    def _billed(self, row: records.UsageRow) -> None:
        run = self._run
        if run is None or run.id != row.run or run.request is None:
            return
        request = run.request
        if request.tried == 1 and row.took_s is not None:
            request.start_ns = _nanoseconds(row.time) - int(row.took_s * 1e9)
        request.row = row
        run.failure = row.failure
        if row.tokens is not None:
            run.tokens += row.tokens

    def _billed_beside(self, row: records.UsageRow) -> None:
        """Add a request beside a run to it: an early summary, which may end after it, or one of a tool call."""
        if self._run is not None and self._run.id == row.run and row.tokens is not None:
            self._run.tokens += row.tokens
        if row.took_s is None:
            return  # it was not sent, or a crash has cut it
        root, end_ns = self._root(row.run), _nanoseconds(row.time)
        of_several = [row.time] if row.purpose in {SAMPLING, WEB_SEARCH} else []
        own = root.child("request", row.purpose, str(row.step), *of_several)
        start_ns = end_ns - int(row.took_s * 1e9)
        attributes = self._request_attributes(row)
        self._finish(FinishedSpan(f"chat {row.model}", own, root, start_ns, end_ns, attributes, is_client=True))

    def _replied(self, reply: records.Reply) -> None:
        run = self._run
        if run is None or run.request is None:
            return
        run.request.stop = reply.stop
        if self._has_content:
            run.request.written = [content.written(reply.content, FINISH_REASONS.get(reply.stop, reply.stop))]
            self._args.update(content.arguments(reply.content))

    def _called(self, result: records.CallResult, shows: Sequence[events.Event]) -> None:
        root = self._root(result.run)
        attributes = tool(self._session, result.name, result.call_id)
        for event in shows:
            if isinstance(event, events.ToolResultEvent) and event.extension:
                attributes["zot.extension"] = event.extension
        if result.unknown:
            attributes["error.type"] = INTERRUPTED
        elif result.is_error:
            attributes["error.type"] = TOOL_ERROR if result.took_s is not None else NOT_RUN
        if self._has_content:
            args = self._args.pop(result.call_id, {})
            attributes["gen_ai.tool.call.arguments"] = content.encoded(args)
            attributes["gen_ai.tool.call.result"] = content.encoded(content.parts(result.content))
            if self._run is not None:
                self._run.heard.append(content.answered(result))
        end_ns = _nanoseconds(result.time)
        start_ns = end_ns - int((result.took_s or 0.0) * 1e9)
        own = root.child(result.call_id)
        self._finish(FinishedSpan(f"execute_tool {result.name}", own, root, start_ns, end_ns, attributes))

    def _decided(self, decision: records.Decision) -> None:
        row = self._approvals.pop(decision.approval, None) or self._transcript().approvals.get(decision.approval)
        if row is None:
            return
        root = self._root(row.run)
        attributes: dict[str, Value] = {
            "gen_ai.tool.name": row.tool,
            "gen_ai.tool.call.id": row.call_id,
            "zot.approval.decision": decision.decision,
            "zot.approval.scope": decision.scope,
        }
        start_ns, end_ns = _nanoseconds(row.time), _nanoseconds(decision.time)
        own = root.child("approval", row.id)
        self._finish(FinishedSpan(f"approval {row.tool}", own, root, start_ns, end_ns, attributes))

    # --- runs -----------------------------------------------------------------------------------------------------

    def _begin(self, attempt: records.Attempt, start_ns: int) -> _Run:
        own, parent = self._identity(attempt.run)
        link = None if attempt.continues is None else self._identity(attempt.continues)[0]
        return _Run(attempt.run, own, parent, start_ns, attempt.provider, attempt.model, link)

    def _end(self, last: records.AnyRecord, key: str) -> None:
        end_ns = _nanoseconds(last.time)
        run = self._run
        if run is None or run.id != key:
            if not isinstance(last, records.Interrupted) or not (began_ms := milliseconds(key)):
                return
            # A crash has cut it, and with it what was known of it.
            own, parent = self._identity(key)
            run = _Run(key, own, parent, began_ms * 1_000_000, "", "", failure=INTERRUPTED)
        self._run = None
        self._args.clear()
        self._close_request(run)
        outcome = outcome_of(last)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": AGENT,
            "gen_ai.conversation.id": self._session,
            "zot.run.id": run.id,
            "zot.run.outcome": outcome,
            "zot.run.steps": run.steps,
            "zot.workspace": self._workspace,
            **model(run.provider, run.model),
            **usage(run.tokens),
        }
        if outcome in {"error", "cut"}:
            attributes["error.type"] = run.failure or ("_OTHER" if outcome == "error" else INTERRUPTED)
        name, start_ns = f"invoke_agent {AGENT}", run.start_ns
        self._finish(
            FinishedSpan(name, run.own, run.parent, start_ns, end_ns, attributes, link=run.link, is_child=False)
        )

    def _close_request(self, run: _Run) -> None:
        request, run.request = run.request, None
        if request is None or request.row is None:
            return
        row = request.row
        if row.took_s is None and not row.failure:
            return  # no request: a person has chosen what the model would have said
        attributes = self._request_attributes(row)
        if request.tried > 1:
            attributes["zot.request.attempts"] = request.tried
        if request.stop:
            attributes["gen_ai.response.finish_reasons"] = (FINISH_REASONS.get(request.stop, request.stop),)
        if self._has_content:
            attributes["gen_ai.input.messages"] = content.encoded(request.read)
            attributes["gen_ai.output.messages"] = content.encoded(request.written)
        own = run.own.child("request", row.purpose, str(row.step))
        name, end_ns = f"chat {row.model}", _nanoseconds(row.time)
        self._finish(
            FinishedSpan(
                name, own, run.own, request.start_ns, end_ns, attributes, is_client=True, events=request.events
            )
        )

    def _request_attributes(self, row: records.UsageRow) -> dict[str, Value]:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": self._session,
            "gen_ai.request.stream": True,
            **model(row.provider, row.model),
            "zot.request.purpose": row.purpose,
            "zot.run.step": row.step,
        }
        if not row.failure:
            attributes["gen_ai.response.model"] = row.answered_by or row.model
        if row.first_s is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = row.first_s
        if row.tokens is not None:
            attributes |= usage(row.tokens, row.reasoning)
        if row.failure:
            attributes["error.type"] = row.failure
        return attributes

    # --- inside ---------------------------------------------------------------------------------------------------

    def _root(self, run: str) -> TraceParent:
        return self._run.own if self._run is not None and self._run.id == run else self._identity(run)[0]

    def _identity(self, run: str) -> tuple[TraceParent, TraceParent | None]:
        """Return the span of a run, and its parent in the program that the client belongs to."""
        parent = TraceParent.parse(self._environment().get(VARIABLE, ""))
        trace_id = trace_id_of(run) if parent is None else parent.trace_id
        return TraceParent(trace_id, root_span_id(run), self._sink.is_sampled(trace_id, parent)), parent

    def _finish(self, span: FinishedSpan) -> None:
        if span.own.is_sampled:
            self._sink.put(span)


def _nanoseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000) * 1_000_000


def _same(one: records.Attempt, other: records.Attempt) -> bool:
    """Whether both ask the same model for the same: a fallback gets a span of its own."""
    asked = [(each.step, not each.number, each.provider, each.model) for each in (one, other)]
    return asked[0] == asked[1]
