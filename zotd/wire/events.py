"""All events, as a tagged union (`docs/protocol.md`).

Committed events have a `seq`; live ones (`LIVE`) do not, and may be merged for a slow client. On stdio, events have
neither `session` nor `seq`.
"""

import msgspec

from zotd.wire.base import Frozen
from zotd.wire.content import Block, Image, ShellRun, Text, Tokens
from zotd.wire.jobs import JobInfo
from zotd.wire.plan import Plan


class Event(Frozen, tag_field="type", frozen=True, kw_only=True):
    """Fields of every event."""

    session: str | None = None
    seq: int | None = None
    """Dense per session from 1; None for live events."""


class UserMessage(Event, tag="user_message", frozen=True):
    """A prompt was added to the transcript."""

    content: list[Block]
    time: str
    input: str | None = None
    run: str | None = None
    sender: str | None = None
    """Name of the client, shown to others."""
    shell: ShellRun | None = None
    """Set if this is not a prompt but a command that the user ran, with its output; the model may not see it."""


class ShellStart(Event, tag="shell_start", frozen=True):
    """A command of the user starts; followed by its output as `tool_progress`, a `user_message` and `done`."""

    id: str
    command: str
    context: bool
    """Whether the model sees the command and its output with the next prompt."""
    sender: str | None = None
    """Name of the client, shown to others."""


class TurnStart(Event, tag="turn_start", frozen=True):
    """A model call starts; steps count from 1 in each run."""

    step: int


class AssistantStart(Event, tag="assistant_start", frozen=True):
    """The provider accepted the request and starts its reply."""


class TextDelta(Event, tag="text_delta", frozen=True):
    """A piece of the reply's text."""

    delta: str


class ThinkingDelta(Event, tag="thinking_delta", frozen=True):
    """A piece of the model's reasoning, which is not in the transcript; not sent on stdio."""

    delta: str
    """Empty if a guard has to check all text first."""


class ToolUseStart(Event, tag="tool_use_start", frozen=True):
    """The model starts to write a tool call."""

    id: str
    name: str


class ToolUseArgs(Event, tag="tool_use_args", frozen=True):
    """A piece of the call's arguments, as JSON text."""

    id: str
    delta: str


class ToolUseEnd(Event, tag="tool_use_end", frozen=True):
    """The call's arguments are complete."""

    id: str


