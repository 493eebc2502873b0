"""The Chat Completions API's stream, translated, as OpenAI and the many who imitate it send it.

chunk{delta}* chunk{finish_reason} chunk{usage}? [DONE]?
"""

import msgspec

from zotd.core.reply import CallArgs, CallEnd, CallStart, Counted, Part, Signature, Stopped, Text, Thinking
from zotd.providers.shared import Events, Target, cut, reported
from zotd.wire.content import Tokens

_REASONS = {"length": "length", "model_length": "length", "content_filter": "refusal"}
"""All others end the turn, or call tools when there are calls: not every server says `tool_calls` then."""

_BROKEN = frozenset({"error", "insufficient_system_resource"})
"""Reasons of Mistral and DeepSeek for giving up in the middle."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Piece(msgspec.Struct):
    """Mistral's reasoning models send content as a list of these."""

    text: str = ""
    thinking: "list[_Piece]" = []


class _Delta(msgspec.Struct):
    content: str | list[_Piece] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None
    cached_tokens: int | None = None
    """Moonshot."""
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek."""


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None
    usage: _Usage | None = None
    """Moonshot."""


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: object = None


class _Open(msgspec.Struct):
    """A call that is being written, under our number."""

    number: int
    id: str


_decode = msgspec.json.Decoder(_Chunk).decode


class ReplyReader:
    """Turns the bytes of one answer into parts."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._events = Events()
        self._calls: list[_Open] = []
        self._by_index: dict[int, _Open] = {}
        self._thinks = False
        self._reason: str | None = None
        self.stopped = False

    def feed(self, chunk: bytes) -> list[Part]:
        """The parts that these bytes complete; `ModelError` for a reported error, and for what is not its format."""
        return self._translate(self._events.feed(chunk))

    def end(self) -> list[Part]:
        """The last parts; `ModelError` when the stream has ended before a finish reason."""
        parts = self._translate(self._events.end())
        if not self.stopped:
            self._stop(parts)  # some servers never send [DONE]
        return parts

    def _translate(self, events: list[bytes]) -> list[Part]:
        parts: list[Part] = []
        for data in events:
            if data == b"[DONE]":
                self._stop(parts)
                continue
            try:
                chunk = _decode(data)
            except msgspec.DecodeError as error:
                raise cut(self._target, "it sent something that is not its own format") from error
            if chunk.error is not None:
                raise reported(self._target, chunk.error)
            if chunk.choices:
                self._choice(chunk.choices[0], parts)
            if chunk.usage is not None:
                parts.append(Counted(_tokens(chunk.usage)))
        return parts

    def _choice(self, choice: _Choice, parts: list[Part]) -> None:
        delta = choice.delta
        if delta is not None:
            content = delta.content
            if type(content) is str and content and not self._thinks:  # by far the most frequent
                parts.append(Text(content))
            elif content or delta.reasoning_content or delta.reasoning:
                self._say(delta, parts)
            if delta.tool_calls:
                self._end_thinking(parts)
                for call in delta.tool_calls:
                    self._call(call, parts)
        if choice.finish_reason:
            self._reason = choice.finish_reason
        if choice.usage is not None:
            parts.append(Counted(_tokens(choice.usage)))

    def _say(self, delta: _Delta, parts: list[Part]) -> None:
        thought = delta.reasoning_content or delta.reasoning or ""
        text = delta.content or ""
        if isinstance(text, list):
            thought += "".join(inner.text for piece in text for inner in piece.thinking)
            text = "".join(piece.text for piece in text)
        if thought:
            self._thinks = True
            parts.append(Thinking(thought))
        if text:
            self._end_thinking(parts)
            parts.append(Text(text))

    def _end_thinking(self, parts: list[Part]) -> None:
        if self._thinks:
            self._thinks = False
            parts.append(Signature())

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
        if self._reason is None:
            raise cut(self._target, "the stream ended in the middle")
        if self._reason in _BROKEN:
            raise cut(self._target, f"it gave up ({self._reason})")
        self._end_thinking(parts)
        reason = _REASONS.get(self._reason, "tool_use" if self._calls else "end_turn")
        whole = self._calls[:-1] if reason == "length" else self._calls
        parts.extend(CallEnd(call.number) for call in whole)
        parts.append(Stopped(reason))
        self.stopped = True


def _tokens(usage: _Usage) -> Tokens:
    details = usage.prompt_tokens_details or _Details()
    read = details.cached_tokens or usage.cached_tokens or usage.prompt_cache_hit_tokens or 0
    write = details.cache_write_tokens or 0
    return Tokens(max(0, usage.prompt_tokens - read - write), usage.completion_tokens, read, write)
