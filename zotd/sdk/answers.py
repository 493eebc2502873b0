"""Converts the return values of handlers into frames for the host."""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Mapping

from .panel import OpenPanel
from .pipe import Frame, plain
from .shapes import ArgumentError
from .values import Decision, Display, Image, Insert, Noop, Prompt, Result
from .work import Cancelled

EXPECTED_ERRORS = (ArgumentError, Cancelled)
"""Errors of the model or the user, which need no traceback in the log."""

DECISIONS: Mapping[str, frozenset[str]] = {
    "user_prompt_submit": frozenset({"block", "reason", "context"}),
    "tool_call": frozenset({"block", "reason", "modified_args", "permission"}),
    "tool_result": frozenset({"context"}),
    "turn_start": frozenset({"block", "reason"}),
    "assistant_message": frozenset({"block", "reason", "replace_text"}),
    "before_agent_start": frozenset({"system_prompt"}),
}
"""Fields of a guard's answer that have an effect, by event (`docs/extensions.md`)."""


def message_of(error: BaseException) -> str:
    """Return the message of an exception for the model or the user."""
    text = str(error)
    # str() of a KeyError is only the quoted key, which says nothing without the name of the exception.
    return text if text and not isinstance(error, KeyError) else f"{type(error).__name__} {text}".rstrip()


def tool_result(call_id: str, value: object, *, structured: bool = False) -> Frame:
    """Build the result of a tool. `structured`: the tool has an output schema, so a JSON value is also its structured result.

    Raises:
        TypeError, ValueError: the value is neither JSON nor an image.
    """
    result = _result(value)
    content: list[Frame] = [_image(image) for image in result.images]
    # A result needs at least one block; an empty text beside an image would be noise.
    if result.text or not content:
        content.insert(0, {"type": "text", "text": result.text})
    frame: Frame = {"type": "tool_result", "id": call_id, "content": content, "is_error": result.is_error}
    if structured and not isinstance(value, Result):
        result = result._replace(structured=value)
    if result.structured is not None:
        frame["structured_content"] = result.structured
    if result.activate_tools:
        frame["activate_tools"] = list(result.activate_tools)
    return frame


def tool_error(call_id: str, error: BaseException) -> Frame:
    """Build the result of a tool that has failed."""
    return tool_result(call_id, Result(message_of(error), is_error=True))


def command_response(call_id: str, value: object, error: BaseException | None) -> Frame:
    """Build the answer to a slash command; `error` takes precedence over `value`."""
    frame: Frame = {"type": "command_response", "id": call_id, "action": "noop"}
    if error is not None:
        frame["error"] = message_of(error)
    elif isinstance(value, Prompt):
        frame.update(action="prompt", prompt=value.text)
    elif isinstance(value, Insert):
        frame.update(action="insert", insert=value.text)
    elif isinstance(value, OpenPanel):
        frame.update(action="open_panel", open_panel=value.panel.content())
    elif isinstance(value, Display) or (isinstance(value, str) and value):
        frame.update(action="display", display=value.text if isinstance(value, Display) else value)
    elif not (value is None or value == "" or isinstance(value, Noop)):
        kind = type(value).__name__
        frame["error"] = (
            f"the command returned a {kind}; it may return text, Prompt, Insert, Display, Noop or OpenPanel"
        )
    return frame


def verdict(event: str, value: object) -> Mapping[str, object]:
    """Return the fields of a guard's answer; empty if it allows.

    Raises:
        TypeError: the value is not a decision about this event.
    """
    if value is None:
        return {}
    if not isinstance(value, Decision):
        raise TypeError(f"the guard of {event} returned a {type(value).__name__}, not a Decision or None")
    # The host would ignore such a field silently, and the author would believe that the event was blocked.
    wrong = set(value.fields) - DECISIONS.get(event, frozenset(value.fields))
    if wrong:
        raise TypeError(
            f"the guard of {event} decided about {', '.join(sorted(wrong))}, which this event does not have"
        )
    return value.fields


def _result(value: object) -> Result:
    if isinstance(value, Result):
        return value
    if isinstance(value, Image):
        return Result(images=[value])
    if isinstance(value, bytes):
        return Result(images=[Image.from_bytes(value)])
    if value is None or isinstance(value, str):
        return Result(value or "")
    # NaN and Infinity are not JSON; the host would skip the whole line.
    return Result(json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain))


def _image(image: Image) -> Frame:
    return {"type": "image", "mime_type": image.mime_type, "data": b2a_base64(image.data, newline=False).decode()}
