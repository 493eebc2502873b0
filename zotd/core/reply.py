"""A model's reply while it arrives: what providers yield, and the assembler that makes events and a message of it.

Providers translate a vendor's stream into `Part`s; everything after that is the same for all vendors.

    Opened  (Text | Thinking | Signature | CallStart CallArgs* CallEnd | Counted)*  Stopped
"""

from collections.abc import Callable, Iterable

import msgspec

from zotd.core.depth import is_too_deep
from zotd.core.retry import Failure, ModelError
from zotd.wire import content, events
from zotd.wire.content import Block, Tokens

REPLY_CHARS = 2 * 1024 * 1024
"""Longest reply: text, thinking, signatures, names and arguments of calls together. The longest that a vendor allows,
128,000 tokens, has about 500,000 characters."""

REPLY_BLOCKS = 1024
"""Most blocks of a reply: texts, thoughts and calls."""

REPLY_CALLS = 256
"""Most tool calls of a reply. Models make about ten side by side; vendors take up to 128."""


class RequestAccepted(msgspec.Struct, frozen=True, gc=False):
    """The provider has accepted the request (status 200)."""


class TextChunk(msgspec.Struct, frozen=True, gc=False):
    """A delta of a text block."""

    text: str


class ThinkingChunk(msgspec.Struct, frozen=True, gc=False):
    """A delta of a thinking block."""

    text: str


class Signature(msgspec.Struct, frozen=True, gc=False):
    """Ends a block of reasoning; the vendor wants both back. `redacted` replaces the text."""

    signature: str = ""
    redacted: str = ""


class CallStart(msgspec.Struct, frozen=True, gc=False):
    """A tool call begins; `index` tells calls of one reply apart, in the vendor's numbering."""

    index: int
    name: str


class CallArgs(msgspec.Struct, frozen=True, gc=False):
    """A piece of a call's arguments, as JSON text."""

    index: int
    text: str


class CallEnd(msgspec.Struct, frozen=True, gc=False):
    """A call's arguments are complete."""

    index: int


class Counted(msgspec.Struct, frozen=True):
    """Tokens so far; a later one replaces it. The price is added by whoever knows it."""

    tokens: Tokens


class Stopped(msgspec.Struct, frozen=True, gc=False):
    """The reply is complete. `reason` is `end_turn`, `tool_use`, `length` or `refusal`."""

    reason: str


Part = RequestAccepted | TextChunk | ThinkingChunk | Signature | CallStart | CallArgs | CallEnd | Counted | Stopped


class PartialCall(msgspec.Struct):
    """A call that is being written."""

    id: str
    name: str
    args: list[str]
    ended: bool = False


class Assembler:
    """Takes parts in the order of arrival; gives live events and, at any moment, the message so far."""

    def __init__(self, session: str | None, new_call_id: Callable[[], str]) -> None:
        """`session`: as events carry it; None on stdio, where thinking is not shown.

        `new_call_id`: a vendor's id is unique only in its reply, so calls get ours.
        """
        self._session = session
        self._new_call_id = new_call_id
        self._blocks: list[list[str] | content.Thinking | PartialCall] = []
        self._thinking: list[str] = []
        self._calls: dict[int, PartialCall] = {}
        self._size = 0
        self.stop: str | None = None
        self.tokens: Tokens | None = None

    def feed(self, parts: Iterable[Part]) -> list[events.Event]:
        """The live events that these parts show."""
        shown: list[events.Event] = []
        session = self._session
        for part in parts:
            kind = type(part)
            if kind is TextChunk:  # by far the most frequent: no dispatch, no call
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
                if self._session is not None:  # on stdio, what the original does not send is an unknown event
                    shown.append(events.ThinkingDelta(text, session=self._session))
            case Signature(signature, redacted):
                self._size += len(signature) + len(redacted)
                self._blocks.append(content.Thinking("".join(self._thinking), signature, redacted))
                self._thinking.clear()
            case CallStart(index, name):
                self._size += len(name)
                call = self._calls[index] = PartialCall(self._new_call_id(), name, [])
                self._blocks.append(call)
                shown.append(events.ToolUseStart(call.id, name, session=self._session))
            case CallArgs(index, text):
                self._size += len(text)
                call = self._calls[index]
                call.args.append(text)
                shown.append(events.ToolUseArgs(call.id, text, session=self._session))
            case CallEnd(index):
                call = self._calls[index]
                call.ended = True
                shown.append(events.ToolUseEnd(call.id, session=self._session))
            case Counted(tokens):
                self.tokens = tokens
            case Stopped(reason):
                self.stop = reason
            case RequestAccepted() | TextChunk():
                pass

    def text(self) -> str:
        """Return the text received so far, without other blocks."""
        return "".join("".join(block) for block in self._blocks if isinstance(block, list))

    def length(self) -> int:
        """Characters so far, whatever they are."""
        return self._size

    def check(self) -> None:
        """Raise `ModelError` (`Failure.TOO_LARGE`) when the reply is over one of its limits."""
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
        """The calls so far, finished or not."""
        return [block for block in self._blocks if isinstance(block, PartialCall)]

    def message(self) -> list[Block]:
        """The content so far, fit for a transcript.

        A call whose arguments never ended is left out: it would be a call without a result. One that ended with
        something else than a JSON object stays, without arguments, if the reply is whole: its result tells the
        model what was wrong (`broken_calls`).
        """
        whole = self.stop in {"tool_use", "end_turn"}
        blocks: list[Block] = []
        for block in self._blocks:
            if isinstance(block, list):
                blocks.append(content.Text("".join(block)))
            elif isinstance(block, content.Thinking):
                blocks.append(block)
            elif block.ended:
                args = parse_args(block)
                if args is not None or whole:
                    blocks.append(content.ToolCall(block.id, block.name, args or {}))
        return blocks

    def broken_calls(self) -> frozenset[str]:
        """Ids of the calls that ended with arguments that are not a JSON object."""
        return frozenset(call.id for call in self.open_calls() if call.ended and parse_args(call) is None)


def parse_args(call: PartialCall) -> dict[str, object] | None:
    """The call's arguments, or None when they are not a JSON object; no text at all means none."""
    text = "".join(call.args).strip()
    if not text:
        return {}
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return value if isinstance(value, dict) and not is_too_deep(value) else None
