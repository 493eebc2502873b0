"""Every event, as one tagged union (`docs/protocol.md` and 3).

Committed events carry `seq`; the live ones (`LIVE`) never do and may be merged for a slow client. On stdio events
carry neither `session` nor `seq`.
"""

import msgspec

from zotd.wire.base import Frozen
from zotd.wire.content import Block, Image, ShellRun, Text, Tokens


class Event(Frozen, tag_field="type", frozen=True, kw_only=True):
    """What all events share."""

    session: str | None = None
    seq: int | None = None
    """Dense per session from 1; None for live events."""


class UserMessage(Event, tag="user_message", frozen=True):
    """A prompt entered the transcript."""

    content: list[Block]
    time: str
    input: str | None = None
    run: str | None = None
    sender: str | None = None
    """What its client calls itself, for others to see."""
    shell: ShellRun | None = None
    """It is not a prompt, but a command that a person has run, and its output; the model may not see it at all."""


class ShellStart(Event, tag="shell_start", frozen=True):
    """A person has a command run; its output follows as `tool_progress`, then as a `user_message`, then `done`."""

    id: str
    command: str
    context: bool
    """The model sees it and its output with the next prompt."""
    sender: str | None = None
    """What its client calls itself, for others to see."""


class TurnStart(Event, tag="turn_start", frozen=True):
    """A model call begins; steps count from 1 in each run."""

    step: int


class AssistantStart(Event, tag="assistant_start", frozen=True):
    """The provider has accepted the request and answers."""


class TextDelta(Event, tag="text_delta", frozen=True):
    """A piece of the reply's text."""

    delta: str


class ThinkingDelta(Event, tag="thinking_delta", frozen=True):
    """A piece of the model's reasoning, which no message shows afterwards; not on stdio."""

    delta: str
    """Empty where a guard wants to see all text first: the model thinks, and nobody may read what."""


class ToolUseStart(Event, tag="tool_use_start", frozen=True):
    """The model begins to write a tool call."""

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
    """Tokens of one model call, and of the session so far."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cost_usd: float
    cumulative: Tokens


class AssistantMessage(Event, tag="assistant_message", frozen=True):
    """The whole reply of one step."""

    content: list[Block]
    time: str


class ToolCallEvent(Event, tag="tool_call", frozen=True):
    """The model wants a tool; the arguments are its own."""

    id: str
    name: str
    args: dict[str, object]


class TurnEnd(Event, tag="turn_end", frozen=True):
    """One model call is over; its tools have not run yet."""

    stop: str
    """`end_turn`, `tool_use`, `length`, `error` or `aborted`."""
    error: str | None = None


class ToolStart(Event, tag="tool_start", frozen=True):
    """A tool begins to run: guards and people have let it, and no call before it has to end first; not on stdio."""

    id: str


class ToolProgress(Event, tag="tool_progress", frozen=True):
    """Output of a tool while it runs."""

    id: str
    text: str


class ToolResultEvent(Event, tag="tool_result", frozen=True):
    """A tool has answered."""

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
    """Something went wrong; one sentence with the way out."""

    message: str


class Done(Event, tag="done", frozen=True):
    """The prompt or compact is over; exactly one for each."""

    run: str | None = None


class ApprovalChoice(Frozen, frozen=True):
    """What can be allowed besides the one call."""

    id: str
    """For `choice` of `approve`: `same` (this command, this file), `prefix` (what begins with the same words) or `edits`
    (every edit and write in the workspace)."""
    text: str
    """What it covers, for people."""
    scopes: list[str]
    """How long it can be allowed: `session`, `always`."""
    rules: str
    """What would hold from then on, as TOML; `always` writes it into `config.toml`."""


class ApprovalRequested(Event, tag="approval_requested", frozen=True):
    """A person has to decide."""

    approval: str
    tool_id: str
    tool: str
    args: dict[str, object]
    args_digest: str
    preview: str | None = None
    """What it would do, for people: a diff, a command line, or the arguments."""
    expires: str | None = None
    rule: str | None = None
    """What `scope: session` would allow from then on and `always` would write into `config.toml`, as TOML, when the
    decision names no `choice`; absent: it can be allowed without one for once only."""
    choices: list[ApprovalChoice] = msgspec.field(default_factory=list)
    """All that can be allowed from then on; empty: it can be allowed for once only."""


class ApprovalResolved(Event, tag="approval_resolved", frozen=True):
    """Somebody has decided, or nobody needs to any more."""

    approval: str
    decision: str
    """`allow`, `deny` or `cancelled`."""
    scope: str
    by: str
    """Who has decided; empty: nobody, and `reason` says why it is over."""
    reason: str | None = None


class QueueItem(Frozen, frozen=True):
    """An input that waits."""

    id: str
    text: str
    sender: str
    mode: str
    """`queue` or `steer`."""


class QueueChanged(Event, tag="queue_changed", frozen=True):
    """The inputs that wait, first one first; `held` after a failed or aborted run."""

    items: list[QueueItem]
    held: bool


class SessionChanged(Event, tag="session_changed", frozen=True):
    """What changed of a session, and its state."""

    state: str
    name: str | None = None
    provider: str | None = None
    model: str | None = None
    reasoning: str | None = None
    mode: str | None = None


class Rewound(Event, tag="rewound", frozen=True):
    """The conversation goes on from an earlier message; what came after it is kept beside (`session.tree`)."""

    to: int
    """The `seq` of that message."""


class Forked(Event, tag="forked", frozen=True):
    """What stands above this was said in another session."""

    origin: str
    """Its id."""
    at: int
    """The `seq` of the last message that both have."""
    file: str | None = None
    """Where it was read from."""
    text: str | None = None
    """What of the file is not here."""


class Interrupted(Event, tag="interrupted", frozen=True):
    """Work was cut off by a crash, with what is known of it."""

    what: str
    text: str
    tool_id: str | None = None
    partial: str | None = None
    """Of a reply that was cut: its text so far, which `text` has, too. Clients that streamed it need only the rest."""


class Blocked(Event, tag="blocked", frozen=True):
    """The session cannot go on until somebody acts."""

    code: str
    message: str


class GuardNote(Event, tag="guard_note", frozen=True):
    """A guard did something a reader of the transcript should know."""

    extension: str
    event: str
    text: str


class Retry(Event, tag="retry", frozen=True):
    """A model call failed and is tried again after a pause; `retry` ends the pause, `abort` the run."""

    attempt: int
    of: int
    """0: it is tried until the patience is used up."""
    delay_s: float
    reason: str
    brief: str | None = None
    """The reason in two or three words: `HTTP 529`, `no connection`."""
    left_s: float | None = None
    """How much longer it is tried, after which the run ends with an error."""


class Notice(Event, tag="notice", frozen=True):
    """A line for people."""

    level: str
    text: str


class ExtNotify(Event, tag="ext_notify", frozen=True):
    """An extension's note."""

    extension: str
    level: str
    message: str


