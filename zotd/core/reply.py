"""A model's reply while it arrives: the parts that providers yield, and the assembler of events and messages.

Providers translate a vendor's stream into `Part`s; everything after that is the same for all vendors.

    RequestAccepted AnsweredBy?
    (TextChunk* TextEnd? | ThinkingChunk* (Signature | Reasoning) | CallStart CallArgs* CallEnd | Counted)*
    Stopped
"""

from collections.abc import Callable, Iterable

import msgspec

from zotd.core.depth import MAX_DEPTH, is_too_deep
from zotd.core.retry import Failure, ModelError
from zotd.wire import content, events
from zotd.wire.content import Block, Tokens

REPLY_CHARS = 2 * 1024 * 1024
"""Limit of a reply's characters: text, thinking, signatures, names and arguments of calls together. The longest reply
that a vendor allows, 128,000 tokens, has about 500,000 characters."""

REPLY_BLOCKS = 1024
"""Limit of a reply's blocks: texts, thoughts and calls."""

REPLY_CALLS = 256
"""Limit of a reply's tool calls. Models make about ten at once; vendors accept up to 128."""


class RequestAccepted(msgspec.Struct, frozen=True, gc=False):
    """The provider has accepted the request (status 200)."""


class AnsweredBy(msgspec.Struct, frozen=True, gc=False):
    """Another model answers than the one that was asked: an alias stands for it, or a router has chosen it."""

    model: str


class TextChunk(msgspec.Struct, frozen=True, gc=False):
    """A delta of a text block."""

    text: str


class TextEnd(msgspec.Struct, frozen=True, gc=False):
    """End of a text block, where the vendor needs more of it in the next request than its text; see `content.Text`."""

    item: str = ""
    phase: str = ""
    model: str = ""


class ThinkingChunk(msgspec.Struct, frozen=True, gc=False):
    """A delta of a thinking block."""

    text: str


class Signature(msgspec.Struct, frozen=True, gc=False):
    """End of a thinking block. The vendor requires both fields in the next request. `redacted` replaces the text.

    `model`: as in `content.Thinking`.
    """

    signature: str = ""
    redacted: str = ""
    model: str = ""


class Reasoning(msgspec.Struct, frozen=True):
    """End of a thinking block that the vendor keeps to itself; see `content.Thinking`.

    With a `summary`, the deltas before it were that summary.
    """

    item: str
    encrypted: str
    summary: list[str]
    model: str


class CallStart(msgspec.Struct, frozen=True, gc=False):
    """A tool call begins; `index` is the vendor's number of the call within the reply."""

    index: int
    name: str
    item: str = ""
    """As in `content.ToolCall`."""


class CallArgs(msgspec.Struct, frozen=True, gc=False):
    """A piece of a call's arguments, as JSON text."""

    index: int
    text: str


class CallEnd(msgspec.Struct, frozen=True, gc=False):
    """A call's arguments are complete. The vendor requires the signature in the next request."""

    index: int
    signature: str = ""
    model: str = ""
    """As in `content.ToolCall`."""


class Counted(msgspec.Struct, frozen=True):
    """Tokens so far, without the cost; a later part replaces it."""

    tokens: Tokens
    reasoning: int = 0
    """How many of the output are reasoning; 0 also if the vendor does not say."""


class ServerAdvice(msgspec.Struct, frozen=True, gc=False):
    """A sentence for the user about the model or its server; no part of the reply."""

    text: str


class Stopped(msgspec.Struct, frozen=True, gc=False):
    """The reply is complete. `reason` is `end_turn`, `tool_use`, `length` or `refusal`."""

    reason: str


Part = (
    RequestAccepted
    | AnsweredBy
    | TextChunk
    | TextEnd
    | ThinkingChunk
    | Signature
    | Reasoning
    | CallStart
    | CallArgs
    | CallEnd
    | Counted
    | ServerAdvice
    | Stopped
)


class PartialCall(msgspec.Struct):
    """A call whose arguments are still arriving."""

    id: str
    name: str
    args: list[str]
    item: str = ""
    ended: bool = False
    signature: str = ""
    model: str = ""


