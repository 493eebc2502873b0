"""Content blocks, messages and token counts (`docs/protocol.md`).

The transcript keeps everything that a model needs (image data, signed thinking). Only `visible` turns it into what
clients get: images as byte counts, no thinking.
"""

import msgspec

from zotd.wire.base import Frozen


class Text(Frozen, tag_field="type", tag="text", frozen=True):
    """Plain text."""

    text: str
    item: str = ""
    """The vendor's id of the item that this text was; kept with the reasoning beside it, never sent to clients."""
    phase: str = ""
    """What the vendor says the text is for (`commentary`, `final_answer`); sent back to it, never to clients."""
    model: str = ""
    """As in `Thinking`; only beside a `phase`."""


class Image(Frozen, tag_field="type", tag="image", frozen=True):
    """An image of a prompt or a tool result."""

    mime_type: str
    bytes: int
    """Size of the decoded image."""
    data: str = ""
    """Base64; only included on request."""


class Thinking(Frozen, tag_field="type", tag="thinking", frozen=True):
    """A model's reasoning; kept because the vendor requires it in later requests, and never sent to clients."""

    text: str
    """What it thought; empty if the vendor shows a summary only."""
    signature: str = ""
    redacted: str = ""
    item: str = ""
    """Id of OpenAI's reasoning item."""
    encrypted: str = ""
    """The reasoning itself, which only the vendor can read."""
    summary: list[str] = msgspec.field(default_factory=list)
    """The vendor's summary of `encrypted`, in its parts."""
    model: str = ""
    """Vendor and model that wrote it, for example `openai/gpt-5.6-sol`. It is sent to no other: they refuse it. Empty in
    records of earlier versions."""


class ToolCall(Frozen, tag_field="type", tag="tool_call", frozen=True):
    """A tool call of the model."""

    id: str
    name: str
    args: dict[str, object]
    item: str = ""
    """As in `Text`."""
    signature: str = ""
    """The vendor's, for its next request, like that of `Thinking`; never sent to clients."""
    model: str = ""
    """Of a signed call: as in `Thinking`."""


class ToolResult(Frozen, tag_field="type", tag="tool_result", frozen=True):
    """The result of a tool call."""

    call_id: str
    is_error: bool
    content: list[Text | Image]


Block = Text | Image | Thinking | ToolCall | ToolResult

ToolContent = list[Text | Image]


class ShellRun(Frozen, frozen=True, kw_only=True):
    """A command that the user ran in a session."""

    id: str
    """Also the id of its run and in its `tool_progress` events."""
    command: str
    context: bool
    """Whether the model sees the command and its output with the next prompt."""
    exit: int | None = None
    """Exit code, or 128 + N after signal N; null: still running, aborted or interrupted."""
    took_s: float = 0.0
    interrupted: bool = False
    """The daemon stopped while it was running; its effect is unknown, and it is not run again."""


class Message(Frozen, frozen=True):
    """One entry of a transcript."""

    role: str
    """`user`, `assistant` or `tool`."""
    content: list[Block]
    time: str
    """RFC 3339, UTC, milliseconds."""
    seq: int | None = None
    """`seq` of the event that showed it; only in snapshots and in the session's history."""
    shell: ShellRun | None = None
    """Set if this is not a prompt but a command that the user ran, with its output; only in snapshots and in the
    history."""


class Tokens(Frozen, frozen=True, omit_defaults=False):
    """Tokens and their cost, of one model call or of many."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    cache_write_hour: int = 0
    """How many of `cache_write` were written for an hour, which costs more than five minutes."""

    @property
    def total(self) -> int:
        """All tokens, read and written, cached or not."""
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cost_usd + other.cost_usd,
            self.cache_write_hour + other.cache_write_hour,
        )


def visible(content: list[Block]) -> list[Block]:
    """Return `content` as clients see it."""
    shown: list[Block] = []
    for block in content:
        if isinstance(block, Text):
            shown.append(Text(block.text) if block.item or block.phase else block)
        elif not isinstance(block, Thinking):
            shown.append(_without_data(block))
    return shown


def _without_data(block: Block) -> Block:
    if isinstance(block, Image):  # clients can request the data with `get_messages`
        return Image(block.mime_type, block.bytes)
    if isinstance(block, ToolCall) and (block.item or block.signature):
        return ToolCall(block.id, block.name, block.args)
    if isinstance(block, ToolResult):
        shown = [Image(b.mime_type, b.bytes) if isinstance(b, Image) else b for b in block.content]
        return ToolResult(block.call_id, block.is_error, shown)
    return block


def with_notes(content: list[Block], *notes: str) -> list[Block]:
    """Return content with these notes at its end, those that are not empty, in its own text: some servers take one text only."""
    note = "\n\n".join(filter(None, notes))
    if note and content and isinstance(last := content[-1], Text):
        return [*content[:-1], Text(f"{last.text}\n\n{note}")]
    return [*content, Text(note)] if note else content
