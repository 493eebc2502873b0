"""The Messages API's stream, translated; see the API's documentation, "Streaming messages".

message_start (content_block_start content_block_delta* content_block_stop)* message_delta message_stop
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
    Signature,
    Stopped,
    TextChunk,
    ThinkingChunk,
)
from zotd.core.retry import ModelError
from zotd.providers.shared import Target, cut, foreign, reported
from zotd.providers.shared.streaming import Events
from zotd.wire.content import Tokens

_REASONS = {
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
"""All others end the turn."""


class _CacheCreation(msgspec.Struct):
    ephemeral_1h_input_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _CacheCreation | None = None
    """The written ones by the time for which they are kept."""


class _Message(msgspec.Struct):
    usage: _Usage | None = None
    model: str = ""


class _MessageStart(msgspec.Struct, tag="message_start"):
    message: _Message


class _Block(msgspec.Struct):
    type: str
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: msgspec.Raw = msgspec.Raw()
    """A call's arguments in a reply that comes whole; in a stream they come later, in pieces."""


class _BlockStart(msgspec.Struct, tag="content_block_start"):
    index: int
    content_block: _Block


class _TextDelta(msgspec.Struct, tag="text_delta", gc=False):
    text: str


class _ArgsDelta(msgspec.Struct, tag="input_json_delta", gc=False):
    partial_json: str


class _ThinkingDelta(msgspec.Struct, tag="thinking_delta", gc=False):
    thinking: str


class _SignatureDelta(msgspec.Struct, tag="signature_delta", gc=False):
    signature: str


