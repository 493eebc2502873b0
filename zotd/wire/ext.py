"""Frames between the host and one extension process (`docs/extensions.md`), and their decoding.

`read` is lenient, as the protocol requires: unknown fields are ignored, and `null` counts as absent, because Go encodes
an empty list as `null`. For a line that is no frame it returns the kind of fault, so that one bad frame affects nothing
else.
"""

import json
from enum import StrEnum

import msgspec

from zotd.wire.base import BadFrameError, Frozen, convert

PROTOCOL_VERSION = 1
"""Version of the extension protocol, sent in `hello_ack`."""

CALL_TOOL = "call_tool"
"""Name of the capability to call tools, in `hello` and in `hello_ack`."""


class Panel(Frozen, frozen=True):
    """Initial content of a panel."""

    id: str
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


# --- extension to host ----------------------------------------------------------------------------------------
#
# Fields with a few possible values are plain strings and not enumerations: an unknown value, from a newer protocol or a
# mistake, must not make the whole frame invalid. Their consumers validate them.


class Inbound(Frozen, tag_field="type", frozen=True):
    """Base class of frames from an extension."""


class Hello(Inbound, tag="hello", frozen=True):
    """Introduces the extension; must be its first frame."""

    name: str
    version: str = ""
    capabilities: tuple[str, ...] = ()


class RegisterCommand(Inbound, tag="register_command", frozen=True):
    """Registers a slash command for the sessions of the scope."""

    name: str
    description: str = ""


class RegisterTool(Inbound, tag="register_tool", frozen=True):
    """Registers a tool for the model; `core.registry` checks `schema`, `exposure` and `replay`."""

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
    """Type hints that the schema cannot express, by parameter; shown to the author, not to the model."""


class Subscribe(Inbound, tag="subscribe", frozen=True):
    """Subscribes to `events` and, as a guard, to `intercept`; adds to earlier subscriptions."""

    events: tuple[str, ...] = ()
    intercept: tuple[str, ...] = ()


class Instructions(Inbound, tag="instructions", frozen=True):
    """What the model should know about the tools of this extension; replaces what was said before. Empty: nothing."""

    text: str


class Mention(Frozen, frozen=True):
    """Something that a prompt can mention."""

    text: str
    """One word, as it stands behind the `@`."""
    detail: str = ""
    """What it is, for people."""


class Mentions(Inbound, tag="mentions", frozen=True):
    """What prompts can mention of this extension, for completion; replaces what was said before."""

    items: tuple[Mention, ...] = ()


class Ready(Inbound, tag="ready", frozen=True):
    """All registrations of the start have been sent."""


class CommandResponse(Inbound, tag="command_response", frozen=True):
    """Answer to `command_invoked`; `action` selects which of the other fields apply."""

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
    """Answer to `tool_call`; `exthost.content` decodes the blocks."""

    id: str
    # Not typed as blocks, so that one bad block does not make the whole frame a bad one.
    content: tuple[object, ...] = ()
    is_error: bool = False
    structured_content: object = None
    activate_tools: tuple[str, ...] = ()


class EventInterceptResponse(Inbound, tag="event_intercept_response", frozen=True):
    """Decision of a guard: the answer to `event_intercept`."""

    id: str
    block: bool = False
    reason: str = ""
    modified_args: object = None
    """Anything but a JSON object is ignored."""
    replace_text: str = ""
    """Empty: no rewrite, as in the original."""
    system_prompt: str | None = None
    context: str = ""
    """Text for the model beside a prompt or a result."""
    permission: str = ""
    """`ask` or `allow`: whether a person is asked about a call. Other words are ignored."""


class Notify(Inbound, tag="notify", frozen=True):
    """A note below the transcript."""

    message: str
    level: str = "info"
    session_id: str | None = None


class ClearNotes(Inbound, tag="clear_notes", frozen=True):
    """Withdraws all notes of this extension."""

    session_id: str | None = None


class OpenPanel(Inbound, tag="open_panel", frozen=True):
    """Opens a panel on the extension's own initiative, not as the answer to a command."""

    panel: Panel
    session_id: str | None = None


class PanelRender(Inbound, tag="panel_render", frozen=True):
    """Replaces the content of an open panel."""

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
    """Submits a prompt to a session, where it waits in the queue."""

    text: str
    session_id: str | None = None


class SubmitSlash(Inbound, tag="submit_slash", frozen=True):
    """Runs a slash command in a session, as if the user had typed it."""

    text: str
    session_id: str | None = None


class CallTool(Inbound, tag="call_tool", frozen=True):
    """Asks the host to run a tool."""

    id: str
    name: str
    args: dict[str, object] = {}  # noqa: RUF012  (msgspec copies an empty default)
    parent_id: str | None = None
    """Id of the `tool_call` or `command_invoked` on whose behalf the call is made."""
    session_id: str | None = None


class CallToolCancel(Inbound, tag="call_tool_cancel", frozen=True):
    """Cancels a `call_tool`; its answer is no longer needed."""

    id: str


class ToolProgress(Inbound, tag="tool_progress", frozen=True):
    """Progress of a running `tool_call`."""

    id: str
    text: str


