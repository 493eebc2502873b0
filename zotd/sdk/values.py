"""Arguments and return values of handlers, independent of the protocol.

No dataclasses: that module imports `inspect`, which would delay the start of every extension by about 10 ms, and twenty
extensions may start at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
"""First bytes of the image formats that models accept. `image_type` handles WebP, whose signature is not at the start."""


def image_type(data: bytes) -> str | None:
    """Return the media type of an image file; None if it is not PNG, JPEG, GIF or WebP."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in SIGNATURES if data.startswith(start)), None)


class Image(NamedTuple):
    """An image in the result of a tool."""

    data: bytes
    """Bytes of the image file, not base64."""
    mime_type: str

    @classmethod
    def from_bytes(cls, data: bytes, mime_type: str | None = None) -> Image:
        """Create an image from the bytes of its file.

        Raises:
            ValueError: `mime_type` is not given and the bytes are not PNG, JPEG, GIF or WebP.
        """
        mime_type = mime_type or image_type(data)
        if mime_type is None:
            raise ValueError(
                "the bytes are no PNG, JPEG, GIF or WebP image; name the type: Image.from_bytes(data, type)"
            )
        return cls(data, mime_type)


class Result(NamedTuple):
    """The result of a tool: returned by a tool's function, and by `Extension.call_tool`."""

    text: str = ""
    images: Sequence[Image] = ()
    structured: object = None
    """The result as JSON, for a tool with `output_schema`; None if there is none."""
    is_error: bool = False
    activate_tools: Sequence[str] = ()
    """Names of deferred tools to show to the model from now on."""
    truncated: bool = False
    """Set by the host on the answer to `call_tool` when it cut the result."""


class Decision:
    """The decision of a guard. To allow, a guard returns None instead."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = fields
        """Fields of the frame `event_intercept_response`."""

    @classmethod
    def block(cls, reason: str) -> Decision:
        """Refuse; `reason` is read by the model (a tool call) or by the user (a turn, a message)."""
        return cls({"block": True, "reason": reason})

    @classmethod
    def args(cls, args: Mapping[str, object]) -> Decision:
        """Run the tool with these arguments instead; only for `tool_call`."""
        return cls({"modified_args": dict(args)})

    @classmethod
    def text(cls, text: str) -> Decision:
        """Show the user this text instead; only for `assistant_message`."""
        return cls({"replace_text": text})

    @classmethod
    def system_prompt(cls, text: str) -> Decision:
        """Use this system prompt instead; only for `before_agent_start`, at most 1 MiB."""
        return cls({"system_prompt": text})

    @classmethod
    def context(cls, text: str) -> Decision:
        """Show the model this text beside the prompt or the result; for `user_prompt_submit` and `tool_result`."""
        return cls({"context": text})

    @classmethod
    def ask(cls, reason: str) -> Decision:
        """Have a person decide about the call, whatever the session's mode; only for `tool_call`."""
        return cls({"permission": "ask", "reason": reason})

    @classmethod
    def allow(cls) -> Decision:
        """Run the call without the question that the session's mode would ask; only for `tool_call`.

        Rules, the mode `read-only` and the border of a jail still decide.
        """
        return cls({"permission": "allow"})


class Prompt(NamedTuple):
    """A command's answer: submit `text` as a message of the user."""

    text: str


class Insert(NamedTuple):
    """A command's answer: put `text` into the user's editor, at the cursor."""

    text: str


class Display(NamedTuple):
    """A command's answer: show `text` once; no model call, nothing in the transcript."""

    text: str


class Noop(NamedTuple):
    """A command's answer: nothing is left to do."""


class HelloAck(NamedTuple):
    """The host's `hello_ack`; see `docs/extensions.md`."""

    provider: str = ""
    """Provider of the session that opened the workspace; later changes are not announced."""
    model: str = ""
    cwd: str = ""
    """Working directory of the sessions; the extension itself runs in `extension_dir`."""
    extension_dir: str = ""
    data_dir: str = ""
    """Directory for the extension's state."""
    features: Sequence[str] = ()
    zot_version: str = ""
    protocol_version: int = 1


class Event(NamedTuple):
    """An event that has happened or, for a guard, is about to happen. Fields that it does not have are empty."""

    name: str
    """`session_start`, `turn_start`, `tool_call`, `assistant_message`, `turn_end` …"""
    session_id: str = ""
    cwd: str = ""
    step: int = 0
    """Number of the model call in its run, from 1."""
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Mapping[str, object] = {}
    text: str = ""
    stop: str = ""
    """Why the turn ended: `end_turn`, `tool_use`, `length`, `error` or `aborted`."""
    error: str = ""
    system_prompt: str = ""
    fields: Mapping[str, object] = {}
    """The whole frame, including fields that newer hosts add."""
    traceparent: str = ""
    """The span of a guard's answer (W3C Trace Context), for spans of its own; empty if the host makes no traces."""


class Message(NamedTuple):
    """A message of a messaging platform: what a channel's `recv` returns and its `send` gets."""

    text: str
    sender: str
    channel: str
    metadata: Mapping[str, object] | None = None
    """Data of the channel, which comes back unchanged with the answer."""
    images: Sequence[Image] = ()
    choices: Sequence[tuple[str, str]] = ()
    """Answers to a question: the label of a button and the text that pressing it sends. `text` also names what to write."""
