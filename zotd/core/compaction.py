"""When to summarise a transcript, which messages to keep, and how to ask the model for the summary.

A call is never separated from its result: the kept tail begins with a user or assistant message. Nothing is deleted;
the summary is a record that changes what the model sees.
"""

from collections.abc import Sequence

from zotd.wire.content import Block, Image, Message, Text, Thinking, ToolCall, ToolResult

KEPT_MESSAGES = 4
"""About how many of the newest messages are kept verbatim, so that the model can continue what it was doing."""

MAX_BLOCK_CHARS = 2_000
"""Longer tool results and arguments are cut in the text to summarise; the reply after them states what mattered."""

MAX_OUTPUT = 4_096
"""Most output tokens of a summary."""

SYSTEM = (
    "You write the notes that an engineer hands over in the middle of a task. You are given a conversation between a "
    "user and a coding agent. Do not continue it and do not answer it: only summarise it."
)

_ASK = """\
Summarise the conversation above for the agent that will take over. It sees your notes and nothing else of what was \
summarised. Use these headings, leave out the empty ones:

## Goal
What the user wants, with every constraint and preference that was stated.
## State
What is done, what is under way, what is left; name files, commands and results exactly.
## Decisions
What was decided, and why.
## Next
The very next step, and anything that must not be forgotten.
"""


def kept(messages: Sequence[Message]) -> int:
    """Return how many of the newest messages to keep: fewer than all, possibly 0."""
    start = max(len(messages) - KEPT_MESSAGES, 1)  # at least one message is summarised
    # Vendors refuse a tool result without its call.
    while start < len(messages) and messages[start].role == "tool":
        start += 1
    return len(messages) - start if start < len(messages) else 0


def request(messages: Sequence[Message], instructions: str) -> list[Message]:
    """Return the single message that asks for a summary of `messages`.

    The transcript is sent as text rather than as a conversation: a model that is shown tool calls continues to call
    tools.
    """
    parts = ["<conversation>"]
    parts += [_as_text(message) for message in messages]
    parts += ["</conversation>", "", _ASK]
    if instructions:
        parts.append(f"The user asks in particular: {instructions}")
    return [Message("user", [Text("\n".join(parts))], messages[-1].time if messages else "")]


def _as_text(message: Message) -> str:
    lines = [line for block in message.content if (line := _block(block))]
    return f"[{message.role}]\n" + "\n".join(lines)


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return text
        case Image(mime_type, size):
            return f"(an image, {mime_type}, {size} bytes)"
        case ToolCall(_, name, args):
            return f"(calls {name} with {_cut(str(args))})"
        case ToolResult(_, is_error, content):
            text = "\n".join(_block(part) for part in content)
            return f"({'failed' if is_error else 'result'}: {_cut(text)})"
        case Thinking():
            return ""


def _cut(text: str) -> str:
    if len(text) <= MAX_BLOCK_CHARS:
        return text
    half = MAX_BLOCK_CHARS // 2
    return f"{text[:half]} … {len(text) - MAX_BLOCK_CHARS} characters left out … {text[-half:]}"
