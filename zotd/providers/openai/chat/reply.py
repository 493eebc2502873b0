"""The Chat Completions API's stream, translated, as OpenAI and the many who imitate it send it.

chunk{delta}* chunk{finish_reason} chunk{usage}? [DONE]?
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
from zotd.providers.openai.chat.tags import ThinkTags
from zotd.providers.shared import Target, cut, foreign, reported
from zotd.providers.shared.streaming import Events
from zotd.wire.content import Tokens

_REASONS = {"length": "length", "model_length": "length", "content_filter": "refusal"}
"""All others end the turn, or call tools when there are calls: not every server says `tool_calls` then."""

_BROKEN = frozenset({"error", "insufficient_system_resource"})
"""Reasons of Mistral and DeepSeek for giving up in the middle."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Google(msgspec.Struct):
    thought_signature: str | None = None


class _Extra(msgspec.Struct):
    google: _Google | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: _Extra | None = None
    """Gemini."""


class _Piece(msgspec.Struct):
    """Mistral's reasoning models send content as a list of these."""

    text: str = ""
    thinking: "list[_Piece]" = []


class _Delta(msgspec.Struct):
    content: str | list[_Piece] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _OutputDetails | None = None
    cached_tokens: int | None = None
    """Moonshot."""
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek."""


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    """Replaces `delta` in a reply that is not streamed."""
    finish_reason: str | None = None
    usage: _Usage | None = None
    """Moonshot."""


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: object = None


class _FirstChunk(_Chunk):
    """Every chunk names the model; it is read once."""

    model: str | None = None


class _Open(msgspec.Struct):
    """A call that is being written, under our number."""

    number: int
    id: str
    signature: str = ""


_decode = msgspec.json.Decoder(_Chunk).decode
_decode_first = msgspec.json.Decoder(_FirstChunk).decode


class ReplyReader:
    """Turns the events of one answer into parts."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.frames = Events()
        self._calls: list[_Open] = []
        self._by_index: dict[int, _Open] = {}
        self._thinks = False
        self._tags = ThinkTags() if target.is_imitation else None
        """Finds thinking between tags; None once the text cannot contain any."""
        self._is_first = True
        """No chunk has come."""
        self._reason: str | None = None
        self._refused = False
        self._spoke = False
        self.stopped = False
        self.failure: ModelError | None = None
        """Why nothing more can be read."""

    def feed(self, events: Sequence[bytes]) -> list[Part]:
        """The parts that these events complete, up to what is an error or not its format (`failure`)."""
        parts: list[Part] = []
        self._read(events, parts)
        return parts

    def end(self) -> list[Part]:
        """The last parts; `failure` when the stream has ended before a finish reason."""
        parts: list[Part] = []
        if not self.stopped and self.failure is None:
            if self._reason is None:
                self.failure = cut(self._target, "the stream ended in the middle")
                parts += self.rest()
            else:
                self._finish(parts)  # some servers never send [DONE]
        return parts

    def rest(self) -> list[Part]:
        """Text that might have become a tag."""
        parts: list[Part] = []
        tags, self._tags = self._tags, None
        if tags is not None:
            self._tell(*tags.end(), parts)
        return parts

    def whole(self, body: bytes) -> list[Part]:
        """The parts of a reply that came as one JSON document; `failure` when it is none."""
        parts: list[Part] = []
        try:
            reply = _decode(body)
        except (msgspec.DecodeError, RecursionError):
            reply = _Chunk()
        choice = reply.choices[0] if reply.choices else None
        if reply.error is not None:
            self.failure = reported(self._target, reply.error)
        elif choice is None or choice.message is None:
            self.failure = foreign(self._target, "other JSON", body)
        else:
            for number, call in enumerate(choice.message.tool_calls or ()):
                call.index = number
            choice.delta = choice.message
            self._choice(choice, parts)
            if reply.usage is not None:
                parts.append(_counted(reply.usage))
            self._finish(parts)
        return parts

    def _read(self, events: Sequence[bytes], parts: list[Part]) -> None:
        """What came before an error counts: it is in `parts` when this gives up."""
        if self.failure is not None:
            return
        try:
            self._translate(events, parts)
        except ModelError as error:
            self.failure = error
        if self.failure is not None:
            parts += self.rest()

    def _translate(self, events: Sequence[bytes], parts: list[Part]) -> None:
        for data in events:
            if data == b"[DONE]":
                self._stop(parts)
                break
            try:
                chunk = self._decode_first(data, parts) if self._is_first else _decode(data)
            except msgspec.DecodeError as error:
                raise cut(self._target, "it sent malformed data") from error
            if chunk.error is not None:
                raise reported(self._target, chunk.error)
            if chunk.choices:
                self._choice(chunk.choices[0], parts)
            if chunk.usage is not None:
                parts.append(_counted(chunk.usage))

    def _decode_first(self, data: bytes, parts: list[Part]) -> _Chunk:
        self._is_first = False
        chunk: _FirstChunk = _decode_first(data)
        if chunk.model and chunk.model != self._target.model.id:
            parts.append(AnsweredBy(chunk.model))
        return chunk

    def _choice(self, choice: _Choice, parts: list[Part]) -> None:
        delta = choice.delta
        if delta is not None:
            content = delta.content
            if type(content) is str and content and not self._thinks and self._tags is None:  # by far the most frequent
                parts.append(TextChunk(content))
                self._spoke = True
            elif content or delta.reasoning_content or delta.reasoning:
                self._say(delta, parts)
            if delta.refusal or delta.tool_calls:
                self._say_other(delta, parts)
        if choice.finish_reason:
            self._reason = choice.finish_reason
        if choice.usage is not None:
            parts.append(_counted(choice.usage))

    def _say(self, delta: _Delta, parts: list[Part]) -> None:
        thought = delta.reasoning_content or delta.reasoning or ""
        text = delta.content or ""
        if isinstance(text, list):
            thought += "".join(inner.text for piece in text for inner in piece.thinking)
            text = "".join(piece.text for piece in text)
        if thought:
            parts += self.rest()  # a server that keeps thinking apart uses no tags
        elif self._tags is not None:
            thought, text = self._tags.feed(text)
            if self._tags.is_over:
                self._tags = None
        self._tell(thought, text, parts)

    def _tell(self, thought: str, text: str, parts: list[Part]) -> None:
        self._spoke |= bool(thought or text)
        if thought:
            self._thinks = True
            parts.append(ThinkingChunk(thought))
        if text:
            self._end_thinking(parts)
            parts.append(TextChunk(text))

    def _say_other(self, delta: _Delta, parts: list[Part]) -> None:
        parts += self.rest()
        if delta.refusal:
            self._refused = True
            self._tell("", delta.refusal, parts)
        if delta.tool_calls:
            self._spoke = True
            self._end_thinking(parts)
            for call in delta.tool_calls:
                self._call(call, parts)

    def _end_thinking(self, parts: list[Part]) -> None:
        if self._thinks:
            self._thinks = False
            parts.append(Signature(model=self._target.author))

    def _call(self, call: _Call, parts: list[Part]) -> None:
        function = call.function or _Function()
        known = self._known(call)
        if known is None:
            known = _Open(len(self._calls), call.id or "")
            self._calls.append(known)
            parts.append(CallStart(known.number, function.name or ""))
        if call.index is not None:
            self._by_index[call.index] = known
        if function.arguments:
            parts.append(CallArgs(known.number, function.arguments))
        if call.extra_content and call.extra_content.google:
            known.signature = call.extra_content.google.thought_signature or known.signature

    def _known(self, call: _Call) -> _Open | None:
        """The call that a piece goes on with; None when it begins one.

        Some servers leave the index out, or give every call the same one: then another id tells it. A repeated name
        tells nothing: some send it with each piece.
        """
        last = self._calls[-1] if self._calls else None
        known = last if call.index is None else self._by_index.get(call.index)
        if known is not None and call.id and known.id != call.id:
            return next((one for one in self._calls if one.id == call.id), None)
        return known

    def _stop(self, parts: list[Part]) -> None:
        """At `[DONE]`: a server that says so has come to the end of the reply, also without a finish reason."""
        if self._reason is None and not self._spoke and self._tags_are_empty():
            raise cut(self._target, "the stream ended before there was a reply")
        self._finish(parts)

    def _tags_are_empty(self) -> bool:
        return self._tags is None or not self._tags.holds

    def _finish(self, parts: list[Part]) -> None:
        parts += self.rest()
        if self._reason in _BROKEN:
            raise cut(self._target, f"it gave up ({self._reason})")
        self._end_thinking(parts)
        reason = "refusal" if self._refused else _REASONS.get(self._reason or "", "")
        reason = reason or ("tool_use" if self._calls else "end_turn")
        whole = self._calls[:-1] if reason == "length" else self._calls
        parts.extend(
            CallEnd(call.number, call.signature, self._target.author if call.signature else "") for call in whole
        )
        parts.append(Stopped(reason))
        self.stopped = True


def _counted(usage: _Usage) -> Counted:
    details = usage.prompt_tokens_details or _Details()
    read = details.cached_tokens or usage.cached_tokens or usage.prompt_cache_hit_tokens or 0
    write = details.cache_write_tokens or 0
    tokens = Tokens(max(0, usage.prompt_tokens - read - write), usage.completion_tokens, read, write)
    reasoning = (usage.completion_tokens_details or _OutputDetails()).reasoning_tokens or 0
    return Counted(tokens, reasoning)
