"""Makes a model call that a model of 135 million parameters understands: few tokens, and examples of what is wanted.

Such a model calls no tool that it has not seen called, and reads 120 to 290 tokens a second on two cores: the
instructions of a coding agent would take it half a minute. It gets a sentence instead, one tool, and three exchanges:
300 tokens. With these, SmolLM2 called `read` and repeated the word it found in 144 of 144 tries.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from zotd.core.ports import ModelRequest, ToolSpec
from zotd.wire.content import Message, Text, ToolCall, ToolResult

SYSTEM = "You read files."

OUTPUT_TOKENS = 96
"""Enough for a call or a sentence; a model this small does not always find an end by itself."""

SHOWN_TOOL = "read"
"""The only tool that the examples call, and therefore the only one that is offered."""

_EXAMPLES = (
    ("Read the file notes.txt", "notes.txt", "harbour"),
    ("What is in the file docs/plan.md?", "docs/plan.md", "copper"),
    ("Read the file todo.txt and tell me the word.", "todo.txt", "lantern"),
)
"""One with a folder, or the model writes dots for slashes. The answers begin unlike any question: with "The file …"
the model answers at once instead of calling."""


def shortened(request: ModelRequest) -> ModelRequest:
    """The request with examples before the transcript and nothing that the model cannot use."""
    tools = [_slim(spec) for spec in request.tools if spec.name == SHOWN_TOOL]
    messages = [*_MESSAGES, *request.messages] if tools else list(request.messages)
    limit = min(request.max_output or OUTPUT_TOKENS, OUTPUT_TOKENS)
    return replace(request, system=SYSTEM, tools=tools, messages=messages, max_output=limit)


def _slim(spec: ToolSpec) -> ToolSpec:
    """The tool with its required parameters only, and without descriptions of them."""
    required, properties = spec.schema.get("required"), spec.schema.get("properties")
    names = required if isinstance(required, list) else []
    known = properties if isinstance(properties, Mapping) else {}
    kept = {name: {"type": "string"} for name in names if name in known}
    return ToolSpec(spec.name, "Read a file.", {"type": "object", "properties": kept, "required": names})


def _exchange(question: str, path: str, word: str) -> Iterable[Message]:
    call_id = f"example_{path.partition('.')[0]}"
    yield Message("user", [Text(question)], "")
    yield Message("assistant", [ToolCall(call_id, SHOWN_TOOL, {"path": path})], "")
    yield Message("tool", [ToolResult(call_id, is_error=False, content=[Text(f"{word}\n")])], "")
    yield Message("assistant", [Text(f"It says: {word}")], "")


_MESSAGES = tuple(message for example in _EXAMPLES for message in _exchange(*example))
"""Made once: messages keep their identity, and so what they were encoded to."""
