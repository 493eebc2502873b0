"""What a terminal knows of its session, as one value. `zottui.reduce` makes the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from zotd.wire.api import Partial, SessionInfo
from zotd.wire.content import Tokens
from zotd.wire.events import ApprovalRequested, ClientInfo, ExtPanel, QueueItem
from zottui.markdown.stream import Stream


class LinkState(Enum):
    """The connection to the daemon."""

    CONNECTING = "connecting"
    LIVE = "live"
    LOST = "reconnecting"


@dataclass(frozen=True, slots=True)
class LiveCall:
    """A tool call that is being written, or runs."""

    id: str
    name: str
    args: dict[str, object] = field(default_factory=dict)
    written: int = 0
    """Characters of arguments that the model has written so far."""
    is_written: bool = False
    """The model has finished it, and `args` are what it wants."""
    tail: str = ""
    """The last lines of what it has printed so far."""


@dataclass(frozen=True, slots=True)
class LiveReply:
    """What the model has said in this step, as far as it is not printed."""

    stream: Stream = field(default_factory=Stream)
    seen: int = 0
    """Characters of the step's text that `stream` was fed."""
    thinking_since: float | None = None
    """Seconds of the clock; None once it has begun to answer."""
    thought: str = ""
    calls: tuple[LiveCall, ...] = ()
    """In the order in which they were begun; also those that run."""


@dataclass(frozen=True, slots=True)
class RunState:
    """What the session is doing."""

    since: float
    """Seconds of the clock."""
    step: int = 0
    started: Mapping[str, float] = field(default_factory=dict)
    """When calls began to run, in seconds of the clock, by id."""
    retry: str = ""
    """Why the model is asked again; empty as soon as it answers."""
    retry_at: float = 0.0
    """When it is asked again, in seconds of the clock."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """The screen below the scrollback is a function of this, the size of the terminal and the clock."""

    link: LinkState = LinkState.CONNECTING
    session: SessionInfo | None = None
    """None until the first snapshot."""
    run: RunState | None = None
    reply: LiveReply = field(default_factory=LiveReply)
    queue: tuple[QueueItem, ...] = ()
    held: bool = False
    """What waits in the queue waits for a person: the run before failed or was aborted."""
    approvals: tuple[ApprovalRequested, ...] = ()
    """Questions that nobody has answered, oldest first."""
    clients: tuple[ClientInfo, ...] = ()
    panels: tuple[ExtPanel, ...] = ()
    segments: tuple[tuple[tuple[str, str], str], ...] = ()
    """((extension, key), text) of the status bar, in the order in which they came."""
    usage: Tokens = field(default_factory=Tokens)
    """Of the session so far."""
    context: int = 0
    """Tokens that the last model call read and wrote: what the conversation takes of the window."""
    window: int = 0
    """What the model's window holds; 0: unknown."""
    cost_today: float | None = None
    """USD over all sessions since midnight; None: not asked yet."""
    branch: str = ""
    """Git's, in the session's directory; empty: none."""
    tools: int = 0
    """Calls that were printed: numbers for the viewer."""
    own: frozenset[str] = frozenset()
    """Inputs and decisions of this client, so that they are not shown as somebody else's."""
    partial: Partial | None = None
    """What the step had said at the snapshot; it counts when everything before has been replayed."""
    last_seq: int = 0
    """Of the newest event that was shown."""
    shows_thoughts: bool = False
    calls_you: bool = False
    """Something has come to where the user should look, and they have not looked since."""


def waiting(state: ViewState) -> int:
    """How many calls are ahead of a person who is asked: those that wait for approval, and those that wait behind them.

    Calls that may not run side by side are asked about one after the other, so later ones are not in `approvals` yet.
    """
    asked = {one.tool_id for one in state.approvals}
    started = state.run.started if state.run is not None else {}
    behind = [call for call in state.reply.calls if call.is_written and call.id not in started and call.id not in asked]
    is_ours = any(call.id in asked for call in state.reply.calls)
    return len(state.approvals) + (len(behind) if is_ours else 0)
