"""A model call as a request of the Responses API, in bytes.

Nothing is stored at the vendor: each request has the whole conversation, with the encrypted reasoning of earlier steps.
The vendor refuses a reasoning item without the item that follows it, so both come from one message of ours, in order.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TypeGuard

import msgspec

from zotd.core.ports import ModelRequest
from zotd.core.retry import Failure, ModelError
from zotd.providers.openai.responses.efforts import effort
from zotd.providers.shared import EncodedTranscript, Preamble, Target, parameters
from zotd.wire.content import Block, Image, Message, Text, Thinking, ToolCall, ToolResult

REASONING_TOKENS = 25_000
"""Added to a limit of output for a model that reasons: the limit counts both, and is meant for what is said."""

CACHE_KEY_CHARS = 64
"""Longest `prompt_cache_key`."""

_OF_REASONING = re.compile(r"encrypted[ _]content|Item (with id )?'(rs|msg|fc)_", re.IGNORECASE)
"""Refused: reasoning that another organisation or a changed key has paid for, or that has lost its neighbour."""

_OF_SUMMARY = re.compile(r"reasoning[ ._](summary|summaries)", re.IGNORECASE)
"""Refused: summaries, which some organisations get only after they have proved who they are."""

_OF_LIMIT = re.compile(r"max_output_tokens")
"""Refused: a limit of the output, which the backend of ChatGPT's subscriptions is said not to take."""

SUMMARY, LIMIT = "summary", "limit"
"""Stand for summaries and for a limit of the output among what a key cannot have."""

_encode = msgspec.json.Encoder().encode


class RequestWriter:
    """Writes the requests of one run; each message, the system prompt and the tools are encoded once."""

    def __init__(self, target: Target, refused: set[str]) -> None:
        """`refused`: what the vendor refuses this key, shared by all runs with it; see `adapt`."""
        self._target = target
        self._refused = refused
        self._preamble = Preamble(_preamble)
        self._transcript = self._new_transcript()
        self._unreadable: set[str] = set()
        """Encrypted reasoning that the vendor has refused to take back."""
        self._wants_summary = False
        """The last body asked for a summary."""

    def body(self, request: ModelRequest) -> bytes:
        """The request's JSON."""
        model = self._target.model
        word = effort(model.id, request.reasoning) if model.reasoning else None
        fields: dict[str, object] = {"model": model.id, "stream": True, "store": False}
        if model.reasoning:
            fields["include"] = ["reasoning.encrypted_content"]
            fields.update(self._reasoning(word))
        if request.cache_key:
            fields["prompt_cache_key"] = request.cache_key[:CACHE_KEY_CHARS]
        if request.max_output and LIMIT not in self._refused:
            reasons = model.reasoning and word != "none"
            fields["max_output_tokens"] = request.max_output + (REASONING_TOKENS if reasons else 0)
        fields.update(self._target.vendor.extra)
        items = b",".join(item for item in self._transcript.encoded(request.messages) if item)
        head = _encode(fields)[:-1] + b","
        return b"".join((head, self._preamble.encoded(request), b'"input":[', items, b"]}"))

    def adapt(self, error: ModelError, request: ModelRequest) -> bool:
        """Leave out of the next bodies what the vendor has refused, if it can be left out."""
        if error.failure is not Failure.REFUSED:
            return False
        if self._wants_summary and _OF_SUMMARY.search(error.sentence):
            self._refused.add(SUMMARY)
            return True
        if request.max_output and LIMIT not in self._refused and _OF_LIMIT.search(error.sentence):
            self._refused.add(LIMIT)
            return True
        blocks = [block for message in request.messages for block in message.content]
        sent = {block.encrypted for block in blocks if self._is_sent(block)}
        if not sent or not _OF_REASONING.search(error.sentence):
            return False
        self._unreadable |= sent
        self._transcript = self._new_transcript()
        return True

    def _new_transcript(self) -> EncodedTranscript[bytes]:
        return EncodedTranscript(lambda message, _: b",".join(map(_encode, self._items(message))))

    def _reasoning(self, word: str | None) -> dict[str, object]:
        fields: dict[str, object] = {} if word is None else {"effort": word}
        self._wants_summary = word != "none" and SUMMARY not in self._refused
        if self._wants_summary:
            fields["summary"] = "auto"
        return {"reasoning": fields} if fields else {}

    def _items(self, message: Message) -> Iterable[dict[str, object]]:
        match message.role:
            case "assistant":
                return self._said(message.content)
            case "tool":
                return [_result(block) for block in message.content if isinstance(block, ToolResult)]
            case _:
                parts = _parts(message.content)
                return [{"role": "user", "content": parts}] if parts else []

    def _said(self, blocks: Sequence[Block]) -> list[dict[str, object]]:
        """The items of a reply; reasoning at its end, to which nothing belongs, is left out."""
        items: list[dict[str, object]] = []
        reasoning: list[dict[str, object]] = []
        # Without its reasoning an item is sent without the id either, or the vendor would miss what belongs to it.
        is_own = False
        for block in blocks:
            if self._is_sent(block):
                reasoning.append(_thought(block))
            elif isinstance(block, ToolCall) or (isinstance(block, Text) and block.text):
                is_own |= bool(reasoning)
                items += reasoning
                reasoning.clear()
                items.append(
                    _call(block, is_own=is_own) if isinstance(block, ToolCall) else self._spoken(block, is_own=is_own)
                )
        return items

    def _spoken(self, block: Text, *, is_own: bool) -> dict[str, object]:
        phase = {"phase": block.phase} if block.phase and block.model in {"", self._target.author} else {}
        if not (is_own and block.item):
            return {"role": "assistant", "content": block.text, **phase}
        content = [{"type": "output_text", "text": block.text, "annotations": []}]
        return {
            "type": "message",
            "id": block.item,
            "role": "assistant",
            "status": "completed",
            "content": content,
            **phase,
        }

    def _is_sent(self, block: Block) -> TypeGuard[Thinking]:
        return (
            isinstance(block, Thinking)
            and bool(block.encrypted)
            and block.model == self._target.author
            and block.encrypted not in self._unreadable
        )


