"""A model call as a request of Ollama's `/api/chat`, in bytes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import msgspec

from zotd.core.ports import ModelRequest
from zotd.core.retry import ModelError
from zotd.providers.shared import EncodedTranscript, Preamble, Target, parameters
from zotd.wire.content import Image, Message, Text, Thinking, ToolCall, ToolResult

LEVELS = {"minimum": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
"""`think`: the three words that every version with levels knows."""

_REFUSES_LEVELS = re.compile(r"think value .* is not supported")
"""Words of versions in which most models could only be told whether to think."""

_encode = msgspec.json.Encoder().encode


class _KnownCall(NamedTuple):
    """A call of the transcript, by its place in it."""

    number: int
    name: str


@dataclass(frozen=True, slots=True)
class OllamaMessage:
    """One message of ours, encoded."""

    message: bytes
    """Empty when nothing of it can be sent."""
    call: int = -1
    """Of a result: the number of its call within the transcript."""


class RequestWriter:
    """Writes the requests of one run; each message, the system prompt and the tools are encoded once."""

    def __init__(self, target: Target) -> None:
        self._vendor = target.vendor
        self._model = target.model
        self._author = target.author
        self._takes_levels = True
        self._preamble = Preamble(_tools)
        self._system = Preamble(_system)
        self._transcript = EncodedTranscript(lambda message, _: self._encoded(message))
        self._calls: dict[str, _KnownCall] = {}
        """By id."""

    def body(self, request: ModelRequest) -> bytes:
        """The request's JSON."""
        fields: dict[str, object] = {
            "model": self._model.id,
            "stream": True,
            "think": self._think(request),
            # Else a prompt that is too long loses its beginning, or its middle, and a reply forgets the prompt.
            "truncate": False,
            "shift": False,
            **self._vendor.extra,
            "options": self._options(request),
        }
        messages = b",".join(_in_order(self._transcript.encoded(request.messages)))
        head = _encode(fields)[:-1] + b","
        tools, system = self._preamble.encoded(request), self._system.encoded(request)
        return b"".join((head, tools, b'"messages":[', system, messages, b"]}"))

    def adapt(self, error: ModelError, request: ModelRequest) -> bool:
        """See `shared.conversation.RequestBody`: a level that is refused becomes `true`."""
        if not self._takes_levels or request.reasoning == "off" or not _REFUSES_LEVELS.search(error.sentence):
            return False
        self._takes_levels = False
        return True

    def _think(self, request: ModelRequest) -> bool | str:
        if request.reasoning == "off":
            return False
        return LEVELS.get(request.reasoning, "high") if self._takes_levels else True

    def _options(self, request: ModelRequest) -> dict[str, object]:
        """The size of the context window is the same in all requests of a run: another one loads the model anew."""
        given = self._vendor.extra.get("options")
        options: dict[str, object] = {**given} if isinstance(given, Mapping) else {}
        if self._model.context_window:
            options["num_ctx"] = self._model.context_window
        if request.max_output:
            options["num_predict"] = request.max_output
        return options

    def _encoded(self, message: Message) -> OllamaMessage:
        if message.role == "tool":
            return self._result(message)
        fields = self._assistant(message) if message.role == "assistant" else _user(message)
        return OllamaMessage(_encode(fields) if fields else b"")

    def _assistant(self, message: Message) -> dict[str, object] | None:
        calls = [block for block in message.content if isinstance(block, ToolCall)]
        for call in calls:
            self._calls.setdefault(call.id, _KnownCall(len(self._calls), call.name))
        thoughts = "".join(b.text for b in message.content if isinstance(b, Thinking) and self._is_own(b))
        text = "".join(block.text for block in message.content if isinstance(block, Text))
        if not (text or calls):
            return None
        fields: dict[str, object] = {"role": "assistant", "content": text}
        if thoughts:
            fields["thinking"] = thoughts  # the model's template decides which of them it reads again
        if calls:
            fields["tool_calls"] = [
                {"id": call.id, "function": {"index": index, "name": call.name, "arguments": call.args}}
                for index, call in enumerate(calls)
            ]
        return fields

    def _is_own(self, block: Thinking) -> bool:
        """Whether this model wrote it, in the clear."""
        return block.model == self._author and not (block.signature or block.redacted or block.encrypted)

    def _result(self, message: Message) -> OllamaMessage:
        (result,) = (block for block in message.content if isinstance(block, ToolResult))
        call = self._calls[result.call_id]
        text, images = _split(result.content)
        if result.is_error:  # the API has no field for it
            text = f"Error: {text}"
        names = {"tool_name": call.name, "tool_call_id": result.call_id}
        return OllamaMessage(_encode({"role": "tool", **names, "content": text, **images}), call.number)


def _in_order(encoded: Sequence[OllamaMessage]) -> Iterator[bytes]:
    """The messages, with the results of calls in the order of the calls: older versions know no ids and pair them by that."""
    for _, group in groupby(encoded, lambda one: one.call >= 0):
        yield from (one.message for one in sorted(group, key=lambda one: one.call) if one.message)


def _tools(request: ModelRequest) -> bytes:
    if not request.tools:
        return b""
    functions = ({"name": s.name, "description": s.description, "parameters": parameters(s)} for s in request.tools)
    return b'"tools":%b,' % _encode([{"type": "function", "function": function} for function in functions])


def _system(request: ModelRequest) -> bytes:
    if not request.system.strip():
        return b""
    return _encode({"role": "system", "content": request.system}) + b","


def _user(message: Message) -> dict[str, object] | None:
    text, images = _split([block for block in message.content if isinstance(block, Text | Image)])
    return {"role": "user", "content": text, **images} if text or images else None


def _split(blocks: Sequence[Text | Image]) -> tuple[str, dict[str, object]]:
    """The text of a message, and its images as a field; Ollama puts them before the text."""
    images = [block.data for block in blocks if isinstance(block, Image)]
    text = "\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)
    return text, {"images": images} if images else {}
