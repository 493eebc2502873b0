"""The state of the client as one immutable value. `zottui.reduce` computes the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from zotd.wire.api import Partial, SessionInfo
from zotd.wire.content import Tokens
from zotd.wire.events import ApprovalRequested, ClientInfo, ExtPanel, QueueItem
from zotd.wire.jobs import JobInfo
from zotd.wire.plan import Plan
from zottui.markdown.stream import Stream


class LinkState(Enum):
    """State of the connection to the daemon; the value is shown in the status bar."""

    CONNECTING = "connecting"
    LIVE = "live"
    LOST = "reconnecting"


@dataclass(frozen=True, slots=True)
class LiveCall:
    """A tool call without a result: the model is writing it, it waits, or it runs."""

    id: str
    name: str
    args: dict[str, object] = field(default_factory=dict)
    written: int = 0
    """Characters of the arguments that have arrived so far."""
    is_written: bool = False
    """Whether the model has finished it, so that `args` are complete."""
    tail: str = ""
    """The last lines of its output so far."""


@dataclass(frozen=True, slots=True)
class LiveReply:
    """The model's reply in the current step, as far as it is not printed."""

    stream: Stream = field(default_factory=Stream)
    seen: int = 0
    """Characters of the step's text that were fed to `stream`."""
    thinking_since: float | None = None
    """Clock time in seconds when the thinking began; None once the answer has begun."""
    thought: str = ""
    calls: tuple[LiveCall, ...] = ()
    """Calls without a result, in the order of the reply."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The current run, with the clock times that the live area shows."""

    since: float
    """Clock time in seconds when it began."""
    step: int = 0
    started: Mapping[str, float] = field(default_factory=dict)
    """Clock times in seconds when calls began to run, by call id."""
    retry: str = ""
    """Why the model request is retried; empty once the model answers."""
    retry_at: float = 0.0
    """Clock time in seconds of the next attempt."""


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A command that runs in the background."""

    info: JobInfo
    since: float
    """Clock time in seconds when it began."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """What the live area shows besides dialogs and the editor: a function of this, the terminal's size and the clock."""

    link: LinkState = LinkState.CONNECTING
    session: SessionInfo | None = None
    """None before the first snapshot."""
    run: RunState | None = None
    reply: LiveReply = field(default_factory=LiveReply)
    queue: tuple[QueueItem, ...] = ()
    held: bool = False
    """Whether the queue waits for the user, since the last run failed, was aborted or was cut."""
    approvals: tuple[ApprovalRequested, ...] = ()
    """Pending approvals, oldest first."""
    plan: Plan | None = None
    planning: bool = False
    """Whether the session only reads until a person approves a plan."""
    jobs: tuple[LiveJob, ...] = ()
    """Those that run, oldest first."""
    clients: tuple[ClientInfo, ...] = ()
    panels: tuple[ExtPanel, ...] = ()
    segments: tuple[tuple[tuple[str, str], str], ...] = ()
    """Extensions' status bar segments as ((extension, key), text), in order of arrival."""
    usage: Tokens = field(default_factory=Tokens)
    """Token usage of the session so far."""
    context: int = 0
    """Tokens of the last model call, which is the part of the window that the conversation fills."""
    window: int = 0
    """Size of the model's context window in tokens; 0: unknown."""
    cost_today: float | None = None
    """USD of all sessions since midnight; None: not loaded yet."""
    branch: str = ""
    """Git branch of the session's directory; empty: none."""
    tools: int = 0
    """Number of printed calls; the viewer finds a call by its number."""
    own: frozenset[str] = frozenset()
    """Ids of inputs and approvals that came from this client, so that they are not shown as another client's."""
    partial: Partial | None = None
    """The snapshot's partial reply; applied once the missed events are replayed."""
    last_seq: int = 0
    """`seq` of the newest event that is applied."""
    shows_thoughts: bool = False
    calls_you: bool = False
    """Whether the daemon has asked for attention since the terminal last had the focus."""


def waiting(state: ViewState) -> int:
    """Return how many calls the user may still have to decide: those with a pending approval, and those queued after them.

    The daemon asks about calls that may not run in parallel one at a time, so later ones are not in `approvals` yet.
    """
    asked = {one.tool_id for one in state.approvals}
    started = state.run.started if state.run is not None else {}
    behind = [call for call in state.reply.calls if call.is_written and call.id not in started and call.id not in asked]
    is_ours = any(call.id in asked for call in state.reply.calls)
    return len(state.approvals) + (len(behind) if is_ours else 0)