def _preamble(request: ModelRequest) -> bytes:
    fields = b""
    if request.system.strip():
        fields += b'"instructions":' + _encode(request.system) + b","
    if request.tools:
        tools = [
            {
                "type": "function",
                "name": spec.name,
                "description": spec.description,
                "parameters": parameters(spec),
                "strict": False,  # the default: every property is required and no other is allowed
            }
            for spec in request.tools
        ]
        fields += b'"tools":' + _encode(tools) + b","
    return fields


def _thought(block: Thinking) -> dict[str, object]:
    item: dict[str, object] = {"type": "reasoning"}
    if block.item:
        item["id"] = block.item
    item["summary"] = [{"type": "summary_text", "text": text} for text in block.summary]
    if block.text:
        item["content"] = [{"type": "reasoning_text", "text": block.text}]
    item["encrypted_content"] = block.encrypted
    return item


def _call(block: ToolCall, *, is_own: bool) -> dict[str, object]:
    item = {"id": block.item} if is_own and block.item else {}
    arguments = _encode(block.args).decode()
    return {"type": "function_call", **item, "call_id": block.id, "name": block.name, "arguments": arguments}


def _result(block: ToolResult) -> dict[str, object]:
    parts = _parts(block.content)
    if block.is_error:  # the API has no field for it
        parts.insert(0, {"type": "input_text", "text": "Error:"})
    texts = [part["text"] for part in parts if part["type"] == "input_text"]
    output = parts if len(texts) < len(parts) else "\n".join(map(str, texts))
    return {"type": "function_call_output", "call_id": block.call_id, "output": output}


def _parts(blocks: Sequence[Block]) -> list[dict[str, object]]:
    parts: list[dict[str, object]] = []
    for block in blocks:
        match block:
            case Text(text) if text:
                parts.append({"type": "input_text", "text": text})
            case Image(mime_type, _, data):
                url = f"data:{mime_type};base64,{data}"
                parts.append({"type": "input_image", "image_url": url, "detail": "auto"})
            case _:
                pass
    return parts
