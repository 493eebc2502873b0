"""A session's journal, folded: what the model sees, what waits, and what was left unfinished.

`apply` takes records in order, live and after a restart alike, so both give the same transcript. Provider history
is legal when no call is open: `closings` names the results that are missing otherwise, `unrepeatable` those of them
that a restart has to give at once (`docs/durability.md`, After a crash).
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from zotd.core import records
from zotd.core.records import AnyRecord, Input, Known
from zotd.wire.content import Block, Image, Message, Text, ToolCall, ToolResult

SUMMARY_HEAD = "Summary of the conversation so far:\n\n"
"""Begins the message that stands for what was compacted."""

INTERRUPTED = "interrupted, outcome unknown"
"""The result of a call whose tool was started and never answered (`docs/durability.md`)."""

NOT_RUN = "not run: the run ended before this call started"
"""The result of a call that never started."""

REPEATABLE = ("idempotent", "reconcile")
"""Replay classes of calls that are started again after a crash; `safe` ones leave no trace of having started."""

KNOWN = 256
"""Requests that a summary does not make forgotten; a client sends one again within seconds, not hundreds later."""

REFUSED_IMAGE = "[an image that the model's vendor refused; it is left out]"
"""Stands for an image of a request that was refused."""

CUT = ("error", "aborted")
"""How a reply stops that did not come whole; the end of its run follows as a note."""


class Transcript:
    """The fold. `messages` is what the model sees; each message keeps its identity while it is in there."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.waiting: dict[str, Input] = {}
        """Accepted inputs that have not started, first one first."""
        self.requests: dict[str, Known] = {}
        """By their ids: to know one that comes again after a restart."""
        self.held = False
        self.run: str | None = None
        """The run that the last records belong to."""
        self.run_open = False
        """It has begun and its end is not on record: it runs, or a crash cut it off."""
        self.in_flight: records.Attempt | None = None
        """The model request that was sent and of which neither a reply nor a figure is on record."""
        self.has_unknown = False
        """Of the calls of the last reply, one may or may not have happened."""
        self.approvals: dict[str, records.ApprovalRow] = {}
        """Questions to a person about calls that have no result yet, by their ids, oldest first."""
        self.decisions: dict[str, records.Decision] = {}
        """How they were decided, by the same ids."""
        self.shell: records.ShellStarted | None = None
        """A person's command that was started, and of which no result is on record."""
        self._open: dict[str, ToolCall] = {}
        self._started: dict[str, records.CallStarted] = {}
        self._is_cut = False
        """The last reply did not come whole."""
        self._was_cut = False
        """A crash cut the last run, or came before it, and none has begun since."""

    @property
    def open_calls(self) -> list[ToolCall]:
        """Calls without a result, in the model's order: they run, or wait for somebody who goes on."""
        return list(self._open.values())

    @property
    def started(self) -> Mapping[str, records.CallStarted]:
        """Those of them that are not safe to repeat and have started, with the arguments that they run with."""
        return self._started

    @property
    def interrupted(self) -> bool:
        """A crash cut something off that can go on, and nobody has gone on yet."""
        return self._was_cut and (self.can_resume or bool(self.waiting))

    @property
    def can_resume(self) -> bool:
        """The model was not done: a run without an input may go on from here."""
        return bool(self._open) or self._is_cut or bool(self.messages and self.messages[-1].role != "assistant")

    @property
    def has_new_images(self) -> bool:
        """No reply has followed some image: if the next request is refused, it may be what is refused."""
        return any(_has_images(message) for message in self.messages[self._answered :])

    @property
    def _answered(self) -> int:
        """How many messages there are up to the last reply."""
        roles = (message.role for message in reversed(self.messages))
        return len(self.messages) - next(
            (new for new, role in enumerate(roles) if role == "assistant"), len(self.messages)
        )

    def _leave_images_out(self) -> None:
        first = self._answered
        self.messages[first:] = [_without_images(m) if _has_images(m) else m for m in self.messages[first:]]

    def replace_messages(self, messages: list[Message]) -> list[Message]:
        """Let the model see these from now on, and return those that it saw; both lists are shared, not copied."""
        before, self.messages = self.messages, messages
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
            case records.Compaction():
                self._compact(record)
            case records.Clear():
                self._know(record.known)
                self._clear()
            case _:
                self._apply_other(record)

    def _apply_other(self, record: AnyRecord) -> None:
        """Those that change nothing of what the model sees."""
        match record:
            case records.UsageRow():
                self.in_flight = None
            case records.ShellStarted():
                self.shell = record
                self._remember(record)
            case records.ApprovalRow(call_id=call) if call in self._open:  # else an extension made it, and waits itself
                self.approvals[record.id] = record
            case records.Decision(approval=key) if key in self.approvals:
                self.decisions[key] = record
            case records.Note():
                self._note(record)
            case records.Interrupted(what="run" | "queue"):
                self._end()
                self._was_cut = True
            case records.RewindRow():
                self._settle()  # whoever folds has put the messages of then in the place of those of now
            case records.ForkRow():
                self._detach()
            case records.QueueOrder():
                self.waiting = {key: self.waiting[key] for key in record.order if key in self.waiting}
                self.held = record.held
            case _:
                pass  # tells people something, or is folded by whoever it is about

    def _note(self, record: records.Note) -> None:
        if record.refused:
            self._leave_images_out()
        if record.level in {"error", "info"}:  # after a `warn` the run goes on
            self._end()

    def known(self) -> list[Known]:
        """The newest requests, for a record that leaves behind those which brought them."""
        return list(self.requests.values())[-KNOWN:]

    def unrepeatable(self, time: str) -> list[records.CallResult]:
        """A result for every call that has started and must not start again; its outcome is unknown."""
        return [self._failed(call, time) for call in self._open.values() if not self._may_repeat(call.id)]

    def closings(self, time: str) -> list[records.CallResult]:
        """A result for every call that has none, in the order of the calls; apply them to make history legal."""
        return [self._failed(call, time) for call in self._open.values()]

    def _may_repeat(self, key: str) -> bool:
        started = self._started.get(key)
        return started is None or (started.within is None and started.replay in REPEATABLE)

    def _failed(self, call: ToolCall, time: str) -> records.CallResult:
        unknown = call.id in self._started
        return records.CallResult(
            time=time,
            run=self.run or "",
            call_id=call.id,
            name=call.name,
            is_error=True,
            content=[Text(INTERRUPTED if unknown else NOT_RUN)],
            unknown=unknown,
        )

    def _accept(self, record: Input) -> None:
        self.waiting[record.id] = record
        self._remember(record)

    def _remember(self, record: Input | records.ShellStarted) -> None:
        if record.request_id:
            self.requests[record.request_id] = Known(record.request_id, record.digest or "", record.id)

    def _know(self, known: Sequence[Known]) -> None:
        self.requests.update((one.request, one) for one in known if one.request not in self.requests)

    def _attempt(self, record: records.Attempt) -> None:
        self.run, self.run_open, self._was_cut = record.run, True, False
        if record.answered:
            return
        if record.resumes:
            self._drop_cut_reply()
            return
        if record.number > 1:
            self._drop_cut_reply()
        self.in_flight = record
        for key in ([record.input] if record.input else []) + record.steered:
            started = self.waiting.pop(key, None)
            if started is not None:
                self.messages.append(Message("user", started.content, started.time))
                self._is_cut = False

    def _drop_cut_reply(self) -> None:
        """The step is asked again: a model would take half a reply for a whole one, or refuse to go on from it."""
        if self._is_cut and self.messages and self.messages[-1].role == "assistant":
            self.messages.pop()
        self._is_cut = False

    def _reply(self, record: records.Reply) -> None:
        self.in_flight = None
        self._is_cut = record.stop in CUT
        if record.stop not in {"tool_use", *CUT}:
            self.run_open = False  # a cut one is followed by a note
        if not record.content:
            return
        self.has_unknown = False
        self.messages.append(Message("assistant", record.content, record.time))
        for block in record.content:
            if isinstance(block, ToolCall):
                self._open[block.id] = block

    def _start(self, record: records.CallStarted) -> None:
        key = record.within or record.call_id
        # Else no model waits for it: an extension began with it. One that led to another is known by that one: it is
        # not repeated, whatever its own class.
        if key in self._open and (key not in self._started or record.within is not None):
            self._started[key] = record

    def _result(self, record: records.CallResult) -> None:
        if self._open.pop(record.call_id, None) is None:
            return  # a second result would make the history illegal
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
        self.run_open = False
        self.in_flight = None

    def _compact(self, record: records.Compaction) -> None:
        self._know(record.known)
        kept = self.messages[-record.kept :] if record.kept else []
        self.messages = [Message("user", [Text(SUMMARY_HEAD + record.summary)], record.time), *kept]

    def _clear(self) -> None:
        self.messages = []
        self._settle()

    def _detach(self) -> None:
        """What waited, ran and was asked belongs to the session that this one was made of."""
        self.waiting, self.requests, self.held, self.run = {}, {}, False, None
        self.shell = None
        self._end()
        self._settle()

    def _settle(self) -> None:
        """No call is open, and nothing is left to go on with."""
        self._open.clear()
        self._started.clear()
        self.approvals.clear()
        self.decisions.clear()
        self._was_cut = self.has_unknown = self._is_cut = False


def _has_images(message: Message) -> bool:
    return any(
        isinstance(block, Image) or (isinstance(block, ToolResult) and any(isinstance(b, Image) for b in block.content))
        for block in message.content
    )


def _without_images(message: Message) -> Message:
    return replace(message, content=[_without_image(block) for block in message.content])


def _without_image(block: Block) -> Block:
    match block:
        case Image():
            return Text(REFUSED_IMAGE)
        case ToolResult():
            content = [Text(REFUSED_IMAGE) if isinstance(inner, Image) else inner for inner in block.content]
            return replace(block, content=content)
        case _:
            return block
