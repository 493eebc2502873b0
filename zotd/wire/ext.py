"""Frames between the host and one extension process (`docs/extensions.md`), and how a line becomes one.

`read` is forgiving as the protocol wants it: unknown fields are ignored, `null` counts as left out (Go writes it for an
empty list), and a line that is no frame is told apart by what is wrong with it, so that one bad frame costs itself only.
"""

import json
from enum import StrEnum

import msgspec

from zotd.wire.base import BadFrameError, Frozen, convert

PROTOCOL_VERSION = 1
"""`protocol_version` of `hello_ack`."""

CALL_TOOL = "call_tool"
"""The capability, of `hello` and of `hello_ack`."""


class Panel(Frozen, frozen=True):
    """The first picture of a panel."""

    id: str
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


# --- extension to host ----------------------------------------------------------------------------------------


class Inbound(Frozen, tag_field="type", frozen=True):
    """What every frame from an extension is."""


class Hello(Inbound, tag="hello", frozen=True):
    """The first frame."""

    name: str
    version: str = ""
    capabilities: tuple[str, ...] = ()


class RegisterCommand(Inbound, tag="register_command", frozen=True):
    """A slash command."""

    name: str
    description: str = ""


class RegisterTool(Inbound, tag="register_tool", frozen=True):
    """A tool for the model; whether `schema`, `exposure` and `replay` make sense is judged in `core.registry`."""

    name: str
    description: str = ""
    schema: dict[str, object] | None = None
    output_schema: dict[str, object] | None = None
    namespace: str = ""
    exposure: str = ""
    deferred: bool = False
    interactive: bool = False
    replay: str = "never"
    parallel: bool = True
    undescribed: dict[str, str] = {}  # noqa: RUF012  (msgspec copies an empty default)
    """Type hints of which the schema says nothing, by parameter; for the author, not for the model."""


class Subscribe(Inbound, tag="subscribe", frozen=True):
    """Events to be sent and to be asked about; adds to earlier ones."""

    events: tuple[str, ...] = ()
    intercept: tuple[str, ...] = ()


class Ready(Inbound, tag="ready", frozen=True):
    """The registrations of the start are all sent."""


class CommandResponse(Inbound, tag="command_response", frozen=True):
    """Answer to `command_invoked`."""

    id: str
    action: str = ""
    prompt: str = ""
    insert: str = ""
    display: str = ""
    open_panel: Panel | None = None
    tool_name: str = ""
    tool_args: dict[str, object] | None = None
    error: str = ""


class ToolResult(Inbound, tag="tool_result", frozen=True):
    """Answer to `tool_call`; the blocks are read by `exthost.content`."""

    id: str
    content: tuple[object, ...] = ()
    is_error: bool = False
    structured_content: object = None
    activate_tools: tuple[str, ...] = ()


class EventInterceptResponse(Inbound, tag="event_intercept_response", frozen=True):
    """Answer to `event_intercept`."""

    id: str
    block: bool = False
    reason: str = ""
    modified_args: object = None
    """Anything but a JSON object is ignored."""
    replace_text: str = ""
    """Empty: no rewrite, as in the original."""
    system_prompt: str | None = None


class Notify(Inbound, tag="notify", frozen=True):
    """A note below the transcript."""

    message: str
    level: str = "info"
    session_id: str | None = None


class ClearNotes(Inbound, tag="clear_notes", frozen=True):
    """Withdraws all notes of this extension."""

    session_id: str | None = None


class OpenPanel(Inbound, tag="open_panel", frozen=True):
    """A panel that nobody asked for."""

    panel: Panel
    session_id: str | None = None


class PanelRender(Inbound, tag="panel_render", frozen=True):
    """A panel's new picture."""

    panel_id: str
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""
    session_id: str | None = None


class PanelClose(Inbound, tag="panel_close", frozen=True):
    """The extension closes its panel."""

    panel_id: str
    session_id: str | None = None


class Submit(Inbound, tag="submit", frozen=True):
    """Queue a prompt."""

    text: str
    session_id: str | None = None


class SubmitSlash(Inbound, tag="submit_slash", frozen=True):
    """Run a slash command."""

    text: str
    session_id: str | None = None


class CallTool(Inbound, tag="call_tool", frozen=True):
    """Asks the host to run a tool."""

    id: str
    name: str
    args: dict[str, object] = {}  # noqa: RUF012  (msgspec copies an empty default)
    parent_id: str | None = None
    """The `tool_call` or `command_invoked` that it is made for."""
    session_id: str | None = None


class CallToolCancel(Inbound, tag="call_tool_cancel", frozen=True):
    """The answer to a `call_tool` is not wanted any more."""

    id: str


class ToolProgress(Inbound, tag="tool_progress", frozen=True):
    """Progress of a running `tool_call`."""

    id: str
    text: str


class SetStatus(Inbound, tag="set_status", frozen=True):
    """A segment of the status bar; empty text removes it."""

    key: str
    text: str = ""
    session_id: str | None = None