class AskUser(Inbound, tag="ask_user", frozen=True):
    """Asks a person during a `tool_call`; any client can answer. It is over with the call."""

    id: str
    tool_call: str
    """Id of the `tool_call`."""
    message: str
    fields: dict[str, object] = {}  # noqa: RUF012  (msgspec copies an empty default)
    """The answers that are wanted, by name, with a value to begin with; empty: only whether the person agrees."""
    about: str = ""
    """What is wanted, a line for each."""


class PromptMessage(Frozen, frozen=True):
    """A message of a prompt for the model."""

    role: str
    """`user` or `assistant`."""
    content: tuple[object, ...] = ()
    """Blocks, as in `tool_result`."""


class AskModel(Inbound, tag="ask_model", frozen=True):
    """Asks the session's model during a `tool_call`. It is over with the call."""

    id: str
    tool_call: str
    """Id of the `tool_call`."""
    messages: tuple[PromptMessage, ...]
    system: str = ""
    max_tokens: int = 0
    """Most output tokens; 0: as many as the host allows."""


class SetStatus(Inbound, tag="set_status", frozen=True):
    """A segment of the status bar; empty text removes it."""

    key: str
    text: str = ""
    session_id: str | None = None


class Unregister(Inbound, tag="unregister", frozen=True):
    """Removes a registration; `kind` is `tool`, `command` or `channel`."""

    kind: str
    name: str


class RegisterChannel(Inbound, tag="register_channel", frozen=True):
    """Registers a messaging platform that the extension connects to."""

    name: str
    description: str = ""
    shows_busy: bool = False
    """Whether the host should send `channel_busy`; platforms without a typing indicator do not need it."""


class ChannelMessage(Inbound, tag="channel_message", frozen=True):
    """A message that a person sent on a channel."""

    channel: str
    sender: str
    text: str = ""
    images: tuple[object, ...] = ()
    metadata: dict[str, object] | None = None
    id: str | None = None
    """If set, the host answers with `channel_accepted` once the message is stored."""


class ChannelState(Inbound, tag="channel_state", frozen=True):
    """Reports the connection state of a channel; `error` is for the user."""

    channel: str
    state: str
    error: str = ""


class ChannelSent(Inbound, tag="channel_sent", frozen=True):
    """Answer to `channel_send`; an empty `error` means that the platform has accepted the message."""

    id: str
    error: str = ""


class ModuleError(Inbound, tag="module_error", frozen=True):
    """Reports that a Python module failed to load; an empty `error` reports that it loads again."""

    file: str
    error: str = ""


class ShutdownAck(Inbound, tag="shutdown_ack", frozen=True):
    """Answer to `shutdown`. Optional: the host waits for the exit, not for this frame."""


