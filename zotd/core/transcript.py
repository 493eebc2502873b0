"""A session's journal, folded: what the model sees, what waits, and what was left unfinished.

`apply` takes records in order, live and after a restart alike, so both give the same transcript. Provider history
is legal at all times but while calls run: `repairs` names the results that are missing then.
"""

from zotd.core import records
from zotd.core.records import AnyRecord, Input
from zotd.wire.content import Message, Text, ToolCall, ToolResult

SUMMARY_HEAD = "Summary of the conversation so far:\n\n"
"""Begins the message that stands for what was compacted."""

INTERRUPTED = "interrupted, outcome unknown"
"""The result of a call whose tool was started and never answered (`docs/durability.md`)."""

NOT_RUN = "not run: the run ended before this call started"
"""The result of a call that never started."""


class Transcript:
    """The fold. `messages` is what the model sees; each message keeps its identity while it is in there."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.waiting: dict[str, Input] = {}
        """Accepted inputs that have not started, first one first."""
        self.requests: dict[str, Input] = {}
        """Inputs by the id of the request that brought them, to know one that comes again after a restart."""
        self.held = False
        self.run: str | None = None
        """The run that the last records belong to."""
        self.run_open = False
        """It has begun and its end is not on record: it runs, or a crash cut it off."""
        self._open: dict[str, ToolCall] = {}
        self._started: set[str] = set()

    def apply(self, record: AnyRecord) -> None:
        """Fold one record."""
        match record:
            case records.Input():
                self._accept(record)
            case records.Attempt():
                self._attempt(record)
            case records.Reply():
                self._reply(record)
            case records.CallStarted():
                self._start(record.within or record.call_id)
            case records.CallResult():
                self._result(record)
            case records.Compaction():
                self._compact(record)
            case records.Clear():
                self.messages = []
                self._open.clear()
            case records.Note(level="error" | "info") | records.Interrupted():  # `warn` is a guard's: the run goes on
                self.run_open = False
            case records.QueueOrder():
                self.waiting = {key: self.waiting[key] for key in record.order if key in self.waiting}
                self.held = record.held
            case _:
                pass  # tells people something, or is folded by whoever it is about

    def repairs(self, time: str) -> list[records.CallResult]:
        """A result for every call that has none, in the order of the calls; apply them to make history legal."""
        return [
            records.CallResult(
                time=time,
                run=self.run or "",
                call_id=call.id,
                name=call.name,
                is_error=True,
                content=[Text(INTERRUPTED if call.id in self._started else NOT_RUN)],
            )
            for call in self._open.values()
        ]

    def _accept(self, record: Input) -> None:
        self.waiting[record.id] = record
        if record.request_id:
            self.requests[record.request_id] = record

    def _attempt(self, record: records.Attempt) -> None:
        self.run, self.run_open = record.run, True
        if record.input is not None and not record.answered:
            started = self.waiting.pop(record.input, None)
            if started is not None:
                self.messages.append(Message("user", started.content, started.time))

    def _reply(self, record: records.Reply) -> None:
        if record.stop not in {"tool_use", "error", "aborted"}:
            self.run_open = False  # the latter two are followed by a note
        if not record.content:
            return
        self.messages.append(Message("assistant", record.content, record.time))
        for block in record.content:
            if isinstance(block, ToolCall):
                self._open[block.id] = block

    def _start(self, key: str) -> None:
        if key in self._open:  # else no model waits for it: an extension began with it
            self._started.add(key)

    def _result(self, record: records.CallResult) -> None:
        if self._open.pop(record.call_id, None) is None:
            return  # a second result would make the history illegal
        self._started.discard(record.call_id)
        block = ToolResult(record.call_id, record.is_error, record.content)
        self.messages.append(Message("tool", [block], record.time))

    def _compact(self, record: records.Compaction) -> None:
        kept = self.messages[-record.kept :] if record.kept else []
        self.messages = [Message("user", [Text(SUMMARY_HEAD + record.summary)], record.time), *kept]
