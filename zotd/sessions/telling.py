"""A session's events as its extensions hear them (`docs/extensions.md`): the names are those of the protocol."""

from zotd.exthost.extension import About
from zotd.wire import events, ext
from zotd.wire.base import ENCODER
from zotd.wire.content import Image, Text

RESULT_BYTES = 256 * 1024
"""Longest result that is told; a longer one is only said to be so."""


def say(name: str, about: About, **fields: object) -> ext.Event:
    """An event about a session, with the fields that belong to it."""
    return ext.Event(event=name, session_id=about.session, cwd=about.cwd, **fields)  # type: ignore[arg-type]  # by name


def told(event: events.Event, about: About) -> ext.Event | None:
    """The event as extensions get it; None when it is not for them."""
    match event:
        case events.TurnStart(step=step):
            return say("turn_start", about, step=step)
        case events.AssistantMessage(content=content):
            text = "".join(block.text for block in content if isinstance(block, Text))
            return say("assistant_message", about, text=text or None)
        case events.ToolCallEvent(id=key, name=name, args=args):
            return say("tool_call", about, tool_id=key, tool_name=name, tool_args=args)
        case events.TurnEnd(stop=stop, error=error):
            return say("turn_end", about, stop=stop, error=error)
        case events.ToolResultEvent():
            return _result(event, about)
        case _:
            return None


def _result(event: events.ToolResultEvent, about: About) -> ext.Event:
    blocks = [
        {"type": "image", "mime_type": block.mime_type, "bytes": block.bytes}
        if isinstance(block, Image)
        else {"type": "text", "text": block.text}
        for block in event.content
    ]
    fits = len(ENCODER.encode(blocks)) <= RESULT_BYTES
    return say(
        "tool_result",
        about,
        tool_id=event.id,
        tool_name=event.name,
        status="failed" if event.is_error else "completed",
        result={"content": blocks if fits else [], "is_error": event.is_error, "truncated": not fits},
    )
