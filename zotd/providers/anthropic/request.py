"""A model call as a request of the Messages API, in bytes.

Up to four break points say what the vendor's cache is to hold: everything from the beginning to there, in the order tools,
system prompt, messages. The cache is looked at no more than 20 blocks before a break point, and a step may add more: so one
break point is where the request before this one ended, and there the cache has an entry.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from zotd.core.ports import ModelRequest, ToolSpec
from zotd.core.records import CacheLife
from zotd.core.retry import Failure, ModelError
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

_BREAK_POINTS: dict[CacheLife, bytes] = {
    "5m": b',"cache_control":{"type":"ephemeral"}}',
    "1h": b',"cache_control":{"type":"ephemeral","ttl":"1h"}}',
    "off": b"}",
}
"""How an object ends that is a break point. All of a request are of one kind: the API wants those of an hour first."""

_SHORTER: dict[CacheLife, CacheLife] = {"1h": "5m", "5m": "off"}

_OF_CACHE = re.compile(r"cache_control|\bttl\b", re.IGNORECASE)
"""Refused: break points, by servers that only imitate the API; an hour also by Bedrock, for older models."""

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

    def __init__(self, target: Target, *, refused: set[tuple[str, CacheLife]], names_model: bool = True) -> None:
        """`refused`: models and the lives that the server does not offer for them, shared by all runs; see `adapt`.

        `names_model`: False if the URL says which model is meant, so that the body must not.
        """
        self._model = target.model
        self._name = b'"model":%b,' % _encode(target.model.id) if names_model else b""
        self._extra = b"".join(_encode(k) + b":" + _encode(v) + b"," for k, v in target.vendor.extra.items())
        self._refused = refused
        self._life: CacheLife = "5m"
        """That of the last body."""
        self._preamble = self._new_preamble()
        self._target = target
        self._transcript = EncodedTranscript(partial(_fragment, target))

    def body(self, request: ModelRequest) -> bytes:
        """The request's JSON."""
        thinking, budget = self._thinking(request)
        limit = self._model.max_output or OUTPUT_TOKENS
        tokens = request.max_output or min(limit, OUTPUT_TOKENS + budget)
        head = b'{%b"max_tokens":%d,"stream":true,' % (self._name, max(tokens, budget + 1))
        if (life := self._offered(request.cache_life)) != self._life:
            self._life = life
            self._preamble = self._new_preamble()
        messages = _messages(self._transcript.encoded(request.messages), _BREAK_POINTS[life])
        return b"".join(
            (head, thinking, self._extra, self._preamble.encoded(request), b'"messages":[', messages, b"]}")
        )

    def adapt(self, error: ModelError, request: ModelRequest) -> bool:
        """Ask for a shorter life in the cache from now on if the server has refused this one, or for none."""
        shorter = _SHORTER.get(self._life)
        if shorter is None or error.failure is not Failure.REFUSED or not _OF_CACHE.search(error.sentence):
            return False
        self._refused.add((self._model.id, self._life))
        return self._offered(request.cache_life) == shorter

    def _offered(self, life: CacheLife) -> CacheLife:
        """`life`, or the longest that the server has not refused."""
        while self._refused and (self._model.id, life) in self._refused:
            life = _SHORTER[life]
        return life

    def _new_preamble(self) -> Preamble:
        return Preamble(partial(_preamble, _BREAK_POINTS[self._life]))

    def _thinking(self, request: ModelRequest) -> tuple[bytes, int]:
        """The fields that make it think, and the tokens that they take from its output."""
        if not self._model.reasoning or request.reasoning not in BUDGETS:
            return b"", 0
        if not _BUDGETED.search(self._model.id):
            effort = EFFORTS[request.reasoning]
            if effort == "xhigh" and _WITHOUT_XHIGH.search(self._model.id):
                effort = "high"
            return b'"thinking":{"type":"adaptive"},"output_config":{"effort":"%b"},' % effort.encode(), 0
        if not _may_think(request.messages, self._target):
            return b"", 0
        budget = BUDGETS[request.reasoning]
        return b'"thinking":{"type":"enabled","budget_tokens":%d},' % budget, budget


def _may_think(messages: Sequence[Message], target: Target) -> bool:
    """Whether a budget is allowed: not when tools answer an assistant message that was written without thinking."""
    if messages[-1].role != "tool":
        return True
    asking = next((m for m in reversed(messages) if m.role == "assistant"), None)
    return asking is not None and any(isinstance(b, Thinking) and _thinking(b, target) for b in asking.content)


def _preamble(end: bytes, request: ModelRequest) -> bytes:
    """`end`: how the last tool and the system prompt end."""
    fields = b""
    if request.tools:
        fields += b'"tools":[' + b",".join(_tool(spec) for spec in request.tools)[:-1] + end + b"],"
    if request.system.strip():
        fields += b'"system":[' + _encode({"type": "text", "text": request.system})[:-1] + end + b"],"
    return fields


def _tool(spec: ToolSpec) -> bytes:
    return _encode({"name": spec.name, "description": spec.description, "input_schema": parameters(spec)})


def _messages(fragments: Sequence[Fragment], end: bytes) -> bytes:
    """The vendor's messages; `end`: how the blocks of the user end at which the last request and this one end."""
    if not fragments or not (role := fragments[-1].role):
        return b""
    sent = _sent_before(fragments)
    before = b"".join([fragment.data for fragment in fragments[:sent]])
    new = b"".join([fragment.data for fragment in fragments[sent:]])
    if before:
        before = before[:-1] + end
    if role == "user":
        new = new[:-1] + end
    return before + new + b"]}"


def _sent_before(fragments: Sequence[Fragment]) -> int:
    """How many of the fragments the request had that led to the last reply; what it had last is the user's.

    It follows from the transcript alone, so it is also right after a restart, a rewind, and with inputs that joined.
    """
    at = len(fragments)
    while at and fragments[at - 1].role != "assistant":
        at -= 1
    while at and fragments[at - 1].role == "assistant":
        at -= 1
    return at


def _fragment(target: Target, message: Message, before: Fragment | None) -> Fragment:
    content = b",".join(_encode(block) for block in (_block(block, target) for block in message.content) if block)
    last = before.role if before else ""
    if not content:
        return Fragment(last, b"")
    role = "assistant" if message.role == "assistant" else "user"
    if role == last:
        return Fragment(role, b"," + content)
    end = b"]}," if last else b""
    return Fragment(role, end + b'{"role":"%b","content":[' % role.encode() + content)


def _block(block: Block, target: Target) -> dict[str, object] | None:
    match block:
        case Text(text):
            return {"type": "text", "text": text} if text.strip() else None  # the API refuses blank ones
        case Image(mime_type, _, data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}}
        case Thinking():
            return _thinking(block, target)
        case ToolCall(id, name, args):
            return {"type": "tool_use", "id": id, "name": name, "input": args}
        case ToolResult(id, is_error, content):
            blocks = [b for b in (_block(block, target) for block in content) if b]
            return {"type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": blocks}


def _thinking(block: Thinking, target: Target) -> dict[str, object] | None:
    if block.model not in {"", target.author}:
        return None  # another model's: this one cannot check its signature
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.redacted}
    if block.signature:
        return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    return None  # in the clear, of a model that signs nothing
