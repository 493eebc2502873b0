"""Exports a session's events as Markdown for people to read."""

import json
from collections.abc import Iterable

from zotd.wire import events
from zotd.wire.content import Block, Image, ShellRun, Text

MAX_RESULT_LINES = 40
"""Longest tool result. The export is for reading; the JSON lines export has all of it."""


def render(shown: Iterable[events.Event]) -> str:
    """Return a section for each event that people read; other events are omitted."""
    return "".join(section + "\n\n" for event in shown if (section := _section(event)))


def _section(event: events.Event) -> str:
    section = ""
    match event:
        case events.UserMessage(content=content, time=time, shell=ShellRun()):
            section = f"## You, at the shell, {time}\n\n{_fenced(_cut(_blocks(content)), '')}"
        case events.UserMessage(content=content, time=time):
            section = f"## You, {time}\n\n{_blocks(content)}"
        case events.AssistantMessage(content=content):
            section = _blocks(content)
        case events.ToolCallEvent(name=name, args=args):
            section = f"**{name}**\n\n{_fenced(json.dumps(args, ensure_ascii=False, indent=1), 'json')}"
        case events.ToolResultEvent(is_error=is_error, content=content):
            section = ("It failed:\n\n" if is_error else "") + _fenced(_cut(_blocks(list(content))), "")
        case events.CompactDone(summary=summary):
            section = f"## Compacted\n\n{summary}"
        case events.Rewound():
            section = "> **Rewound** to this point; the messages in between are left out."
        case events.Forked(origin=origin, file=file):
            section = f"> **Forked:** the messages above are from {file or origin}."
        case events.Error(message=text) | events.Interrupted(text=text):
            section = f"> **{type(event).__name__}:** {text}"
        case _:
            pass  # not part of the conversation, or contained in another event
    return section


def _blocks(content: list[Block]) -> str:
    parts: list[str] = []
    for block in content:
        match block:
            case Text(text):
                parts.append(text)
            case Image(mime_type, size):
                parts.append(f"*(an image, {mime_type}, {size} bytes)*")
            case _:
                pass  # calls have events of their own, thinking is not shown
    return "\n\n".join(parts)


def _fenced(text: str, language: str) -> str:
    """Return a code block with a fence that is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _cut(text: str) -> str:
    lines = text.splitlines()
    left = len(lines) - MAX_RESULT_LINES
    return text if left <= 0 else "\n".join([*lines[:MAX_RESULT_LINES], f"… {left} more lines"])