FromExtension = (
    Hello
    | RegisterCommand
    | RegisterTool
    | Subscribe
    | Instructions
    | Mentions
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
    | AskUser
    | AskModel
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
    """Base class of frames to an extension; fields without default are always sent."""


class HelloAck(Outbound, tag="hello_ack", frozen=True):
    """Answer to `hello`. `provider` and `model` are those of the session that opened the workspace."""

    protocol_version: int
    zot_version: str
    provider: str
    model: str
    cwd: str
    extension_dir: str
    """Directory of the extension's code; replaced by an update."""
    data_dir: str
    """Directory for the extension's state; kept by an update."""
    capabilities: tuple[str, ...]
    features: tuple[str, ...]


class CommandInvoked(Outbound, tag="command_invoked", frozen=True):
    """A user ran a command of the extension; `args` is the rest of the line, trimmed."""

    id: str
    name: str
    args: str
    session_id: str | None = None
    client_id: str | None = None
    cwd: str | None = None
    """Only for extensions of scope `daemon`, which serve many directories; the same in the next frames."""


class ToolCall(Outbound, tag="tool_call", frozen=True):
    """The model calls a tool of the extension; with `reconcile`, asks for the outcome of an earlier call instead."""

    id: str
    name: str
    args: dict[str, object]
    session_id: str | None = None
    operation_key: str | None = None
    reconcile: bool = False
    cwd: str | None = None
    traceparent: str | None = None


class ToolCancel(Outbound, tag="tool_cancel", frozen=True):
    """Cancels a `tool_call`; its answer is no longer needed."""

    id: str
    session_id: str | None = None
    cwd: str | None = None


class ToolAnswer(Outbound, tag="tool_result", frozen=True):
    """Answer to `call_tool`; the frame has the same type as the extension's own `tool_result`."""

    id: str
    name: str
    content: tuple[dict[str, object], ...]
    is_error: bool
    truncated: bool = False
    session_id: str | None = None
    cwd: str | None = None


class UserAnswer(Outbound, tag="user_answer", frozen=True):
    """Answer to `ask_user`."""

    id: str
    action: str
    """`accept`, `decline`, or `cancel`: nobody has answered."""
    values: dict[str, object]


class ModelAnswer(Outbound, tag="model_answer", frozen=True):
    """Answer to `ask_model`."""

    id: str
    action: str
    """`accept`; `decline`: a person or a rule does not want it; or `cancel`: there is no answer for another reason."""
    text: str = ""
    model: str = ""
    stop: str = ""
    """`end_turn`, or `length`: the limit of output was reached."""
    reason: str = ""
    """Why there is no answer."""


class Event(Outbound, tag="event", frozen=True, kw_only=True):
    """An event that the extension has subscribed to; `docs/extensions.md` lists the fields of each event."""

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
    """Asks a guard for a decision; `event` determines which of the optional fields are set."""

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
    result: dict[str, object] | None = None
    mode: str | None = None
    """The session's mode, for events about a prompt or a call."""
    traceparent: str | None = None


class PanelKey(Outbound, tag="panel_key", frozen=True):
    """A key pressed in a focused panel; for the key `rune`, `text` is the character."""

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
    """A button: its label, and the text that pressing it sends as the user's message."""

    label: str
    text: str


class ChannelSend(Outbound, tag="channel_send", frozen=True):
    """A message to a person on a channel."""

    id: str
    channel: str
    sender: str
    text: str
    metadata: dict[str, object] | None = None
    choices: tuple[ChannelChoice, ...] = ()
    """Buttons for a question; a platform without buttons can ignore them, because the text says what to write."""


class ChannelBusy(Outbound, tag="channel_busy", frozen=True):
    """The agent has started (`busy`) or stopped working on a message of this sender. The frame may be lost.

    It is sent again with a new `text` when the agent begins another step or tool.
    """

    channel: str
    sender: str
    busy: bool
    metadata: dict[str, object] | None = None
    """The `metadata` of the message that the agent works on."""
    text: str = ""


class ChannelAccepted(Outbound, tag="channel_accepted", frozen=True):
    """Answer to a `channel_message` with an `id`: it is stored or refused, so the extension need not send it again."""

    id: str


class Shutdown(Outbound, tag="shutdown", frozen=True):
    """Asks the process to exit; SIGTERM and SIGKILL follow if it does not (`core.supervision`)."""


ToExtension = (
    HelloAck
    | CommandInvoked
    | ToolCall
    | ToolCancel
    | ToolAnswer
    | UserAnswer
    | ModelAnswer
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
    """Why a line is not a valid frame."""

    STRAY = "stray"
    """Not a JSON object; usually output of a library."""
    UNKNOWN = "unknown"
    """Unknown `type`: a newer protocol, or a typing error."""
    BAD = "bad"
    """A known frame with a missing field, or one of the wrong type."""


class Skipped(msgspec.Struct, frozen=True):
    """A line that is not a valid frame, and why."""

    fault: Fault
    sentence: str
    """The error, for the extension's author."""
    type: str = ""
    id: str | None = None
    """For a bad frame: the id of the request it answers, which can then fail at once instead of timing out."""


KINDS: dict[str, type[FromExtension]] = {
    str(kind.__struct_config__.tag): kind for kind in FromExtension.__args__ if issubclass(kind, Inbound)
}
"""Struct of each frame that an extension may send, by its `type`."""

DECODER: msgspec.json.Decoder[FromExtension] = msgspec.json.Decoder(FromExtension)


def read(line: bytes) -> FromExtension | Skipped:
    """Decode a line into a frame, or into a `Skipped` with the reason; never raises."""
    # Most lines are valid: try the fast decoder first, and find out what is wrong only if it fails.
    try:
        return DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_again(line)


def _read_again(line: bytes) -> FromExtension | Skipped:
    """Decode a line that the strict decoder refused."""
    if not line.lstrip().startswith(b"{"):  # ten times as fast as the way below; programs print many such lines
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
    if name not in KINDS:  # the name comes from the extension and goes into logs: keep it short
        return Skipped(Fault.UNKNOWN, f'unknown frame type "{name[:80]}"', name[:80])
    try:
        return convert(_without_nulls(fields), KINDS[name])
    except BadFrameError as error:
        return _bad(name, fields.get("id"), error)


def _bad(name: str, key: object, error: BadFrameError) -> Skipped:
    return Skipped(Fault.BAD, f"bad frame `{name}`: {error}", name, key if isinstance(key, str) else None)


def _object(line: bytes) -> object:
    """Decode JSON; replace invalid UTF-8 by U+FFFD and lone surrogates by `?`."""
    # Two passes: `json` accepts lone surrogates, which encoding replaces; msgspec then enforces its own limits.
    # Slow, but only lines that the strict decoder has refused get here.
    value = json.loads(line.decode(errors="replace"))
    decoded: object = msgspec.json.decode(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return decoded


def _without_nulls(frame: dict[str, object]) -> dict[str, object]:
    """Remove members that are null from the frame and its panel; deeper nulls are data and stay."""
    kept = {name: value for name, value in frame.items() if value is not None}
    for name in ("panel", "open_panel"):
        panel = kept.get(name)
        if isinstance(panel, dict):
            kept[name] = {key: value for key, value in panel.items() if value is not None}
    return kept


def _shortened(line: bytes) -> str:
    text = line[:120].decode(errors="replace").strip()
    return repr(text if len(line) <= 120 else text + " …")
