"""The stream of Ollama's `/api/chat`, translated.

line{message: thinking | content | tool_calls}* (line{done, done_reason, counts} | line{error})
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
from zotd.providers.shared.streaming import JsonLines
from zotd.wire.content import Tokens

_NO_REPLY = frozenset({"load", "unload"})
"""Reasons of an answer that only says what has become of the model."""


class _Function(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Call(msgspec.Struct):
    """Comes whole. Its `id`, which newer versions send, is not needed: ours are unique in the transcript."""

    function: _Function = msgspec.field(default_factory=_Function)


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(msgspec.Struct):
    model: str = ""
    message: _Message | None = None
    done: bool = False
    done_reason: str = ""
    prompt_eval_count: int = 0
    """With those that were cached."""
    prompt_eval_cached_count: int | None = None
    """Since version 0.33."""
    eval_count: int = 0
    error: object = None


_decode = msgspec.json.Decoder(_Line).decode


class ReplyReader:
    """Turns the lines of one answer into parts."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.frames = JsonLines()
        self._is_first = True
        """No line has come."""
        self._thinks = False
        self._calls = 0
        self.stopped = False
        self.failure: ModelError | None = None
        """Why nothing more can be read."""

    def feed(self, events: Sequence[bytes]) -> list[Part]:
        """The parts that these lines complete, up to what is an error or not its format (`failure`)."""
        parts: list[Part] = []
        try:
            for line in events:
                if self.stopped or self.failure is not None:
                    break
                self._line(line, parts)
        except ModelError as error:
            self.failure = error
        return parts

    def end(self) -> list[Part]:
        """Nothing more; `failure` when the stream has ended before the reply."""
        if not self.stopped and self.failure is None:
            self.failure = cut(self._target, "the stream ended in the middle")
        return []

    def rest(self) -> list[Part]:
        """Nothing: no part is held back."""
        return []

    def whole(self, body: bytes) -> list[Part]:
        """The parts of a reply that came as one document, which is a line like any other."""
        return self.feed([body])

    def _line(self, data: bytes, parts: list[Part]) -> None:
        try:
            line = _decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._not_a_line(data, "it sent malformed data") from error
        if line.error is not None:
            raise reported(self._target, {"error": line.error})
        if line.message is None and not line.done:
            raise self._not_a_line(data, "it sent other JSON")
        if self._is_first:
            self._is_first = False
            if line.model and line.model != self._target.model.id:
                parts.append(AnsweredBy(line.model))
        if line.message is not None:
            self._message(line.message, parts)
        if line.done:
            self._finish(line, parts)

    def _not_a_line(self, data: bytes, what: str) -> ModelError:
        """The failure of a line in another format: at the beginning something else answers, later the stream is broken."""
        return foreign(self._target, "other JSON", data) if self._is_first else cut(self._target, what)

    def _message(self, message: _Message, parts: list[Part]) -> None:
        if message.thinking:
            self._thinks = True
            parts.append(ThinkingChunk(message.thinking))
        if message.content:
            self._end_thinking(parts)
            parts.append(TextChunk(message.content))
        for call in message.tool_calls or ():
            self._end_thinking(parts)
            number, self._calls = self._calls, self._calls + 1
            arguments = bytes(call.function.arguments).decode()
            parts += (CallStart(number, call.function.name), CallArgs(number, arguments), CallEnd(number))

    def _end_thinking(self, parts: list[Part]) -> None:
        if self._thinks:
            self._thinks = False
            parts.append(Signature(model=self._target.author))

    def _finish(self, line: _Line, parts: list[Part]) -> None:
        if line.done_reason in _NO_REPLY:
            raise cut(self._target, f"it only said {line.done_reason}")
        self._end_thinking(parts)
        if line.prompt_eval_count or line.eval_count:
            read = min(line.prompt_eval_cached_count or 0, line.prompt_eval_count)
            parts.append(Counted(Tokens(line.prompt_eval_count - read, line.eval_count, read)))
        reason = "length" if line.done_reason == "length" else ""
        parts.append(Stopped(reason or ("tool_use" if self._calls else "end_turn")))
        self.stopped = True