class Usage(Event, tag="usage", frozen=True):
    """Tokens of one model call and of the session so far."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cost_usd: float
    cumulative: Tokens
    reasoning: int = 0
    """Tokens of `output` that were reasoning; absent if there were none, or the vendor does not say."""


class AssistantMessage(Event, tag="assistant_message", frozen=True):
    """The complete reply of one step."""

    content: list[Block]
    time: str


class ToolCallEvent(Event, tag="tool_call", frozen=True):
    """The model requests a tool call, with these arguments."""

    id: str
    name: str
    args: dict[str, object]


class TurnEnd(Event, tag="turn_end", frozen=True):
    """One model call is complete; its tool calls have not run yet."""

    stop: str
    """`end_turn`, `tool_use`, `length`, `error` or `aborted`."""
    error: str | None = None


class ToolStart(Event, tag="tool_start", frozen=True):
    """A tool call starts to run, after guards and approval; not sent on stdio."""

    id: str


class ToolProgress(Event, tag="tool_progress", frozen=True):
    """Output of a tool while it runs."""

    id: str
    text: str


class ToolResultEvent(Event, tag="tool_result", frozen=True):
    """A tool call is complete."""

    id: str
    is_error: bool
    content: list[Text | Image]
    name: str | None = None
    extension: str | None = None
    time: str | None = None


class CompactDone(Event, tag="compact_done", frozen=True):
    """The transcript was summarised."""

    summary: str


class Error(Event, tag="error", frozen=True):
    """Something failed; the message is one sentence that says what to do."""

    message: str


class Done(Event, tag="done", frozen=True):
    """A run or compaction is over; sent exactly once for each."""

    run: str | None = None


class ApprovalChoice(Frozen, frozen=True):
    """One way to allow more than the pending call."""

    id: str
    """Value for `choice` of `approve`: `same` (this command or file), `prefix` (commands that begin with the same
    words) or `edits` (every edit and write in the workspace)."""
    text: str
    """What it covers, as text for the user."""
    scopes: list[str]
    """How long it can be allowed: `session`, `always`."""
    rules: str
    """The rules it creates, as TOML; `always` adds them to `config.toml`."""


class ApprovalRequested(Event, tag="approval_requested", frozen=True):
    """A tool call needs approval."""

    approval: str
    tool_id: str
    tool: str
    """The tool of the call; `sampling:` and the name of an extension if the call, which runs, wants to ask the session's model: `preview`
    says what; `question` if the call, which runs, asks a person: `preview` says what, `args` are the answers so far,
    and who allows it with other `args` answers; `files` if its command was refused to change files outside of its jail, with `paths` and `command`
    as `args`; `network` if its command runs and wants to reach a host, with `host`, `port` and `command` as
    `args`."""
    args: dict[str, object]
    args_digest: str
    preview: str | None = None
    """What the call would do, as text for the user: a diff, a command line, or the arguments."""
    expires: str | None = None
    rule: str | None = None
    """The rule, as TOML, that `scope: session` applies and `always` adds to `config.toml` when the decision has no
    `choice`. Absent: without a `choice`, only `once` is possible."""
    choices: list[ApprovalChoice] = msgspec.field(default_factory=list)
    """All ways to allow more than this call. Empty: only `once` is possible."""
    subagent: str | None = None
    """The session that asks, a subagent of `session`, which waits for it. `approve` takes either of the two. Such an event has no
    `seq`, and the snapshots of both sessions have it."""


class ApprovalResolved(Event, tag="approval_resolved", frozen=True):
    """An approval request was decided, or is no longer pending."""

    approval: str
    decision: str
    """`allow`, `deny` or `cancelled`."""
    scope: str
    by: str
    """The client that decided. Empty: none did, and `reason` says why the request is no longer pending."""
    reason: str | None = None


class QueueItem(Frozen, frozen=True):
    """A queued input."""

    id: str
    text: str
    sender: str
    mode: str
    """`queue` or `steer`."""


class QueueChanged(Event, tag="queue_changed", frozen=True):
    """The queued inputs, next one first; `held` after a failed or aborted run."""

    items: list[QueueItem]
    held: bool


class SessionChanged(Event, tag="session_changed", frozen=True):
    """The session's state and the settings that changed."""

    state: str
    name: str | None = None
    provider: str | None = None
    model: str | None = None
    reasoning: str | None = None
    mode: str | None = None


class Rewound(Event, tag="rewound", frozen=True):
    """The conversation continues from an earlier message; what followed is kept as a branch (`session.tree`)."""

    to: int
    """`seq` of that message."""


class PlanChanged(Event, tag="plan", frozen=True):
    """The plan of the session, whole, as it is now."""

    plan: Plan | None
    """Null: there is none."""
    planning: bool = False
    """Whether the session only reads until a person approves a plan."""


class JobChanged(Event, tag="job", frozen=True):
    """A command begins to run in the background, or does not run any more."""

    job: JobInfo


class JobPortsChanged(Event, tag="job_ports", frozen=True):
    """A job listens on other TCP ports than before."""

    job: str
    ports: list[int]
    """All of them."""


class Forked(Event, tag="forked", frozen=True):
    """The messages above are from another session."""

    origin: str
    """Id of the other session."""
    at: int
    """`seq` of the last message that both sessions have."""
    file: str | None = None
    """The file it was imported from."""
    text: str | None = None
    """What was left out of the import."""


class Interrupted(Event, tag="interrupted", frozen=True):
    """Work was interrupted by a crash, with what is known about it."""

    what: str
    text: str
    tool_id: str | None = None
    partial: str | None = None
    """For a reply: its text so far, which `text` also contains. Clients that streamed it only need the rest."""


class Blocked(Event, tag="blocked", frozen=True):
    """The session cannot continue without intervention."""

    code: str
    message: str


class GuardNote(Event, tag="guard_note", frozen=True):
    """A guard did something that readers of the transcript should know."""

    extension: str
    event: str
    text: str


