"""Converts the events of a session to updates for an editor.

    Updates.of(event) -> [update | Remark, ...]

Deltas are forwarded as they arrive. The committed message after them is authoritative: text of it that was not shown yet,
because a connection was lost or a guard held it back, is sent then.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from zotd.bridges.acp import calls, shown_terminals
from zotd.client import model_switch
from zotd.client.asking import FILES, NETWORK, QUESTION
from zotd.wire import events
from zotd.wire.acp import (
    AgentMessageChunk,
    AgentThoughtChunk,
    CallContent,
    Diff,
    PlanEntry,
    PlanUpdate,
    TerminalContent,
    TextBlock,
    TextContent,
    ToolCallStart,
    ToolCallUpdate,
    Update,
    UserMessageChunk,
)
from zotd.wire.content import Block, Image, Message, Text, ToolCall, ToolResult
from zotd.wire.plan import ACTIVE, DONE, Plan


@dataclass(frozen=True, slots=True)
class Remark:
    """A line for the person that is not part of the conversation."""

    severity: str
    """`info`, `warning` or `error`; editors without notices get the latter two as a message."""
    text: str


CUT = "the reply was cut off here; it starts again when the run continues"
"""Replaces the text of the event, which repeats the partial reply that the editor already has."""


LONG_PAUSE_S = 5.0
"""Shortest pause before another attempt at the model that every editor is told of; a shorter one looks like a slow reply."""


@dataclass(slots=True)
class _Known:
    """State of a call that was sent to the editor."""

    output: str = ""
    """The newest part of what it has said."""
    has_terminal: bool = False
    """It has a terminal that we fill."""
    terminal: TerminalContent | None = None
    """The terminal of the editor in which it runs."""
    diffs: Sequence[TextContent | Diff] = ()


@dataclass(slots=True)
class Updates:
    """Tracks what one editor has received of one session, and converts events accordingly."""

    place: calls.PathResolver
    shows_terminals: bool = False
    """The editor shows terminals that we fill."""
    _streamed: str = ""
    """Text of the current reply that was sent."""
    _is_writing: bool = False
    """The model is writing a reply that is not committed yet."""
    _questions: dict[str, str] = field(default_factory=dict)
    """Calls with an open question, by approval."""
    _calls: dict[str, _Known] = field(default_factory=dict)
    """Calls without a result, by id."""
    _retried: str = ""
    """Why the model is asked again and again, as every editor was told; empty: it is not."""

    def of(self, event: events.AnyEvent) -> Iterable[Update | Remark]:
        """Return the updates for an event; empty if an editor cannot show it."""
        match event:
            case events.TextDelta(delta=delta):
                self._streamed += delta
                return [_message(delta)] if delta else []
            case events.ThinkingDelta(delta=delta):
                return [AgentThoughtChunk(TextBlock(delta))] if delta else []
            case events.AssistantMessage(content=content):
                self._retried = ""
                return self._rest(content)
            case events.TurnStart():
                self._streamed, self._is_writing = "", True
            case events.Interrupted(what="reply"):
                return self._cut(event)
            case events.UserMessage(content=content, seq=seq):
                return asked(content, seq)
            case events.Done():
                self._streamed, self._is_writing, self._retried = "", False, ""
                self._calls.clear()
            case _:
                return self._of_call(event)
        return []

    def has_shown(self, call: str, terminal: TerminalContent) -> None:
        """Take note that a call is shown with a terminal of the editor in which it runs."""
        known = self._calls.get(call)
        if known is not None:
            known.terminal = terminal

    def begin_anew(self) -> None:
        """Forget the state of reply and calls after a gap in the events."""
        self._streamed, self._is_writing = "", True
        self._calls.clear()

    def caught_up(self, partial: str) -> Iterable[Update]:
        """Return the part of a reply in progress that was not shown, given its text from a new connection."""
        if not self._is_writing or not partial.startswith(self._streamed):
            return []
        rest = partial[len(self._streamed) :]
        self._streamed = partial
        return [_message(rest)] if rest else []

    def replay(self, message: Message) -> Iterator[Update]:
        """Yield the updates for a message of the history."""
        if message.role == "user":
            yield from asked(message.content, message.seq)
            return
        for block in message.content:
            match block:
                case Text(text=text) if text:
                    yield _message(text)
                case ToolCall(id=call, name=name, args=args):
                    yield self._call(call, name, args)
                case ToolResult(call_id=call, is_error=is_error, content=content):
                    yield self._result(call, content, is_error=is_error)
                case _:
                    pass  # images and reasoning of a model are not replayed

    def question(self, asked_for: events.ApprovalRequested) -> ToolCallStart | ToolCallUpdate:
        """Return the update that shows a call with an open question and what it would change."""
        call, preview = asked_for.tool_id, asked_for.preview
        if asked_for.tool in {NETWORK, FILES, QUESTION}:
            call = asked_for.approval  # its call has started, and keeps its title and output
        diffs = calls.diffs_of(asked_for.tool, asked_for.args, self.place, preview)
        self._questions[asked_for.approval] = call
        words = [] if diffs or not preview else [TextContent(TextBlock(preview))]
        return self._told(call, asked_for.tool, asked_for.args, status="pending", content=[*diffs, *words])

    # --- replies ----------------------------------------------------------------------------------------------------

    def _rest(self, content: Sequence[Block]) -> Iterable[Update]:
        whole = "".join(block.text for block in content if isinstance(block, Text))
        shown, self._streamed, self._is_writing = self._streamed, "", False
        # A guard rewrote the text after it was shown. It cannot be withdrawn, so the new text follows below.
        rest = whole[len(shown) :] if whole.startswith(shown) else f"\n\n{whole}"
        return [_message(rest)] if whole and rest else []

    def _cut(self, event: events.Interrupted) -> Iterable[Update | Remark]:
        shown, self._streamed = (
            self._streamed,
            "",
        )  # the model is asked again, and its next reply starts from the beginning
        partial = event.partial
        if partial is None:
            return remarks(event)
        # A crash loses the newest part of the stored text, so the editor may have received more.
        rest = partial[len(shown) :] if partial.startswith(shown) else ""
        return [*([_message(rest)] if rest else []), Remark("warning", CUT)]

    def _retry(self, event: events.Retry) -> Remark:
        """Return a remark about a retry: a warning for the first long pause, because a run may wait for hours."""
        reason = event.reason.rstrip(".")
        is_new = event.delay_s >= LONG_PAUSE_S and reason != self._retried
        if is_new:
            self._retried = reason
        return Remark("warning" if is_new else "info", f"{reason}; trying again in {event.delay_s:.1f} s")

    # --- calls ------------------------------------------------------------------------------------------------------

    def _of_call(self, event: events.AnyEvent) -> Iterable[Update | Remark]:
        match event:
            case events.ToolUseStart(id=call, name=name):
                return [self._begun(call, name)]
            case events.ToolCallEvent(id=call, name=name, args=args):
                return [self._call(call, name, args)]
            case events.ToolProgress(id=call, text=text):
                return self._progress(call, text)
            case events.ToolResultEvent(id=call, content=content, is_error=is_error):
                return [self._result(call, content, is_error=is_error)]
            case events.ApprovalResolved(approval=approval, decision=decision):
                return self._resolved(approval, is_allowed=decision == "allow")
            case events.Retry():
                return [self._retry(event)]
            case _:
                return remarks(event)

    def _resolved(self, approval: str, *, is_allowed: bool) -> Iterable[Update]:
        call = self._questions.pop(approval, "")
        if call == approval:
            self._calls.pop(call, None)
            return [ToolCallUpdate(tool_call_id=call, status="completed" if is_allowed else "failed")]
        return [ToolCallUpdate(tool_call_id=call, status="in_progress")] if call and is_allowed else []

    def _begun(self, call: str, name: str) -> Update:
        self._calls[call] = known = _Known(has_terminal=self.shows_terminals and name == shown_terminals.TOOL)
        return ToolCallStart(
            tool_call_id=call,
            title=name,
            kind=calls.kind_of(name),
            status="pending",
            content=[shown_terminals.content(call)] if known.has_terminal else None,
            meta=shown_terminals.opened(call, self.place.cwd) if known.has_terminal else None,
        )

    def _call(self, call: str, name: str, args: Mapping[str, object]) -> Update:
        diffs = calls.diffs_of(name, args, self.place)
        return self._told(call, name, args, status="in_progress", content=diffs)

    def _told(
        self, call: str, name: str, args: Mapping[str, object], *, status: str, content: list[TextContent | Diff]
    ) -> ToolCallStart | ToolCallUpdate:
        is_known, has_terminal = call in self._calls, self.shows_terminals and name == shown_terminals.TOOL
        self._calls[call] = _Known(diffs=[one for one in content if isinstance(one, Diff)], has_terminal=has_terminal)
        shown: list[CallContent] = [shown_terminals.content(call), *content] if has_terminal else [*content]
        # A call may be known already, from its start event or from a question about it.
        kind = ToolCallUpdate if is_known else ToolCallStart
        return kind(
            tool_call_id=call,
            title=calls.title_of(name, args),
            kind=calls.kind_of(name),
            status=status,
            content=shown or None,
            locations=calls.locations_of(name, args, self.place),
            raw_input=dict(args),
            meta=shown_terminals.opened(call, self.place.cwd) if has_terminal and not is_known else None,
        )

    def _progress(self, call: str, text: str) -> Iterable[Update]:
        known = self._calls.get(call)
        if known is None:  # a shell command of a person, whose output arrives as a whole
            return []
        known.terminal = None  # it runs in the daemon after all
        known.output = (known.output + text)[-calls.OUTPUT_CHARS :]
        if known.has_terminal:
            meta = shown_terminals.grown(call, text)
            return [ToolCallUpdate(tool_call_id=call, status="in_progress", meta=meta)]
        # An update replaces the whole content, so the diffs have to be sent again.
        content: list[CallContent] = [*known.diffs, *calls.output(known.output)]
        return [ToolCallUpdate(tool_call_id=call, status="in_progress", content=content)]

    def _result(self, call: str, content: Sequence[Text | Image], *, is_error: bool) -> Update:
        known = self._calls.pop(call, _Known())
        words = calls.said(content)
        texts = [_text_of(one) for one in words]
        # A failed call has changed nothing, so its diffs are removed.
        shown: list[CallContent] = [*([] if is_error else known.diffs), *words]
        meta = None
        if known.terminal is not None:
            shown = [known.terminal]
        elif known.has_terminal:
            shown, meta = [shown_terminals.content(call)], shown_terminals.ended(call, known.output, "\n".join(texts))
        return ToolCallUpdate(
            tool_call_id=call,
            status="failed" if is_error else "completed",
            content=shown,
            raw_output={"is_error": is_error, "output": texts},
            meta=meta,
        )


def merged(batch: Iterable[events.AnyEvent]) -> Iterator[events.AnyEvent]:
    """Merge consecutive deltas into one event, because each frame is expensive for an editor."""
    held: events.AnyEvent | None = None
    for event in batch:
        joined = _joined(held, event)
        if joined is None:
            if held is not None:
                yield held
            joined = event
        held = joined
    if held is not None:
        yield held


def asked(content: Sequence[Block], seq: int | None) -> list[Update]:
    """Return the update for a prompt, as one message."""
    words = "\n".join(_asked_words(block) for block in content if isinstance(block, Text | Image))
    return [UserMessageChunk(TextBlock(words), None if seq is None else str(seq))] if words else []


_PLAN_STATUS = {ACTIVE: "in_progress", DONE: "completed"}


def plan_update(plan: Plan | None) -> PlanUpdate:
    """Return the update that replaces the plan of an editor."""
    steps = plan.steps if plan is not None else []
    return PlanUpdate([PlanEntry(step.text, _PLAN_STATUS.get(step.state, "pending")) for step in steps])


def remarks(event: events.AnyEvent) -> list[Update | Remark]:
    """Return the updates and remarks about an event that is not part of the conversation."""
    match event:
        case events.Error(message=text) | events.Blocked(message=text):
            return [Remark("error", text)]
        case events.Interrupted(text=text):
            return [Remark("warning", text)]
        case events.GuardNote(extension=extension, text=text):
            return [Remark("warning", f"{extension}: {text}")]
        case events.CompactDone():
            return [_message("The conversation was summarised.")]
        case events.ExtDisplay(text=text):
            return [_message(text)]
        case events.PlanChanged(plan=plan):
            return [plan_update(plan)]
        case _:
            return [Remark(severity, text) for severity, text in _notes(event)]


def _notes(event: events.AnyEvent) -> Iterator[tuple[str, str]]:
    match event:
        case events.Notice(level=level, text=text):
            yield _severity(level), text
        case events.ModelSwitched(provider=provider, model=model, own=own, reason=reason):
            yield "warning" if reason else "info", model_switch.sentence(f"{provider}/{model}", own=own, reason=reason)
        case events.ExtNotify(extension=extension, level=level, message=text):
            yield _severity(level), f"{extension}: {text}"
        case events.ExtPanel(extension=extension, title=title):
            yield "warning", f'{extension} shows the panel "{title}", which an editor cannot; zot --session does'
        case events.Rewound():
            yield "warning", "the conversation continues from an earlier message; load the session again to see it"
        case _:
            pass


def _joined(first: events.AnyEvent | None, second: events.AnyEvent) -> events.AnyEvent | None:
    """Merge two events; return None if they do not belong together."""
    match first, second:
        case events.TextDelta(), events.TextDelta():
            return replace(first, delta=first.delta + second.delta)
        case events.ThinkingDelta(), events.ThinkingDelta():
            return replace(first, delta=first.delta + second.delta)
        case events.ToolProgress(), events.ToolProgress() if first.id == second.id:
            return replace(first, text=first.text + second.text)
        case _:
            return None


def _message(text: str) -> AgentMessageChunk:
    return AgentMessageChunk(TextBlock(text))


def _asked_words(block: Text | Image) -> str:
    return block.text if isinstance(block, Text) else f"[image, {block.mime_type}, {block.bytes:,} bytes]"


def _text_of(content: TextContent) -> str:
    return content.content.text if isinstance(content.content, TextBlock) else ""


def _severity(level: str) -> str:
    return {"warn": "warning", "warning": "warning", "error": "error"}.get(level, "info")
