"""State of a session, computed from its records: what the model sees, the queue, and unfinished work.

`apply` takes records in order, live and after a restart, so both yield the same transcript. Vendors accept the messages
only if no call is open: `core.closings` makes the missing results.
"""

from collections.abc import Mapping, Sequence

from zotd.core import early_summary, model_questions, records
from zotd.core.caching import CacheTrace, MissReason
from zotd.core.fallback import CurrentFallback
from zotd.core.images import has_images, without_images
from zotd.core.records import AllowedTools, AnyRecord, Input, JobEnded, Known, PlanChange
from zotd.wire.content import Message, Text, ToolCall, ToolResult, with_notes

SUMMARY_HEAD = "Summary of the conversation so far:\n\n"
"""Beginning of the message that replaces compacted messages."""

KNOWN = 256
"""Number of request ids that survive a compaction: clients repeat a request within seconds, not after hundreds of others."""

CUT = ("error", "aborted")
"""`stop` of an incomplete reply; a note with the end of its run follows."""


class Transcript:
    """State of a session. `messages` is what the model sees; a message keeps its identity as long as it is in the list.

    Models rely on the identity: they cache the encoding of each message.
    """

    allowed_tools: AllowedTools | None = None
    """What the last run may call that began with an input; None: whatever the session allows."""
    unattended: str | None = None
    """`records.Input.unattended` of that input."""
    opening: records.Opening | None = None
    """The calls that this run begins with, until they are on record."""
    agent_session: records.AgentSession | None = None
    """The session of the other agent that runs the turns; None: it has none that knows this conversation."""
    plan_news: PlanChange | None = None
    """What the model reads about the plan with its next request."""
    run: str | None = None
    """Id of the run of the last records."""
    run_open = False
    """The run has begun and has no recorded end: it is running, or a crash cut it."""
    held = False
    """The queue waits for a person to go on."""
    in_flight: records.Attempt | None = None
    """The model request that was sent and has neither a recorded reply nor recorded usage."""
    has_unknown = False
    """Whether a call of the last reply may or may not have taken effect."""
    shell: records.ShellStarted | None = None
    """A started user command without a recorded result."""
    told_date = ""
    """The last day that the model was told with an input; empty: none, or the conversation was shortened since."""
    _is_answered = False
    """The reply to the request in flight has begun."""
    _is_cut = False
    """The last reply is incomplete."""
    _was_cut = False
    """A crash has cut the last run or the queue, and no run has begun since."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.waiting: dict[str, Input] = {}
        """Accepted inputs that have not started, in the order of the queue."""
        self.requests: dict[str, Known] = {}
        """Request ids, to recognise a request that a client repeats after a restart."""
        self.approvals: dict[str, records.ApprovalRow] = {}
        """Approval requests for calls without a result, by id, oldest first."""
        self.decisions: dict[str, records.Decision] = {}
        """Decisions on these requests, by the same ids."""
        self.job_news: list[JobEnded] = []
        """What the model reads about jobs with its next request."""
        self.beside: dict[str, records.Attempt] = {}
        """Requests of a tool call and of a person that were sent and have no recorded usage, by the purpose of that."""
        self.fallback = CurrentFallback()
        """The model that is asked instead of the session's own."""
        self.cache = CacheTrace()
        """What the model's vendor has cached of it."""
        self.early = early_summary.EarlySummary()
        """The summary that is made before it is needed."""
        self._open: dict[str, ToolCall] = {}
        self._started: dict[str, records.CallStarted] = {}

    @property
    def rest(self) -> str:
        """State of the session when no run does; a restart looks into it because of what waits or was requested."""
        if self.early.sent is not None or model_questions.SIDE_QUESTION in self.beside:
            return "running"
        return "held" if self.waiting else "idle"

    @property
    def open_calls(self) -> list[ToolCall]:
        """Calls without a result, in the model's order: they are running, or wait for the session to be resumed."""
        return list(self._open.values())

    @property
    def has_open_calls(self) -> bool:
        """Whether a call has no result."""
        return bool(self._open)

    @property
    def started(self) -> Mapping[str, records.CallStarted]:
        """Open calls that have started and are not `safe`, with the arguments they run with."""
        return self._started

    @property
    def awaits_reply(self) -> bool:
        """Whether a request for a reply was sent, and no record says that the reply has begun."""
        sent = self.in_flight
        return sent is not None and sent.number > 0 and not self._is_answered

    @property
    def interrupted(self) -> bool:
        """Whether a crash has cut something that can be resumed and has not been resumed yet."""
        return self._was_cut and (self.can_resume or bool(self.waiting))

    @property
    def can_resume(self) -> bool:
        """Whether a run without an input may continue here, because the model had not finished."""
        return bool(self._open) or self._is_cut or bool(self.messages and self.messages[-1].role != "assistant")

    @property
    def has_new_images(self) -> bool:
        """Whether an image has no reply after it yet, so that it may be the reason if the next request is refused."""
        return any(has_images(message) for message in self.messages[self._answered :])

    @property
    def _answered(self) -> int:
        """Number of messages up to and including the last reply."""
        roles = (message.role for message in reversed(self.messages))
        return len(self.messages) - next(
            (new for new, role in enumerate(roles) if role == "assistant"), len(self.messages)
        )

    def _leave_images_out(self) -> None:
        first = self._answered
        self.messages[first:] = [without_images(m) if has_images(m) else m for m in self.messages[first:]]

    def replace_messages(
        self, messages: list[Message], allowed: AllowedTools | None = None, news: PlanChange | None = None
    ) -> tuple[list[Message], AllowedTools | None, PlanChange | None]:
        """Replace what the model sees, `allowed_tools` and `plan_news`, and return them. No list is copied: `Fold` puts it back."""
        before = self.messages, self.allowed_tools, self.plan_news
        self.messages, self.allowed_tools, self.plan_news = messages, allowed, news
        return before

    def apply(self, record: AnyRecord) -> None:
        """Update the transcript with the next record; records must come in their order."""
        match record:
            case records.Input():
                self._accept(record)
            case records.Attempt():
                self._attempt(record)
            case records.Reply():
                self._reply(record)
            case records.CallStarted():
                self._start(record)
            case records.CallResult():
                self._result(record)
            case records.ShellResult():
                self._show_shell(record)
            case records.FileRestore(content=content) if content:
                self.messages.append(Message("user", content, record.time))
            case records.Compaction():
                self._compact(record)
            case records.Clear():
                self._know(record.known)
                self._clear()
            case _:
                self._apply_other(record)

    def _apply_other(self, record: AnyRecord) -> None:
        """Apply records that do not change what the model sees."""
        match record:
            case records.UsageRow():
                self._bill(record)
            case records.ShellStarted():
                self.shell = record
                self._remember(record)
            case records.ApprovalRow(call_id=call) if call in self._open:  # others are for nested calls of extensions
                self.approvals[record.id] = record
            case records.Decision(approval=key) if key in self.approvals:
                self.decisions[key] = record
            case records.Note():
                self._note(record)
            case records.ModelSwitch() | records.ConfigRecord() | PlanChange() | JobEnded() | records.AgentSession():
                self._choose(record)
            case records.Interrupted(what="run" | "queue"):
                self._end()
                self._was_cut = True
            case records.RewindRow() | records.ForkRow():
                self._branch(record)
            case records.QueueOrder():
                self.waiting = {key: self.waiting[key] for key in record.order if key in self.waiting}
                self.held = record.held
            case _:
                pass  # for people only, or applied by another part of the session

    def _bill(self, record: records.UsageRow) -> None:
        if record.purpose == early_summary.PURPOSE:
            self.early.end(record)
        elif record.purpose in model_questions.BESIDE:
            self.beside.pop(record.purpose, None)
        else:
            self.in_flight = None
        self.cache.apply(record)

    def _branch(self, record: records.RewindRow | records.ForkRow) -> None:
        self.agent_session = None
        if isinstance(record, records.ForkRow):
            self._detach()
        else:  # the caller has replaced `messages` with those of the target
            self._settle()
            self._shortened(MissReason.REWIND, self.messages)

    def _choose(
        self, record: records.ModelSwitch | records.ConfigRecord | PlanChange | JobEnded | records.AgentSession
    ) -> None:
        if isinstance(record, records.ModelSwitch):
            self.fallback.apply(record)
        elif isinstance(record, records.AgentSession):
            self.agent_session = record
        elif isinstance(record, PlanChange):
            self.plan_news = record if record.note else None
        elif isinstance(record, JobEnded):
            self.job_news += [record] if record.note else []
        else:
            self.early.configured(record.settings)
            self.fallback.configured(record.settings)

    def _note(self, record: records.Note) -> None:
        if record.refused:
            self._leave_images_out()
        if record.level in {"error", "info"}:  # after a `warn` the run continues
            self._end()

    def known(self) -> list[Known]:
        """Return the newest request ids, to be stored in a record that makes earlier records unnecessary."""
        return list(self.requests.values())[-KNOWN:]

    @property
    def ended(self) -> Mapping[str, records.ApprovalRow]:
        """Open calls that have ended, and the question that their result waits for."""
        return {row.call_id: row for row in self.approvals.values() if row.result is not None}

    def _accept(self, record: Input) -> None:
        self.waiting[record.id] = record
        if record.request_id:
            self._remember(record)

    def _remember(self, record: Input | records.ShellStarted) -> None:
        if record.request_id:
            self.requests[record.request_id] = Known(record.request_id, record.digest or "", record.id)

    def _know(self, known: Sequence[Known]) -> None:
        self.requests.update((one.request, one) for one in known if one.request not in self.requests)

    def _attempt(self, record: records.Attempt) -> None:
        if record.covers or record.asked_by:  # it changes nothing about the run, which goes on
            self._ask_beside(record)
            return
        self.run, self.run_open, self._was_cut = record.run, True, False
        self._is_answered = record.answered
        if record.answered:  # the request itself was recorded before
            return
        if record.resumes:  # no request is sent by this record
            self._drop_cut_reply()
            return
        if record.number > 1:  # a retry; the attempt before it may have recorded an incomplete reply
            self._drop_cut_reply()
        if not record.waits:
            self.in_flight = record
        if self.job_news or self.plan_news is not None:
            self._tell_news()
        date = record.date
        for key in ([record.input] if record.input else []) + record.steered:
            started = self.waiting.pop(key, None)
            if started is not None:
                if key == record.input:
                    self.allowed_tools, self.unattended = started.allowed_tools, started.unattended
                    self.opening = started.opening
                notes = record.context if key == record.input else "", date and records.DATE_NOTE.format(date=date)
                self.messages.append(Message("user", with_notes(started.content, *notes), started.time))
                date = ""
                self._is_cut = False
        self.told_date = record.date or self.told_date

    def _tell_news(self) -> None:
        if self.job_news:
            told = [Text(one.note) for one in self.job_news]
            self.messages.append(Message("user", [*told], self.job_news[-1].time))
            self.job_news = []
        if (news := self.plan_news) is not None:
            self.messages.append(Message("user", [Text(news.note)], news.time))
            self.plan_news = None
        self._is_cut = False

    def _ask_beside(self, record: records.Attempt) -> None:
        if record.covers:
            self.early.begin(record)
        else:
            self.beside[model_questions.purpose_of(record.asked_by)] = record

    def _drop_cut_reply(self) -> None:
        """Remove an incomplete reply before a retry: a model would take it for complete, or refuse to continue it."""
        if self._is_cut and self.messages and self.messages[-1].role == "assistant":
            self.messages.pop()
        self._is_cut = False

    def _reply(self, record: records.Reply) -> None:
        self.in_flight = self.opening = None
        self._is_cut = record.stop in CUT
        if record.stop not in {"tool_use", *CUT}:
            self.run_open = False  # an incomplete reply does not end the run; its note does
        if not record.content:  # vendors refuse messages without content
            return
        self.has_unknown = False
        self.messages.append(Message("assistant", record.content, record.time))
        for block in record.content:
            if isinstance(block, ToolCall):
                self._open[block.id] = block

    def _start(self, record: records.CallStarted) -> None:
        key = record.within or record.call_id
        # Calls that an extension makes on its own are not open here: no model waits for them. A nested call (`within`)
        # marks the outer call as started, so that it is not repeated, whatever its own class.
        if key in self._open and (key not in self._started or record.within is not None):
            self._started[key] = record

    def _result(self, record: records.CallResult) -> None:
        if self._open.pop(record.call_id, None) is None:
            return  # vendors refuse a second result of a call
        self._started.pop(record.call_id, None)
        self.has_unknown |= record.unknown
        for key in [key for key, row in self.approvals.items() if row.call_id == record.call_id]:
            del self.approvals[key]
            self.decisions.pop(key, None)
        block = ToolResult(record.call_id, record.is_error, record.content)
        self.messages.append(Message("tool", [block], record.time))

    def _show_shell(self, record: records.ShellResult) -> None:
        self.shell = None
        if record.context:
            self.messages.append(Message("user", record.content, record.time))

    def _end(self) -> None:
        self.run_open, self.in_flight = False, None

    def _compact(self, record: records.Compaction) -> None:
        self._know(record.known)
        self.allowed_tools = record.allowed_tools
        kept = self.messages[-record.kept :] if record.kept else []  # `[-0:]` would be all of them
        self.messages = [Message("user", [Text(SUMMARY_HEAD + record.summary)], record.time), *kept]
        self._shortened(MissReason.COMPACTION, kept)

    def _shortened(self, reason: MissReason, kept: Sequence[Message]) -> None:
        """The model no longer sees everything that it saw, maybe not what day it is either."""
        self.told_date = ""
        self.cache.shorten(reason, kept)
        self.early.replaced()

    def _clear(self) -> None:
        self.messages, self.allowed_tools, self.plan_news, self.agent_session = [], None, None, None
        self.told_date, self.cache = "", CacheTrace()
        self.early.replaced()
        self._settle()

    def _detach(self) -> None:
        """Forget the queue, the run and the approvals of a fork's origin: they belong to that session."""
        self.waiting, self.requests, self.held, self.run = {}, {}, False, None
        self.shell, self.beside, self.fallback = None, {}, CurrentFallback()
        self.job_news = []
        self.early.disowned()
        self._end()
        self._settle()

    def _settle(self) -> None:
        """Forget open calls and everything that could be resumed."""
        self.opening = None
        self._open.clear()
        self._started.clear()
        self.approvals.clear()
        self.decisions.clear()
        self._was_cut = self.has_unknown = self._is_cut = False