class Retry(Event, tag="retry", frozen=True):
    """A model call failed and is retried after a pause; `retry` ends the pause, `abort` ends the run."""

    attempt: int
    of: int
    """0: retries continue until the patience is used up."""
    delay_s: float
    reason: str
    brief: str | None = None
    """The reason in two or three words: `HTTP 529`, `no connection`."""
    left_s: float | None = None
    """Seconds until the run gives up and ends with an error."""


class ModelSwitched(Event, tag="model_switched", frozen=True):
    """Requests of the session go to another model from now on: a fallback, or the session's own model, which is back."""

    provider: str
    model: str
    before: str
    """The model until now, as `provider/model`."""
    own: bool = False
    """It is the model that the session is set to."""
    reason: str = ""
    """Why the other one is not asked any more, as a sentence. Empty: the session's own model has answered again."""
    brief: str = ""
    """The reason in two or three words: `HTTP 529`, `no credit`."""


class Notice(Event, tag="notice", frozen=True):
    """A line of text for the user."""

    level: str
    text: str


class ExtNotify(Event, tag="ext_notify", frozen=True):
    """A note from an extension."""

    extension: str
    level: str
    message: str


class ExtDisplay(Event, tag="ext_display", frozen=True):
    """Output of an extension's command, to be displayed."""

    extension: str
    text: str


class ExtClearNotes(Event, tag="ext_clear_notes", frozen=True):
    """An extension withdraws its notes."""

    extension: str


class ExtStatus(Event, tag="ext_status", frozen=True):
    """A segment of the status bar; empty text removes it."""

    extension: str
    key: str
    text: str


class ExtPanel(Event, tag="ext_panel", frozen=True):
    """The complete content of an extension's panel."""

    extension: str
    panel_id: str
    title: str
    lines: list[str]
    footer: str


class ExtPanelClosed(Event, tag="ext_panel_closed", frozen=True):
    """A panel was closed."""

    extension: str
    panel_id: str


class ExtInsert(Event, tag="ext_insert", frozen=True):
    """Text to insert into the editor of the client that ran the command."""

    text: str


class FileRequest(Event, tag="file_request", frozen=True):
    """A built-in tool reads or writes a file that may be open in an editor; `files.answer` answers.

    Only for the client that has offered the files of its editor.
    """

    id: str
    action: str
    """`read` or `write`."""
    path: str
    """Absolute, without links."""
    content: str | None = None
    """What is to be written."""


class TerminalRequest(Event, tag="terminal_request", frozen=True):
    """A command is to run in a terminal of an editor, or to be ended there; `terminals.answer` says how it has ended.

    Only for the client that has offered the terminals of its editor.
    """

    id: str
    action: str
    """`run`, or `kill`: end the command of the request with this `id`, and make no terminal if there is none yet."""
    call: str
    """The tool call with which the terminal is shown."""
    command: str = ""
    args: list[str] = msgspec.field(default_factory=list)
    cwd: str = ""
    output_bytes: int = 0
    """How much of the end of the output is to be kept."""


class SideDelta(Event, tag="side_delta", frozen=True):
    """A piece of the answer to a `session.side_question`; only for the client that asked."""

    key: str
    delta: str


class ExtLog(Event, tag="ext_log", frozen=True):
    """New lines of an extension's log; only for clients that follow it."""

    extension: str
    text: str


class ExtFrame(Event, tag="ext_frame", frozen=True):
    """A frame between the daemon and an extension; only for clients that tap it."""

    extension: str
    direction: str
    """`in` (from the extension) or `out`."""
    frame: str
    """The line, cut after 64 KiB."""
    time: str
    latency_s: float | None = None
    """For an answer: seconds since its question."""
    cut: int = 0
    """Number of bytes left out of `frame`."""


class ClientInfo(Frozen, frozen=True):
    """An attached client."""

    id: str
    name: str
    kind: str
    since: str
    focused: bool | None = None
    """Whether the user is looking at it; null: not reported."""
    typing: bool = False
    """Whether the user is typing in it."""


class Presence(Event, tag="presence", frozen=True):
    """All clients attached to the session."""

    clients: list[ClientInfo]


class Attention(Event, tag="attention", frozen=True):
    """The user should look at the session; sent to exactly one client, and only if no client is focused."""

    reason: str
    """`done`, `needs_you` (a decision) or `failed`."""
    text: str
    """Text for a notification: one line without control characters."""


