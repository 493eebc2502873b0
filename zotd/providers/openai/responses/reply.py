"""The Responses API's stream, translated; see the API's documentation, "Streaming events".

response.created (output_item.added (...delta)* output_item.done)* response.completed | incomplete | failed
"""

from collections.abc import Sequence

import msgspec

from zotd.core.reply import (
    AnsweredBy,
    CallArgs,
    CallEnd,
    CallStart,
    Counted,
    Part,
    Reasoning,
    Stopped,
    TextChunk,
    TextEnd,
    ThinkingChunk,
)
from zotd.core.retry import ModelError
from zotd.providers.shared import Target, cut, foreign, reported
from zotd.providers.shared.streaming import Events
from zotd.wire.content import Tokens

BETWEEN = "\n\n"
"""Shown between two parts of a summary."""


class _Part(msgspec.Struct):
    """A part of a message (text or refusal), of a summary or of reasoning."""

    text: str = ""
    refusal: str = ""


class _Item(msgspec.Struct):
    type: str
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None
    phase: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    encrypted_content: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    """With those of the reasoning."""
    input_tokens_details: _Details | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    model: str | None = None
    usage: _Usage | None = None
    error: object = None
    incomplete_details: _Incomplete | None = None


class _Whole(_Response):
    """A reply as one document: the server does not know `stream`."""

    status: str | None = None
    output: list[_Item] | None = None


class _TextDelta(msgspec.Struct, tag="response.output_text.delta", gc=False):
    delta: str


class _RefusalDelta(msgspec.Struct, tag="response.refusal.delta", gc=False):
    delta: str


class _SummaryDelta(msgspec.Struct, tag="response.reasoning_summary_text.delta", gc=False):
    delta: str


class _ReasoningDelta(msgspec.Struct, tag="response.reasoning_text.delta", gc=False):
    delta: str


class _SummaryPart(msgspec.Struct, tag="response.reasoning_summary_part.added", gc=False):
    summary_index: int = 0


class _ArgsDelta(msgspec.Struct, tag="response.function_call_arguments.delta", gc=False):
    output_index: int
    delta: str


class _ItemAdded(msgspec.Struct, tag="response.output_item.added"):
    output_index: int
    item: _Item


class _ItemDone(msgspec.Struct, tag="response.output_item.done"):
    output_index: int
    item: _Item


class _Created(msgspec.Struct, tag="response.created"):
    response: _Response


class _Completed(msgspec.Struct, tag="response.completed"):
    response: _Response


class _CutShort(msgspec.Struct, tag="response.incomplete"):
    response: _Response


class _Failed(msgspec.Struct, tag="response.failed"):
    response: _Response


class _Error(msgspec.Struct, tag="error"):
    error: object = None
    """Some servers put code and message in here."""
    code: str | None = None
    message: str | None = None


class _Unknown(msgspec.Struct):
    type: str = ""
    error: object = None


_Event = (
    _TextDelta
    | _ArgsDelta
    | _SummaryDelta
    | _ReasoningDelta
    | _RefusalDelta
    | _SummaryPart
    | _ItemAdded
    | _ItemDone
    | _Created
    | _Completed
    | _CutShort
    | _Failed
    | _Error
)

_decode = msgspec.json.Decoder(_Event).decode
_decode_whole = msgspec.json.Decoder(_Whole).decode