class _BlockDelta(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: _TextDelta | _ArgsDelta | _ThinkingDelta | _SignatureDelta


class _BlockStop(msgspec.Struct, tag="content_block_stop"):
    index: int


class _Stop(msgspec.Struct):
    stop_reason: str | None = None


class _MessageDelta(msgspec.Struct, tag="message_delta"):
    delta: _Stop
    usage: _Usage | None = None


class _MessageStop(msgspec.Struct, tag="message_stop"):
    pass


class _Error(msgspec.Struct, tag="error"):
    error: object


class _Whole(msgspec.Struct):
    """A reply as one document: the server does not know `stream`."""

    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: object = None


class _Unknown(msgspec.Struct):
    type: str


_Event = _BlockDelta | _BlockStart | _BlockStop | _MessageStart | _MessageDelta | _MessageStop | _Error

_decode = msgspec.json.Decoder(_Event).decode
_decode_whole = msgspec.json.Decoder(_Whole).decode


class ReplyReader:
    """Turns the events of one answer into parts."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.frames = Events()
        self._blocks: dict[int, _Block] = {}
        self._signature: list[str] = []
        """Signature of the block that is being written, in parts."""
        self._tokens = Tokens()
        self._reason: str | None = None
        self._written_call: int | None = None
        self.stopped = False
        self.failure: ModelError | None = None
        """Why nothing more can be read."""

    def feed(self, events: Sequence[bytes]) -> list[Part]:
        """The parts that these events complete, up to what is an error or not its format (`failure`)."""
        parts: list[Part] = []
        self._read(events, parts)
        return parts

    def end(self) -> list[Part]:
        """The last parts; `failure` when the stream has ended before `message_stop`."""
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
        elif reply.content is None:
            self.failure = foreign(self._target, "other JSON", body)
        else:
            for index, block in enumerate(reply.content):
                self._take(index, block, parts)
            self._reason = reply.stop_reason
            self._end_call(parts)
            self._count(reply.usage, parts)
            parts.append(Stopped(_REASONS.get(self._reason or "", "end_turn")))
            self.stopped = True
        return parts

    def _take(self, index: int, block: _Block, parts: list[Part]) -> None:
        """A block that came whole."""
        self._start(index, block, parts)
        if block.type == "tool_use":
            parts.append(CallArgs(index, bytes(block.input).decode()))
        self._stop(index, parts)

    def _read(self, events: Sequence[bytes], parts: list[Part]) -> None:
        """What came before an error counts: it is in `parts` when this gives up."""
        if self.failure is not None:
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
            if type(event) is _BlockDelta:  # by far the most frequent: no dispatch, no call
                delta = event.delta
                if type(delta) is _TextDelta:
                    parts.append(TextChunk(delta.text))
                else:
                    self._delta(event, parts)
            else:
                self._other(event, parts)

    def _delta(self, event: _BlockDelta, parts: list[Part]) -> None:
        match event.delta:
            case _ArgsDelta(text):
                if text and self._open(event.index).type == "tool_use":
                    parts.append(CallArgs(event.index, text))
            case _ThinkingDelta(text):
                parts.append(ThinkingChunk(text))
            case _SignatureDelta(signature):
                self._open(event.index)
                self._signature.append(signature)
            case _TextDelta():
                pass

    def _other(self, event: _Event, parts: list[Part]) -> None:
        match event:
            case _MessageStart(message):
                if message.model and message.model != self._target.model.id:
                    parts.append(AnsweredBy(message.model))
                self._count(message.usage, parts)
            case _BlockStart(index, block):
                self._start(index, block, parts)
            case _BlockStop(index):
                self._stop(index, parts)
            case _MessageDelta(delta, usage):
                self._reason = delta.stop_reason or self._reason
                self._end_call(parts)
                self._count(usage, parts)
            case _MessageStop():
                self.stopped = True
                self._end_call(parts)
                parts.append(Stopped(_REASONS.get(self._reason or "", "end_turn")))
            case _Error(error):
                raise reported(self._target, error)
            case _BlockDelta():
                pass

    def _start(self, index: int, block: _Block, parts: list[Part]) -> None:
        self._end_call(parts)
        self._signature.clear()
        self._blocks[index] = block
        if block.type == "tool_use":
            parts.append(CallStart(index, block.name))
        elif block.type == "text" and block.text:
            parts.append(TextChunk(block.text))
        elif block.type == "thinking" and block.thinking:
            parts.append(ThinkingChunk(block.thinking))

    def _stop(self, index: int, parts: list[Part]) -> None:
        block = self._open(index)
        if block.type == "tool_use":
            self._written_call = index
        elif block.type == "thinking":
            parts.append(Signature(block.signature + "".join(self._signature), model=self._target.author))
        elif block.type == "redacted_thinking":
            parts.append(Signature(redacted=block.data, model=self._target.author))

    def _end_call(self, parts: list[Part]) -> None:
        """A block also stops when `max_tokens` cuts it; whether a call is whole shows only in what comes after it."""
        if self._written_call is not None and _REASONS.get(self._reason or "") != "length":
            parts.append(CallEnd(self._written_call))
        self._written_call = None

    def _count(self, usage: _Usage | None, parts: list[Part]) -> None:
        """`message_delta` repeats or raises what `message_start` said; what it leaves out stays."""
        if usage is None:
            return
        known, kept = self._tokens, usage.cache_creation
        self._tokens = Tokens(
            known.input if usage.input_tokens is None else usage.input_tokens,
            known.output if usage.output_tokens is None else usage.output_tokens,
            known.cache_read if usage.cache_read_input_tokens is None else usage.cache_read_input_tokens,
            known.cache_write if usage.cache_creation_input_tokens is None else usage.cache_creation_input_tokens,
            cache_write_hour=known.cache_write_hour if kept is None else kept.ephemeral_1h_input_tokens or 0,
        )
        parts.append(Counted(self._tokens))

    def _open(self, index: int) -> _Block:
        block = self._blocks.get(index)
        if block is None:
            raise self._garbled()
        return block

    def _check_unknown(self, data: bytes) -> None:
        """New kinds of events and deltas come without notice and may be ignored (API versioning policy)."""
        try:
            msgspec.json.decode(data, type=_Unknown)
        except msgspec.DecodeError as error:
            raise self._garbled() from error

    def _garbled(self) -> ModelError:
        return cut(self._target, "it sent malformed data")