class Assembler:
    """Turns parts, in the order of arrival, into live events and the message so far."""

    def __init__(self, session: str | None, new_call_id: Callable[[], str]) -> None:
        """Start an empty reply.

        Args:
            session: id for the events; None on stdio, where thinking is not shown.
            new_call_id: makes ids for calls, because a vendor's id is unique only within its reply.
        """
        self._session = session
        self._new_call_id = new_call_id
        self._blocks: list[list[str] | content.Text | content.Thinking | PartialCall] = []
        """A list is a text that is still arriving."""
        self._thinking: list[str] = []
        self._calls: dict[int, PartialCall] = {}
        self._size = 0
        self.stop: str | None = None
        self.tokens: Tokens | None = None
        self.reasoning = 0
        """As in `Counted`."""
        self.answered_by = ""
        """The model that answers, if it is another one than was asked."""

    def feed(self, parts: Iterable[Part]) -> list[events.Event]:
        """Add parts; return their live events."""
        shown: list[events.Event] = []
        session = self._session
        for part in parts:
            kind = type(part)
            if kind is TextChunk:  # by far the most frequent part: avoid the dispatch and a function call
                text = part.text  # type: ignore[union-attr]
                self._size += len(text)
                if self._blocks and type(self._blocks[-1]) is list:
                    self._blocks[-1].append(text)
                else:
                    self._blocks.append([text])
                shown.append(events.TextDelta(text, session=session))
            else:
                self._feed_other(part, shown)
        return shown

    def _feed_other(self, part: Part, shown: list[events.Event]) -> None:
        match part:
            case ThinkingChunk(text):
                self._size += len(text)
                self._thinking.append(text)
                if self._session is not None:  # clients of the original's stdio protocol do not know this event
                    shown.append(events.ThinkingDelta(text, session=self._session))
            case Signature() | Reasoning() | TextEnd():
                self._end_block(part)
            case CallStart() | CallArgs() | CallEnd():
                self._feed_call(part, shown)
            case ServerAdvice(text):
                shown.append(events.Notice("warn", text, session=self._session))
            case RequestAccepted() | TextChunk():
                pass
            case _:
                self._learn(part)

    def _feed_call(self, part: CallStart | CallArgs | CallEnd, shown: list[events.Event]) -> None:
        match part:
            case CallStart(index, name, item):
                self._size += len(name)
                # A vendor may use an index again; later parts then belong to the newer call.
                call = self._calls[index] = PartialCall(self._new_call_id(), name, [], item)
                self._blocks.append(call)
                shown.append(events.ToolUseStart(call.id, name, session=self._session))
            case CallArgs(index, text):
                self._size += len(text)
                call = self._calls[index]
                call.args.append(text)
                shown.append(events.ToolUseArgs(call.id, text, session=self._session))
            case CallEnd(index, signature, model):
                self._size += len(signature)
                call = self._calls[index]
                call.ended = True
                call.signature, call.model = signature, model
                shown.append(events.ToolUseEnd(call.id, session=self._session))

    def _learn(self, part: Counted | Stopped | AnsweredBy) -> None:
        match part:
            case Counted(tokens, reasoning):
                self.tokens, self.reasoning = tokens, reasoning
            case Stopped(reason):
                self.stop = reason
            case AnsweredBy(model):
                self.answered_by = model

    def _end_block(self, part: Signature | Reasoning | TextEnd) -> None:
        match part:
            case Signature(signature, redacted, model):
                self._size += len(signature) + len(redacted)
                self._blocks.append(content.Thinking("".join(self._thinking), signature, redacted, model=model))
                self._thinking.clear()
            case Reasoning(item, encrypted, summary, model):
                self._size += len(encrypted)
                text = "" if summary else "".join(self._thinking)
                self._blocks.append(
                    content.Thinking(text, item=item, encrypted=encrypted, summary=summary, model=model)
                )
                self._thinking.clear()
            case TextEnd(item, phase, model):
                if self._blocks and isinstance(last := self._blocks[-1], list):
                    self._blocks[-1] = content.Text("".join(last), item, phase, model)

    def text(self) -> str:
        """Return the text received so far, without other blocks."""
        return "".join(
            "".join(block) if isinstance(block, list) else block.text
            for block in self._blocks
            if isinstance(block, list | content.Text)
        )

    def length(self) -> int:
        """Return the number of characters so far, in blocks of every kind."""
        return self._size

    def check(self) -> None:
        """Raise `ModelError` (`Failure.TOO_LARGE`) if the reply exceeds one of its limits."""
        if self._size > REPLY_CHARS:
            excess = f"{REPLY_CHARS // 1024**2} Mi characters"
        elif len(self._calls) > REPLY_CALLS:
            excess = f"{REPLY_CALLS} tool calls"
        elif len(self._blocks) > REPLY_BLOCKS:
            excess = f"{REPLY_BLOCKS} blocks"
        else:
            return
        sentence = f"the reply has more than {excess}, so it was cut off there; ask for less at a time"
        raise ModelError(Failure.TOO_LARGE, sentence)

    def open_calls(self) -> list[PartialCall]:
        """Return all calls so far, complete or not."""
        return [block for block in self._blocks if isinstance(block, PartialCall)]

    def message(self) -> list[Block]:
        """Return the content so far, in a form that is valid in a transcript.

        A call with incomplete arguments is omitted, because it would never get a result. In a complete reply, a call
        whose arguments are not a JSON object is kept without arguments: its result tells the model what was wrong
        (`broken_calls`).
        """
        # A reply that stopped for another reason may have ended within the arguments of a call.
        whole = self.stop in {"tool_use", "end_turn"}
        blocks: list[Block] = []
        for block in self._blocks:
            if isinstance(block, list):
                blocks.append(content.Text("".join(block)))
            elif isinstance(block, content.Text | content.Thinking):
                blocks.append(block)
            elif block.ended:
                args = parse_args(block)
                if args is not None or whole:
                    called = content.ToolCall(
                        block.id, block.name, args or {}, block.item, block.signature, block.model
                    )
                    blocks.append(called)
        return blocks

    def broken_calls(self) -> frozenset[str]:
        """Return the ids of complete calls whose arguments are not a JSON object."""
        return frozenset(call.id for call in self.open_calls() if call.ended and parse_args(call) is None)


def parse_args(call: PartialCall) -> dict[str, object] | None:
    """Return the call's arguments, or None if they are not a JSON object. Empty text means no arguments."""
    text = "".join(call.args).strip()
    if not text:
        return {}
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):  # the latter for deeply nested arguments
        return None
    if not isinstance(value, dict):
        return None
    for nested in value.values():
        if isinstance(nested, dict | list) and is_too_deep(nested, MAX_DEPTH - 1):
            return None
    return value