class ExtDisplay(Event, tag="ext_display", frozen=True):
    """An extension's answer to a command, to be shown."""

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
    """An extension's panel, whole."""

    extension: str
    panel_id: str
    title: str
    lines: list[str]
    footer: str


class ExtPanelClosed(Event, tag="ext_panel_closed", frozen=True):
    """A panel is gone."""

    extension: str
    panel_id: str


class ExtInsert(Event, tag="ext_insert", frozen=True):
    """Text for the editor of the client that asked."""

    text: str


class ExtLog(Event, tag="ext_log", frozen=True):
    """What an extension has written to its log; only for a client that follows that."""

    extension: str
    text: str


class ExtFrame(Event, tag="ext_frame", frozen=True):
    """A frame between the host and an extension; only for a client that taps it."""

    extension: str
    direction: str
    """`in` (from the extension) or `out`."""
    frame: str
    """The line, cut after 64 KiB."""
    time: str
    latency_s: float | None = None
    """Of an answer: since its question."""
    cut: int = 0
    """Bytes that were left out."""


class ClientInfo(Frozen, frozen=True):
    """Who is attached."""

    id: str
    name: str
    kind: str
    since: str
    focused: bool | None = None
    """A person looks at it, as far as it knows; None: it has never said."""
    typing: bool = False
    """Somebody is writing something there."""


class Presence(Event, tag="presence", frozen=True):
    """Everybody who is attached to the session."""

    clients: list[ClientInfo]


class Attention(Event, tag="attention", frozen=True):
    """A person should look at the session; only for the one client that is to say so, when nobody looks anyway."""

    reason: str
    """`done`, `needs_you` (a decision) or `failed`."""
    text: str
    """A sentence for a notification, on one line and without control characters."""


class Heartbeat(Event, tag="heartbeat", frozen=True):
    """Sent every 15 s to attached clients."""


class Evicted(Event, tag="evicted", frozen=True):
    """The last frame before a slow client is cut; it may come back with its cursor."""

    reason: str
    last_seq: int


class ReplayComplete(Event, tag="replay_complete", frozen=True):
    """Everything missed has been sent; what follows is live. `seq` is where the replay ended."""


class SessionAdded(Event, tag="session_added", frozen=True):
    """Topic `sessions`: a session was created."""

    name: str
    cwd: str
    state: str


class SessionUpdated(Event, tag="session_updated", frozen=True):
    """Topic `sessions`: a session's name or state changed."""

    name: str
    cwd: str
    state: str
    failed: bool = False
    """The last run ended with an error, and none has begun since."""


class SessionRemoved(Event, tag="session_removed", frozen=True):
    """Topic `sessions`: a session was deleted or closed for good."""


class ExtState(Event, tag="ext_state", frozen=True):
    """Topic `extensions`: an extension changed its state."""

    extension: str
    cwd: str
    state: str
    reason: str | None = None


class TrustRequired(Event, tag="trust_required", frozen=True):
    """Topic `trust`: a workspace has code of its own that nobody has trusted yet."""

    cwd: str
    items: list[str]
    digest: str


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
    ExtLog,
    ExtFrame,
    Presence,
    Attention,
    Heartbeat,
    Evicted,
)
"""Events of a session that carry no `seq`."""

OF_TOPICS = (SessionAdded, SessionUpdated, SessionRemoved, ExtState, TrustRequired)
"""Events of the daemon for those who `subscribe`; `session` says which one they are about."""

STDIO_LIVE = (ExtNotify, ExtDisplay, ExtClearNotes)
"""What an extension shows that exists on stdio, too."""

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
    | Forked
    | Interrupted
    | Blocked
    | GuardNote
    | Retry
    | Notice
    | ExtNotify
    | ExtDisplay
    | ExtClearNotes
    | ExtStatus
    | ExtPanel
    | ExtPanelClosed
    | ExtInsert
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
)

DECODER = msgspec.json.Decoder(AnyEvent)
"""Decodes one event line; raises `msgspec.ValidationError` for a type it does not know."""


def tag_of(kind: type[Event]) -> str:
    """The wire name of an event type."""
    return str(kind.__struct_config__.tag)
