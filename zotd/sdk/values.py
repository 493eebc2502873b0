"""What handlers are given and what they return: values that know nothing of the wire.

No dataclasses here: that module imports `inspect`, which would cost every extension about 10 ms of start-up time, and
twenty extensions may start at once.
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
"""How files of the image formats begin that models accept; WebP is told by `image_type`, its mark is not at the start."""


def image_type(data: bytes) -> str | None:
    """The media type of an image file's bytes; None if they are no PNG, JPEG, GIF or WebP."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in SIGNATURES if data.startswith(start)), None)


class Image(NamedTuple):
    """An image in a tool's result."""

    data: bytes
    """The image file, not base64."""
    mime_type: str

    @classmethod
    def from_bytes(cls, data: bytes, mime_type: str | None = None) -> Image:
        """An image from the bytes of its file.

        Raises:
            ValueError: `mime_type` is not given and the bytes are no PNG, JPEG, GIF or WebP.
        """
        mime_type = mime_type or image_type(data)
        if mime_type is None:
            raise ValueError(
                "the bytes are no PNG, JPEG, GIF or WebP image; name the type: Image.from_bytes(data, type)"
            )
        return cls(data, mime_type)


class Result(NamedTuple):
    """What a tool gives to the model, and what `Extension.call_tool` gives to the extension."""

    text: str = ""
    images: Sequence[Image] = ()
    structured: object = None
    """The result as JSON, for a tool with `output_schema`; None if there is none."""
    is_error: bool = False
    activate_tools: Sequence[str] = ()
    """Names of deferred tools that the model gets to see from now on."""
    truncated: bool = False
    """Set by the host on the answer to `call_tool` when it cut the result."""


class Decision:
    """What a guard decides. To allow, a guard returns None."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = fields
        """Of the frame `event_intercept_response`."""

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
    """What the host said about itself; see `docs/extensions.md`."""

    provider: str = ""
    """Of the session that opened the workspace; later changes are not announced."""
    model: str = ""
    cwd: str = ""
    """The directory that the sessions work in; the extension's own process runs in `extension_dir`."""
    extension_dir: str = ""
    data_dir: str = ""
    """Where the extension keeps its state."""
    features: Sequence[str] = ()
    zot_version: str = ""
    protocol_version: int = 1


class Event(NamedTuple):
    """What happened, or (for a guard) is about to happen; fields that the event does not have are empty."""

    name: str
    """`session_start`, `turn_start`, `tool_call`, `assistant_message`, `turn_end` …"""
    session_id: str = ""
    cwd: str = ""
    step: int = 0
    """Which model call of the run this is, from 1."""
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Mapping[str, object] = {}
    text: str = ""
    stop: str = ""
    """Why the turn ended: `end_turn`, `tool_use`, `length`, `error` or `aborted`."""
    error: str = ""
    system_prompt: str = ""
    fields: Mapping[str, object] = {}
    """The whole frame, for what newer hosts add."""


class Message(NamedTuple):
    """A message of a messaging platform: what a channel's `recv` returns and its `send` gets."""

    text: str
    sender: str
    channel: str
    metadata: Mapping[str, object] | None = None
    """The channel's own: comes back with the answer, unchanged."""
    images: Sequence[Image] = ()
    choices: Sequence[tuple[str, str]] = ()
    """Of a question: what a button says, and what its sender writes by pressing it. The text says what to write, too."""