class ReplyReader:
    """Turns the events of one answer into parts."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.frames = Events()
        self._calls: dict[int, bool] = {}
        """Open calls, and whether their arguments have begun to come."""
        self._heard = False
        """Something of the item that is being written has come."""
        self._has_called = False
        self._is_named = False
        """The model that answers is known."""
        self._refused = False
        self.stopped = False
        self.failure: ModelError | None = None
        """Why nothing more can be read."""

    def feed(self, events: Sequence[bytes]) -> list[Part]:
        """The parts that these events complete, up to what is an error or not its format (`failure`)."""
        parts: list[Part] = []
        self._read(events, parts)
        return parts

    def end(self) -> list[Part]:
        """The last parts; `failure` when the stream has ended before `response.completed` or `incomplete`."""
        if not self.stopped and self.failure is None:
            self.failure = cut(self._target, "the stream ended in the middle")
        return []

    def rest(self) -> list[Part]:
        """Nothing is held back."""
        return []

    def whole(self, body: bytes) -> list[Part]:
        """The parts of a reply that came as one JSON document; `failure` when it is none."""
        parts: list[Part] = []
        try:
            reply = _decode_whole(body)
        except (msgspec.DecodeError, RecursionError):
            reply = _Whole()
        if reply.error is not None:
            self.failure = reported(self._target, reply.error)
        elif reply.output is None:
            self.failure = foreign(self._target, "other JSON", body)
        else:
            self._name(reply, parts)
            for index, item in enumerate(reply.output):
                self._begin(index, item, parts)
                self._finish(index, item, parts)
            self._stop(reply, parts)
        return parts

    def _read(self, events: Sequence[bytes], parts: list[Part]) -> None:
        """What came before an error counts: it is in `parts` when this gives up."""
        if self.failure is not None or self.stopped:
            return
        try:
            self._translate(events, parts)
        except ModelError as error:
            self.failure = error

    def _translate(self, events: Sequence[bytes], parts: list[Part]) -> None:
        for data in events:
            try:
                event = _decode(data)
            except msgspec.ValidationError:
                self._check_unknown(data)
                continue
            except msgspec.DecodeError as error:
                raise self._garbled() from error
            if type(event) is _TextDelta:  # by far the most frequent: no dispatch, no call
                parts.append(TextChunk(event.delta))
                self._heard = True
            else:
                self._take(event, parts)
                if self.stopped:
                    break

    def _take(self, event: _Event, parts: list[Part]) -> None:
        match event:
            case _ArgsDelta(index, delta):
                if index not in self._calls:
                    raise self._garbled()
                self._calls[index] = True
                parts.append(CallArgs(index, delta))
            case _SummaryDelta(delta) | _ReasoningDelta(delta):
                self._heard = True
                parts.append(ThinkingChunk(delta))
            case _SummaryPart(summary_index):
                if summary_index and self._heard:
                    parts.append(ThinkingChunk(BETWEEN))
            case _ItemAdded(index, item):
                self._begin(index, item, parts)
            case _ItemDone(index, item):
                self._finish(index, item, parts)
            case _:
                self._take_last(event, parts)

    def _take_last(self, event: _Event, parts: list[Part]) -> None:
        match event:
            case _RefusalDelta(delta):
                self._heard = self._refused = True
                parts.append(TextChunk(delta))
            case _Created(response):
                self._name(response, parts)
            case _Completed(response) | _CutShort(response):
                self._stop(response, parts)
            case _Failed(response):
                self._count(response.usage, parts)
                raise reported(self._target, response.error or {"message": "the reply failed without a reason"})
            case _Error(error, code, message):
                raise reported(self._target, error or {"code": code, "message": message})
            case _:
                pass

    def _begin(self, index: int, item: _Item, parts: list[Part]) -> None:
        self._heard = False
        if item.type == "function_call":
            self._calls[index] = False
            self._has_called = True
            parts.append(CallStart(index, item.name or "", item.id or ""))

    def _finish(self, index: int, item: _Item, parts: list[Part]) -> None:
        """The item is here as a whole; deltas may have told all of it."""
        match item.type:
            case "function_call":
                self._finish_call(index, item, parts)
            case "message":
                self._finish_message(item, parts)
            case "reasoning":
                self._finish_reasoning(item, parts)
            case _:
                pass
        self._heard = False

    def _finish_call(self, index: int, item: _Item, parts: list[Part]) -> None:
        if index not in self._calls:
            self._begin(index, item, parts)
        if not self._calls.pop(index) and item.arguments:
            parts.append(CallArgs(index, item.arguments))
        if item.status != "incomplete":
            parts.append(CallEnd(index))

    def _finish_message(self, item: _Item, parts: list[Part]) -> None:
        content = item.content or []
        self._refused |= any(part.refusal for part in content)
        text = "" if self._heard else "".join(part.text or part.refusal for part in content)
        if text:
            parts.append(TextChunk(text))
        if self._heard or text:
            parts.append(TextEnd(item.id or "", item.phase or "", self._target.author if item.phase else ""))

    def _finish_reasoning(self, item: _Item, parts: list[Part]) -> None:
        summary = [part.text for part in item.summary or ()]
        shown = BETWEEN.join(summary) or "".join(part.text for part in item.content or ())
        if shown and not self._heard:
            parts.append(ThinkingChunk(shown))
        if self._heard or shown or item.encrypted_content:
            parts.append(Reasoning(item.id or "", item.encrypted_content or "", summary, self._target.author))

    def _name(self, response: _Response, parts: list[Part]) -> None:
        """Every event with a response names its model; it is told once."""
        if self._is_named or not response.model:
            return
        self._is_named = True
        if response.model != self._target.model.id:
            parts.append(AnsweredBy(response.model))

    def _stop(self, response: _Response, parts: list[Part]) -> None:
        self._name(response, parts)
        self._count(response.usage, parts)
        details = response.incomplete_details
        if details is not None:
            reason = "refusal" if details.reason == "content_filter" else "length"
        else:
            parts.extend(CallEnd(index) for index in self._calls)
            reason = "tool_use" if self._has_called else "end_turn"
        parts.append(Stopped("refusal" if self._refused else reason))
        self.stopped = True

    def _count(self, usage: _Usage | None, parts: list[Part]) -> None:
        if usage is None:
            return
        details = usage.input_tokens_details or _Details()
        read, write = details.cached_tokens or 0, details.cache_write_tokens or 0
        reasoning = (usage.output_tokens_details or _OutputDetails()).reasoning_tokens or 0
        tokens = Tokens(max(0, usage.input_tokens - read - write), usage.output_tokens, read, write)
        parts.append(Counted(tokens, reasoning))

    def _check_unknown(self, data: bytes) -> None:
        """There are more kinds of events than are used here, and new ones come without notice."""
        if data == b"[DONE]":  # not of this API, and sent by servers that have both
            return
        try:
            unknown = msgspec.json.decode(data, type=_Unknown)
        except msgspec.DecodeError as error:
            raise self._garbled() from error
        if unknown.error is not None:
            raise reported(self._target, unknown.error)
        if not unknown.type:
            raise self._garbled()

    def _garbled(self) -> ModelError:
        return cut(self._target, "it sent malformed data")
