"""A model call as a request of the Messages API, in bytes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from zotd.core.ports import ModelRequest, ToolSpec
from zotd.core.retry import ModelError
from zotd.providers.shared import EncodedTranscript, Preamble, Target, parameters
from zotd.wire.content import Block, Image, Message, Text, Thinking, ToolCall, ToolResult

OUTPUT_TOKENS = 28_000
"""Default of `max_tokens`: older models refuse a request whose input and `max_tokens` together
exceed the context window, and with compaction at 85 % of 200,000 tokens this much is left."""

BUDGETS = {"minimum": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_000}
"""Thinking tokens of models that take a budget; 1,024 is the API's least."""

EFFORTS = {"minimum": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
"""`output_config.effort` of models that decide themselves how much to think."""

_BUDGETED = re.compile(r"claude-(3|(opus|sonnet|haiku)-4-(\d{8}|[0-5]\b))")
"""Models that take a budget; the later ones refuse it (Opus 4.7 and on) or advise against it. Bedrock puts a prefix before
the name."""

_WITHOUT_XHIGH = re.compile(r"claude-(opus|sonnet)-4-6\b")
"""Models that know no effort between `high` and `max`."""

_CACHED = b',"cache_control":{"type":"ephemeral"}}'

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Fragment:
    """One message of ours, encoded: between two of the assistant everything, tools' results first, is one of `user`."""

    role: str
    """Role of the vendor's message that is open; empty if none has begun."""
    data: bytes
    """Goes on where the fragment before ends; empty when nothing of the message can be sent."""


class RequestWriter:
    """Writes the requests of one run; each message, the system prompt and the tools are encoded once."""

    def __init__(self, target: Target, *, names_model: bool = True) -> None:
        """`names_model`: False if the URL says which model is meant, so that the body must not."""
        self._model = target.model
        self._name = b'"model":%b,' % _encode(target.model.id) if names_model else b""
        self._extra = b"".join(_encode(k) + b":" + _encode(v) + b"," for k, v in target.vendor.extra.items())
        self._preamble = Preamble(_preamble)
        self._transcript = EncodedTranscript(_fragment)

    def body(self, request: ModelRequest) -> bytes:
        """The request's JSON."""
        thinking, budget = self._thinking(request)
        limit = self._model.max_output or OUTPUT_TOKENS
        tokens = request.max_output or min(limit, OUTPUT_TOKENS + budget)
        head = b'{%b"max_tokens":%d,"stream":true,' % (self._name, max(tokens, budget + 1))
        messages = _messages(self._transcript.encoded(request.messages))
        return b"".join(
            (head, thinking, self._extra, self._preamble.encoded(request), b'"messages":[', messages, b"]}")
        )

    def adapt(self, error: ModelError, request: ModelRequest) -> bool:
        """See `shared.sdk_client.RequestBody`; nothing that is sent can be left out."""
        del error, request
        return False

    def _thinking(self, request: ModelRequest) -> tuple[bytes, int]:
        """The fields that make it think, and the tokens that they take from its output."""
        if not self._model.reasoning or request.reasoning not in BUDGETS:
            return b"", 0
        if not _BUDGETED.search(self._model.id):
            effort = EFFORTS[request.reasoning]
            if effort == "xhigh" and _WITHOUT_XHIGH.search(self._model.id):
                effort = "high"
            return b'"thinking":{"type":"adaptive"},"output_config":{"effort":"%b"},' % effort.encode(), 0
        if not _may_think(request.messages):
            return b"", 0
        budget = BUDGETS[request.reasoning]
        return b'"thinking":{"type":"enabled","budget_tokens":%d},' % budget, budget


def _may_think(messages: Sequence[Message]) -> bool:
    """Whether a budget is allowed: not when tools answer an assistant message that was written without thinking."""
    if messages[-1].role != "tool":
        return True
    asking = next((m for m in reversed(messages) if m.role == "assistant"), None)
    return asking is not None and any(isinstance(b, Thinking) and (b.signature or b.redacted) for b in asking.content)


def _preamble(request: ModelRequest) -> bytes:
    fields = b""
    if request.system.strip():
        fields += b'"system":[' + _cached(_encode({"type": "text", "text": request.system})) + b"],"
    if request.tools:
        fields += b'"tools":[' + _cached(b",".join(_tool(spec) for spec in request.tools)) + b"],"
    return fields


def _tool(spec: ToolSpec) -> bytes:
    return _encode({"name": spec.name, "description": spec.description, "input_schema": parameters(spec)})


def _messages(fragments: Sequence[Fragment]) -> bytes:
    """The vendor's messages, with a breakpoint when the last one is the user's."""
    role = fragments[-1].role if fragments else ""
    joined = b"".join([fragment.data for fragment in fragments])
    if role == "user":
        joined = _cached(joined)
    return joined + b"]}" if role else b""


def _cached(objects: bytes) -> bytes:
    """`objects` with a cache breakpoint in the last one: what comes up to it, the vendor's cache holds next time.

    The three breakpoints (tools, system, transcript) are within the API's four.
    """
    return objects[:-1] + _CACHED


def _fragment(message: Message, before: Fragment | None) -> Fragment:
    content = b",".join(_encode(block) for block in map(_block, message.content) if block)
    last = before.role if before else ""
    if not content:
        return Fragment(last, b"")
    role = "assistant" if message.role == "assistant" else "user"
    if role == last:
        return Fragment(role, b"," + content)
    end = b"]}," if last else b""
    return Fragment(role, end + b'{"role":"%b","content":[' % role.encode() + content)


def _block(block: Block) -> dict[str, object] | None:
    match block:
        case Text(text):
            return {"type": "text", "text": text} if text.strip() else None  # the API refuses blank ones
        case Image(mime_type, _, data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}}
        case Thinking():
            return _thinking(block)
        case ToolCall(id, name, args):
            return {"type": "tool_use", "id": id, "name": name, "input": args}
        case ToolResult(id, is_error, content):
            blocks = [b for b in map(_block, content) if b]
            return {"type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": blocks}


def _thinking(block: Thinking) -> dict[str, object] | None:
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.redacted}
    if block.signature:
        return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    return None  # another vendor's
