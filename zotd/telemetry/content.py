"""What was said, as attributes of spans; only with `telemetry.content`.

The form is that of the semantic conventions for generative AI: JSON texts of messages with parts.
"""

from collections.abc import Mapping, Sequence

from zotd.core import records
from zotd.wire import events
from zotd.wire.base import ENCODER
from zotd.wire.content import Block, Image, Text, ToolCall

Said = Mapping[str, object]
"""A message."""

MAX_CHARS = 64 * 1024
"""Longest attribute; of a longer one the beginning is kept. Collectors refuse requests of some megabytes."""


def heard(event: events.UserMessage) -> Said:
    """Return a prompt."""
    return {"role": "user", "parts": parts(event.content)}


def answered(result: records.CallResult) -> Said:
    """Return the result of a tool call."""
    part = {"type": "tool_call_response", "id": result.call_id, "response": parts(result.content)}
    return {"role": "tool", "parts": [part]}


def written(content: Sequence[Block], finish_reason: str) -> Said:
    """Return a reply."""
    return {"role": "assistant", "parts": parts(content), "finish_reason": finish_reason}


def arguments(content: Sequence[Block]) -> dict[str, Mapping[str, object]]:
    """Return the arguments of a reply's calls, by call."""
    return {block.id: block.args for block in content if isinstance(block, ToolCall)}


def parts(content: Sequence[Block]) -> list[Said]:
    """Return the texts, images (as their size) and calls of a message."""
    found: list[Said] = []
    for block in content:
        match block:
            case Text(text):
                found.append({"type": "text", "content": text})
            case ToolCall(key, name, args):
                found.append({"type": "tool_call", "id": key, "name": name, "arguments": args})
            case Image():
                found.append({"type": "image", "mime_type": block.mime_type, "bytes": block.bytes})
            case _:
                pass  # thinking is signed for the vendor and shown to no one else
    return found


def encoded(value: object) -> str:
    """Return the value as JSON, cut after `MAX_CHARS`."""
    return ENCODER.encode(value).decode()[:MAX_CHARS]