class Unregister(Inbound, tag="unregister", frozen=True):
    """Takes a registration back; `kind` is `tool`, `command` or `channel`."""

    kind: str
    name: str


class RegisterChannel(Inbound, tag="register_channel", frozen=True):
    """A messaging platform."""

    name: str
    description: str = ""
    shows_busy: bool = False
    """It wants `channel_busy`."""


class ChannelMessage(Inbound, tag="channel_message", frozen=True):
    """Somebody wrote on a channel."""

    channel: str
    sender: str
    text: str = ""
    images: tuple[object, ...] = ()
    metadata: dict[str, object] | None = None
    id: str | None = None
    """The extension wants to know when the message is safe: answered by `channel_accepted`."""


class ChannelState(Inbound, tag="channel_state", frozen=True):
    """A channel is connected, or is not."""

    channel: str
    state: str
    error: str = ""


class ChannelSent(Inbound, tag="channel_sent", frozen=True):
    """Answer to `channel_send`."""

    id: str
    error: str = ""


class ModuleError(Inbound, tag="module_error", frozen=True):
    """A Python module that failed to load; an empty error: it is mended."""

    file: str
    error: str = ""


class ShutdownAck(Inbound, tag="shutdown_ack", frozen=True):
    """A courtesy."""


FromExtension = (
    Hello
    | RegisterCommand
    | RegisterTool
    | Subscribe
    | Ready
    | CommandResponse
    | ToolResult
    | EventInterceptResponse
    | Notify
    | ClearNotes
    | OpenPanel
    | PanelRender
    | PanelClose
    | Submit
    | SubmitSlash
    | CallTool
    | CallToolCancel
    | ToolProgress
    | SetStatus
    | Unregister
    | RegisterChannel
    | ChannelMessage
    | ChannelState
    | ChannelSent
    | ModuleError
    | ShutdownAck
)


# --- host to extension ----------------------------------------------------------------------------------------


class Outbound(Frozen, tag_field="type", frozen=True):
    """What every frame to an extension is; a field without default is always sent."""


class HelloAck(Outbound, tag="hello_ack", frozen=True):
    """Answer to `hello`. `provider` and `model` are those of the session that opened the workspace."""

    protocol_version: int
    zot_version: str
    provider: str
    model: str
    cwd: str
    extension_dir: str
    """The code."""
    data_dir: str
    """Where state goes."""
    capabilities: tuple[str, ...]
    features: tuple[str, ...]


class CommandInvoked(Outbound, tag="command_invoked", frozen=True):
    """Somebody typed a command; `args` is the rest of the line, trimmed."""

    id: str
    name: str
    args: str
    session_id: str | None = None
    client_id: str | None = None
    cwd: str | None = None
    """For extensions of scope `daemon`, which serve many directories; so in the next frames."""


class ToolCall(Outbound, tag="tool_call", frozen=True):
    """The model calls a tool."""

    id: str
    name: str
    args: dict[str, object]
    session_id: str | None = None
    operation_key: str | None = None
    reconcile: bool = False
    cwd: str | None = None


class ToolCancel(Outbound, tag="tool_cancel", frozen=True):
    """The answer to a `tool_call` is not wanted any more."""

    id: str
    session_id: str | None = None
    cwd: str | None = None


class ToolAnswer(Outbound, tag="tool_result", frozen=True):
    """Answer to `call_tool`."""

    id: str
    name: str
    content: tuple[dict[str, object], ...]
    is_error: bool
    truncated: bool = False
    session_id: str | None = None
    cwd: str | None = None


class Event(Outbound, tag="event", frozen=True, kw_only=True):
    """Something happened (`docs/extensions.md`); which fields come with which event is told there."""

    event: str
    session_id: str | None = None
    cwd: str | None = None
    step: int | None = None
    tool_id: str | None = None
    tool_name: str | None = None
    tool_args: dict[str, object] | None = None
    text: str | None = None
    stop: str | None = None
    error: str | None = None
    reason: str | None = None
    queued: bool | None = None
    image_count: int | None = None
    decision: str | None = None
    source: str | None = None
    stage: str | None = None
    status: str | None = None
    executed: bool | None = None
    result: dict[str, object] | None = None
    compaction_id: str | None = None
    message_count: int | None = None
    token_estimate: int | None = None
    agent_id: str | None = None
    agent_run_id: str | None = None
    name: str | None = None


class EventIntercept(Outbound, tag="event_intercept", frozen=True, kw_only=True):
    """A guard is asked; exactly one of the groups of optional fields is there."""

    id: str
    event: str
    session_id: str | None = None
    cwd: str | None = None
    tool_id: str | None = None
    tool_name: str | None = None
    tool_args: dict[str, object] | None = None
    step: int | None = None
    text: str | None = None
    system_prompt: str | None = None


class PanelKey(Outbound, tag="panel_key", frozen=True):
    """A key in a focused panel; `text` goes with the key `rune`."""

    panel_id: str
    key: str
    text: str = ""
    session_id: str | None = None
    cwd: str | None = None