class Heartbeat(Event, tag="heartbeat", frozen=True):
    """Sent every 15 s to attached clients."""


class Evicted(Event, tag="evicted", frozen=True):
    """The last frame before a slow client is disconnected; it may reconnect with its cursor."""

    reason: str
    last_seq: int


class ReplayComplete(Event, tag="replay_complete", frozen=True):
    """All missed events were sent; live events follow. `seq` is the end of the replay."""


class SessionAdded(Event, tag="session_added", frozen=True):
    """Topic `sessions`: a session was created."""

    name: str
    cwd: str
    state: str
    parent: str | None = None
    """The session that began it; absent: it is no subagent."""


class SessionUpdated(Event, tag="session_updated", frozen=True):
    """Topic `sessions`: a session's name or state changed."""

    name: str
    cwd: str
    state: str
    failed: bool = False
    """The last run ended with an error, and no run has started since."""
    parent: str | None = None
    """The session that began it; absent: it is no subagent."""


class SessionRemoved(Event, tag="session_removed", frozen=True):
    """Topic `sessions`: a session was deleted or closed for good."""


class ExtState(Event, tag="ext_state", frozen=True):
    """Topic `extensions`: an extension changed its state."""

    extension: str
    cwd: str
    state: str
    reason: str | None = None


class TrustRequired(Event, tag="trust_required", frozen=True):
    """Topic `trust`: a workspace has code of its own that is not trusted yet."""

    cwd: str
    items: list[str]
    digest: str


class TimersChanged(Event, tag="timers_changed", frozen=True):
    """Topic `timers`: a timer came, changed or went; `timer.list` has them."""


LIVE = (
    TextDelta,
    ThinkingDelta,
    ToolUseStart,
    ToolUseArgs,
    ToolUseEnd,
    ToolStart,
    ToolProgress,
    Retry,
    Notice,
    ExtNotify,
    ExtDisplay,
    ExtClearNotes,
    ExtStatus,
    ExtPanel,
    ExtPanelClosed,
    ExtInsert,
    FileRequest,
    TerminalRequest,
    SideDelta,
    JobPortsChanged,
    ExtLog,
    ExtFrame,
    Presence,
    Attention,
    Heartbeat,
    Evicted,
)
"""Types of a session's events that have no `seq`."""

OF_TOPICS = (SessionAdded, SessionUpdated, SessionRemoved, ExtState, TrustRequired, TimersChanged)
"""Types of the daemon's events, sent to clients that `subscribe`; `session` names the one they are about, if any."""

STDIO_LIVE = (ExtNotify, ExtDisplay, ExtClearNotes)
"""Types of extension output that are also sent on stdio."""

AnyEvent = (
    UserMessage
    | ShellStart
    | TurnStart
    | AssistantStart
    | TextDelta
    | ThinkingDelta
    | ToolUseStart
    | ToolUseArgs
    | ToolUseEnd
    | Usage
    | AssistantMessage
    | ToolCallEvent
    | TurnEnd
    | ToolStart
    | ToolProgress
    | ToolResultEvent
    | CompactDone
    | Error
    | Done
    | ApprovalRequested
    | ApprovalResolved
    | QueueChanged
    | SessionChanged
    | Rewound
    | PlanChanged
    | JobChanged
    | JobPortsChanged
    | Forked
    | Interrupted
    | Blocked
    | GuardNote
    | Retry
    | ModelSwitched
    | Notice
    | ExtNotify
    | ExtDisplay
    | ExtClearNotes
    | ExtStatus
    | ExtPanel
    | ExtPanelClosed
    | ExtInsert
    | FileRequest
    | TerminalRequest
    | SideDelta
    | ExtLog
    | ExtFrame
    | Presence
    | Attention
    | Heartbeat
    | Evicted
    | ReplayComplete
    | SessionAdded
    | SessionUpdated
    | SessionRemoved
    | ExtState
    | TrustRequired
    | TimersChanged
)

DECODER = msgspec.json.Decoder(AnyEvent)
"""Decodes an event; raises `msgspec.ValidationError` for an unknown type."""


def tag_of(kind: type[Event]) -> str:
    """Return the `type` of an event class on the wire."""
    return str(kind.__struct_config__.tag)
