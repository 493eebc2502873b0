"""When to summarise a transcript, what to keep of it, and what to ask the model for.

A call is never cut from its result: the kept tail begins at a user or an assistant message. Nothing is deleted;
the summary is a record that moves what the model sees.
"""

from collections.abc import Sequence

from zotd.wire.content import Block, Image, Message, Text, Thinking, ToolCall, ToolResult

KEPT_MESSAGES = 4
"""Roughly how many of the newest messages stay as they are: enough to go on in the middle of a thought."""

MAX_BLOCK_CHARS = 2_000
"""A longer tool result or argument is cut in the text that is summarised; its gist is in the reply that followed."""

MAX_OUTPUT = 4_096
"""Tokens that a summary may take."""

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


def tokens_limit(context_window: int, part: float) -> int | None:
    """From how many tokens on a transcript is summarised before the next step; None when the window is unknown."""
    return int(context_window * part) if context_window else None


def kept(messages: Sequence[Message]) -> int:
    """How many of the newest messages stay; fewer than all of them, or 0."""
    start = max(len(messages) - KEPT_MESSAGES, 1)
    while start < len(messages) and messages[start].role == "tool":
        start += 1
    return len(messages) - start if start < len(messages) else 0


def request(messages: Sequence[Message], instructions: str) -> list[Message]:
    """The one message that asks for a summary of `messages`; the transcript goes in as text.

    Sent as text and not as a conversation, because a model that is shown tool calls goes on calling tools.
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