class PanelResize(Outbound, tag="panel_resize", frozen=True):
    """A panel's size, in columns and rows."""

    panel_id: str
    width: int
    height: int
    session_id: str | None = None
    cwd: str | None = None


class PanelClosed(Outbound, tag="panel_close", frozen=True):
    """The user has closed a panel."""

    panel_id: str
    session_id: str | None = None
    cwd: str | None = None


class ChannelChoice(Frozen, frozen=True):
    """A button: what it says, and what the sender writes by pressing it."""

    label: str
    text: str


class ChannelSend(Outbound, tag="channel_send", frozen=True):
    """A message for somebody on a channel."""

    id: str
    channel: str
    sender: str
    text: str
    metadata: dict[str, object] | None = None
    choices: tuple[ChannelChoice, ...] = ()
    """Of a question; a platform without buttons leaves them out, for the text says what to write."""


class ChannelBusy(Outbound, tag="channel_busy", frozen=True):
    """The agent works on a message of this sender from now on, or (`busy` false) does not any more. May be lost.

    Comes again when it does something else, with `text`: the step, the tool.
    """

    channel: str
    sender: str
    busy: bool
    metadata: dict[str, object] | None = None
    """Of the message."""
    text: str = ""


class ChannelAccepted(Outbound, tag="channel_accepted", frozen=True):
    """Answer to a `channel_message` with an `id`: it is on disk, or was refused; the platform may forget it."""

    id: str


class Shutdown(Outbound, tag="shutdown", frozen=True):
    """Leave now."""


ToExtension = (
    HelloAck
    | CommandInvoked
    | ToolCall
    | ToolCancel
    | ToolAnswer
    | Event
    | EventIntercept
    | PanelKey
    | PanelResize
    | PanelClosed
    | ChannelSend
    | ChannelBusy
    | ChannelAccepted
    | Shutdown
)


# --- lines ----------------------------------------------------------------------------------------------------


class Fault(StrEnum):
    """Why a line is no frame."""

    STRAY = "stray"
    """No JSON object: something that a library printed, most of the time."""
    UNKNOWN = "unknown"
    """A frame of a newer protocol, or a misspelt one."""
    BAD = "bad"
    """A known frame with a field that is missing or of the wrong type."""


class Skipped(msgspec.Struct, frozen=True):
    """Stands for a line that is no frame."""

    fault: Fault
    sentence: str
    """What is wrong, for the extension's author."""
    type: str = ""
    id: str | None = None
    """Of a bad frame: the request that it would have answered."""


KINDS: dict[str, type[FromExtension]] = {
    str(kind.__struct_config__.tag): kind for kind in FromExtension.__args__ if issubclass(kind, Inbound)
}
"""Every frame that an extension may send, by its `type`."""

DECODER: msgspec.json.Decoder[FromExtension] = msgspec.json.Decoder(FromExtension)


def read(line: bytes) -> FromExtension | Skipped:
    """The frame that `line` holds, or why it holds none; never raises."""
    try:
        return DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_again(line)


def _read_again(line: bytes) -> FromExtension | Skipped:
    """The slow way, for a line that is not quite a frame."""
    if not line.lstrip().startswith(b"{"):  # found out ten times as fast as below: programs print a lot
        return Skipped(Fault.STRAY, f"not a JSON object: {_shortened(line)}")
    try:
        fields = _object(line)
    except (ValueError, RecursionError) as error:
        return Skipped(Fault.STRAY, f"not a JSON object: {_shortened(line)} ({error})")
    assert isinstance(fields, dict)
    return _frame(fields)


def _frame(fields: dict[str, object]) -> FromExtension | Skipped:
    name = fields.get("type")
    if not isinstance(name, str):
        return Skipped(Fault.BAD, "a frame without `type`")
    if name not in KINDS:
        return Skipped(Fault.UNKNOWN, f'unknown frame type "{name[:80]}"', name[:80])
    try:
        return convert(_without_nulls(fields), KINDS[name])
    except BadFrameError as error:
        return _bad(name, fields.get("id"), error)


def _bad(name: str, key: object, error: BadFrameError) -> Skipped:
    return Skipped(Fault.BAD, f"bad frame `{name}`: {error}", name, key if isinstance(key, str) else None)


def _object(line: bytes) -> object:
    """A JSON value in which what is not Unicode, in bytes or as half a surrogate pair, has become `?` or U+FFFD."""
    value = json.loads(line.decode(errors="replace"))
    decoded: object = msgspec.json.decode(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return decoded


def _without_nulls(frame: dict[str, object]) -> dict[str, object]:
    """The frame, and an object in it, without members that are null; deeper ones are somebody's data."""
    kept = {name: value for name, value in frame.items() if value is not None}
    for name in ("panel", "open_panel"):
        panel = kept.get(name)
        if isinstance(panel, dict):
            kept[name] = {key: value for key, value in panel.items() if value is not None}
    return kept


def _shortened(line: bytes) -> str:
    text = line[:120].decode(errors="replace").strip()
    return repr(text if len(line) <= 120 else text + " …")
