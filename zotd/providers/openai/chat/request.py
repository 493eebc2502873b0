"""A model call as a request of the Chat Completions API, in bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from zotd.core.ports import ModelRequest
from zotd.core.retry import ModelError
from zotd.providers.catalog.figures import reasons_without_tools
from zotd.providers.shared import EncodedTranscript, Preamble, Target, parameters
from zotd.wire.content import Image, Message, Text, Thinking, ToolCall, ToolResult

EFFORTS = {"minimum": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
"""`reasoning_effort`: the three words that every reasoning model knows."""

SHORT_ID = 9
"""Length of a call id that `Vendor.short_call_ids` means. The last characters of ours are random."""

UNSIGNED = "skip_thought_signature_validator"
"""What Gemini accepts as the signature of a call that it has not made itself. It checks the first call of each step."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """One message of ours, encoded."""

    role: str
    message: bytes
    """Empty when nothing of it can be sent."""
    images: bytes = b""
    """Images of a tool's result: parts separated by commas. The API accepts none in a message of role `tool`."""


class RequestWriter:
    """Writes the requests of one run; each message, the system prompt and the tools are encoded once."""

    def __init__(self, target: Target) -> None:
        self._vendor = target.vendor
        self._model = target.model
        self._author = target.author
        self._preamble = Preamble(_tools)
        self._system = Preamble(_system)
        self._transcript = EncodedTranscript(lambda message, _: self._fragment(message))

    def body(self, request: ModelRequest) -> bytes:
        """The request's JSON."""
        fields: dict[str, object] = {"model": self._model.id, "stream": True, **self._reasoning(request)}
        if self._vendor.stream_options:
            fields["stream_options"] = {"include_usage": True}
        if request.max_output:
            fields[self._vendor.max_tokens_field] = request.max_output
        fields.update(self._vendor.extra)
        messages = b",".join(_messages(self._transcript.encoded(request.messages)))
        head = _encode(fields)[:-1] + b","
        tools, system = self._preamble.encoded(request), self._system.encoded(request)
        return b"".join((head, tools, b'"messages":[', system, messages, b"]}"))

    def adapt(self, error: ModelError, request: ModelRequest) -> bool:
        """See `shared.conversation.RequestBody`; nothing that is sent can be left out."""
        del error, request
        return False

    def _reasoning(self, request: ModelRequest) -> dict[str, object]:
        style, effort = self._vendor.reasoning_style, EFFORTS.get(request.reasoning)
        if not style or not self._model.reasoning:
            return {}
        if request.tools and style == "effort" and reasons_without_tools(self._model.id):
            return {"reasoning_effort": "none"}
        if effort is None:
            return {}
        return {"reasoning": {"effort": effort}} if style == "object" else {"reasoning_effort": effort}

    def _fragment(self, message: Message) -> EncodedMessage:
        if message.role == "tool":
            return self._results(message)
        encoded = self._assistant(message) if message.role == "assistant" else _user(message)
        return EncodedMessage(message.role, _encode(encoded) if encoded else b"")

    def _assistant(self, message: Message) -> dict[str, object] | None:
        text = "".join(block.text for block in message.content if isinstance(block, Text))
        calls = [self._call(block) for block in message.content if isinstance(block, ToolCall)]
        if calls and self._vendor.thought_signatures and "extra_content" not in calls[0]:
            calls[0]["extra_content"] = _signed(
                UNSIGNED
            )  # another model's call, or one from before signatures were kept
        if not text and not calls:
            return None
        encoded: dict[str, object] = {"role": "assistant", "content": text}  # never null: some servers refuse that
        if calls:
            encoded["tool_calls"] = calls
        thoughts = [b.text for b in message.content if isinstance(b, Thinking) and self._is_own(b) and _is_plain(b)]
        if thoughts and self._vendor.echo_reasoning:
            encoded["reasoning_content"] = "".join(thoughts)
        return encoded

    def _call(self, call: ToolCall) -> dict[str, object]:
        function = {"name": call.name, "arguments": _encode(call.args).decode()}
        encoded: dict[str, object] = {"id": self._call_id(call.id), "type": "function", "function": function}
        if call.signature and self._vendor.thought_signatures and self._is_own(call):
            encoded["extra_content"] = _signed(call.signature)
        return encoded

    def _is_own(self, block: Thinking | ToolCall) -> bool:
        """Whether this model wrote it; also True for a block of an earlier version, which did not keep its author."""
        return block.model in {"", self._author}

    def _results(self, message: Message) -> EncodedMessage:
        results = [block for block in message.content if isinstance(block, ToolResult)]
        encoded = b",".join(_encode(self._result(result)) for result in results)
        images = [b for result in results for b in result.content if isinstance(b, Image)]
        return EncodedMessage("tool", encoded, b",".join(_encode(_image(image)) for image in images))

    def _result(self, result: ToolResult) -> dict[str, object]:
        texts = [b.text if isinstance(b, Text) else "(an image, shown below)" for b in result.content]
        text = "\n".join(texts)
        if result.is_error:  # the API has no field for it
            text = f"Error: {text}"
        return {"role": "tool", "tool_call_id": self._call_id(result.call_id), "content": text}

    def _call_id(self, call_id: str) -> str:
        return call_id[-SHORT_ID:] if self._vendor.short_call_ids else call_id


def _is_plain(block: Thinking) -> bool:
    """Whether it is thinking in the clear, not that of a vendor who signs or encrypts it."""
    return not (block.signature or block.redacted or block.encrypted)


def _signed(signature: str) -> dict[str, object]:
    return {"google": {"thought_signature": signature}}


def _tools(request: ModelRequest) -> bytes:
    if not request.tools:
        return b""
    functions = ({"name": s.name, "description": s.description, "parameters": parameters(s)} for s in request.tools)
    return b'"tools":%b,' % _encode([{"type": "function", "function": function} for function in functions])


def _system(request: ModelRequest) -> bytes:
    if not request.system.strip():
        return b""
    return _encode({"role": "system", "content": request.system}) + b","


def _messages(fragments: Sequence[EncodedMessage]) -> Iterable[bytes]:
    """The vendor's messages: images of tools come as a user's, once all calls of their step are answered."""
    images: list[bytes] = []
    for fragment in fragments:
        if images and fragment.role != "tool":
            yield _shown(images)
            images = []
        if fragment.message:
            yield fragment.message
        if fragment.images:
            images.append(fragment.images)
    if images:
        yield _shown(images)


def _shown(images: list[bytes]) -> bytes:
    return b'{"role":"user","content":[%b]}' % b",".join(images)


def _user(message: Message) -> dict[str, object] | None:
    parts = [part for part in map(_part, message.content) if part]
    if not parts:
        return None
    if len(parts) == 1 and parts[0]["type"] == "text":
        return {"role": "user", "content": parts[0]["text"]}  # every server takes that, few of the small ones a list
    return {"role": "user", "content": parts}


def _part(block: object) -> dict[str, object] | None:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text} if block.text else None
    return _image(block) if isinstance(block, Image) else None


def _image(image: Image) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}
