"""The command table: name, parameters, result, role, for dispatch, clients, docs, JSON Schema and tests.

A parameter Struct holds what stands beside `id` and `type` in a request; a result Struct is the response's `data`.
Session commands carry `session` on the daemon's carriers and nothing on stdio (`docs/protocol.md`).
"""

from dataclasses import dataclass
from enum import IntEnum

from zotd.wire import auth, extensions, reports
from zotd.wire.base import Frozen
from zotd.wire.channels import ChannelList, ChannelPair, ChannelUnpair, PairedSender
from zotd.wire.content import Message, ShellRun, Tokens
from zotd.wire.events import ApprovalRequested, ClientInfo, ExtNotify, ExtPanel, ExtStatus, QueueItem


class Role(IntEnum):
    """What a connection may do; each role includes those before it."""

    READ = 1
    SUBMIT = 2
    APPROVE = 3
    ADMIN = 4


class Envelope(Frozen, frozen=True):
    """The part of a request that every command shares."""

    type: str = ""
    id: str | int | None = None


class Response(Frozen, tag_field="type", tag="response", frozen=True):
    """The answer to one request; `code` and `error` only when it failed."""

    command: str
    success: bool
    id: str | int | None = None
    data: object = None
    error: str | None = None
    code: str | None = None


class Nothing(Frozen, frozen=True):
    """Parameters of a command that takes none, or the data of one that returns none."""


class OfSession(Frozen, frozen=True):
    """Parameters of a command about one session, and of one that takes nothing else."""

    session: str = ""


class Mutation(OfSession, frozen=True, kw_only=True):
    """A command that changes something; a repeated `request_id` gets the first answer again."""

    request_id: str | None = None


# --- connection -----------------------------------------------------------------------------------------------


class Client(Frozen, frozen=True):
    """What a client says of itself; shown to others, never trusted."""

    name: str = ""
    kind: str = ""
    version: str = ""


class Hello(Frozen, frozen=True):
    """First frame on WebSocket, optional elsewhere; `token` on stdio is `ZOTCORE_RPC_TOKEN`."""

    client: Client = Client()
    protocol: tuple[int, int] | None = None
    role: str | None = None
    token: str | None = None
    can_approve: bool = False


class Limits(Frozen, frozen=True, omit_defaults=False):
    """What the daemon takes."""

    line_bytes: int
    frame_bytes: int
    queue: int


class HelloResult(Frozen, frozen=True):
    """`provider` and `model` on stdio, the rest on the daemon's carriers."""

    protocol_version: int
    version: str
    provider: str | None = None
    model: str | None = None
    epoch: str | None = None
    connection: str | None = None
    pid: int | None = None
    role: str | None = None
    features: list[str] | None = None
    """Tags of what was added within the protocol, each a promise about behaviour; unknown ones are ignored."""
    limits: Limits | None = None
    protocols: tuple[int, int] | None = None
    """The oldest and the newest protocol that the daemon speaks."""


class Pong(Frozen, frozen=True):
    """The daemon, or the runtime, answers."""

    pong: bool


# --- turns ----------------------------------------------------------------------------------------------------


class PromptImage(Frozen, frozen=True):
    """An image of a prompt; `data` is base64."""

    mime_type: str
    data: str


class Prompt(Mutation, frozen=True, kw_only=True):
    """An input for the session."""

    message: str
    images: list[PromptImage] | None = None
    """None, absent and empty mean the same: clients in Go send null for an empty list."""
    when_busy: str = "queue"
    """`queue`, `steer` or `reject`."""
    sender: str | None = None
    unattended: str | None = None
    """What becomes of a question to a person that nobody can answer: `park` or `deny`; absent: as configured."""
    patience_s: float | None = None
    """How long its run waits for a model that fails, in seconds; `limits.retry_patience_s` if that is less."""


class Started(Frozen, frozen=True):
    """`position` is the place in the queue, from 1, when it did not start at once."""

    started: bool
    input: str | None = None
    run: str | None = None
    position: int | None = None


class Compact(Mutation, frozen=True, kw_only=True):
    """Summarise the transcript; `instructions` say what matters."""

    instructions: str = ""


class Shell(Mutation, frozen=True, kw_only=True):
    """A command of a person, for the session's directory and environment. It runs while nothing else does."""

    command: str
    context: bool = True
    """The model sees it and its output with the next prompt."""


class State(Frozen, frozen=True):
    """A snapshot of one session's figures."""

    provider: str
    model: str
    cwd: str
    message_count: int
    busy: bool
    usage: Tokens
    state: str | None = None
    reasoning: str | None = None


class GetMessages(OfSession, frozen=True, kw_only=True):
    """`full` gives image data instead of byte counts."""

    full: bool = False


class Messages(Frozen, frozen=True):
    """The transcript as the model sees it."""

    messages: list[Message]
    truncated: bool = False
    """More would have made the frame longer than 4 MiB; the oldest are left out."""


class SetModel(Mutation, frozen=True, kw_only=True):
    """Another model from the next step on; `provider` only in the daemon."""

    model: str
    provider: str | None = None


class ModelName(Frozen, frozen=True):
    """The model now in use."""

    model: str
    provider: str | None = None


class SetReasoning(Mutation, frozen=True, kw_only=True):
    """How much the model may think."""

    reasoning: str


class SetMode(Mutation, frozen=True, kw_only=True):
    """`yolo`, `ask` or `read-only`."""

    mode: str


class GetModels(OfSession, frozen=True, kw_only=True):
    """Models of the session's provider, or of `provider`, or of all that have a key."""

    provider: str | None = None
    all: bool = False


class ModelInfo(Frozen, frozen=True, omit_defaults=False):
    """One model of the catalog; unknown figures are 0."""

    id: str
    provider: str
    context_window: int
    max_output: int
    reasoning: bool
    few_shot: bool = False
    """Example calls are put before the transcript, because the model is too small to call a tool without them."""
    ready: bool = True
    """A key, or what else it needs, is there."""


class Models(Frozen, frozen=True):
    """The models of one provider, or of all of them."""

    models: list[ModelInfo]


class RunCommand(Mutation, frozen=True, kw_only=True):
    """A slash command; `name` with or without the slash."""

    name: str
    args: str = ""


class CommandResult(Frozen, frozen=True):
    """What a slash command did."""

    action: str
    """`prompt` (an input was accepted), `display` and `insert` (there is a text), `open_panel` or `noop`."""
    extension: str | None = None
    """Whose command it was; absent: built in."""
    text: str | None = None
    """To be shown, or to be put into the editor; those who are attached get it as an event, too."""
    input: str | None = None
    run: str | None = None
    position: int | None = None
    """As in the answer to `prompt`."""
    started: bool | None = None


# --- sessions -------------------------------------------------------------------------------------------------


class GivenFor(Frozen, frozen=True):
    """Where a session sent its requests when a key was given to it."""

    provider: str
    base_url: str | None = None


class Secrets(Frozen, frozen=True):
    """Held in memory only; never in a record, log, status or request digest."""

    api_key: str | None = None
    given_for: GivenFor | None = None
    """The key was given before, for this, and the daemon may have lost it with its memory: `session.configure` takes it
    only when the session lacks its own key and still sends its requests there; else `conflict`."""


class SessionCreate(Frozen, frozen=True, kw_only=True):
    """A new session in `cwd`, an absolute real path."""

    cwd: str
    name: str | None = None
    provider: str | None = None
    model: str | None = None
    reasoning: str | None = None
    base_url: str | None = None
    system_prompt: str | None = None
    append_system_prompt: list[str] = []
    tools: list[str] | None = None
    no_tools: bool = False
    max_steps: int | None = None
    budget_usd: float | None = None
    """What all its model requests together may cost; absent: as configured."""
    budget_tokens: int | None = None
    mode: str | None = None
    extensions: list[str] = []
    no_ext: bool = False
    ephemeral: bool = False
    keyless: bool = False
    """Also when there is no key for the vendor yet, and when there is none for any: then the session has the first
    vendor of the catalog. Its prompts are refused until there is a key."""
    discard_unused: bool = False
    """Delete it a minute after its last client has left, when nothing was ever said in it and it has no name. Holds as
    long as the daemon runs."""
    env: dict[str, str] | None = None
    secrets: Secrets | None = None
    request_id: str | None = None


class SessionConfigure(Mutation, frozen=True, kw_only=True):
    """Settings from the next step on; what is absent stays."""

    name: str | None = None
    provider: str | None = None
    model: str | None = None
    reasoning: str | None = None
    base_url: str | None = None
    system_prompt: str | None = None
    append_system_prompt: list[str] | None = None
    tools: list[str] | None = None
    no_tools: bool | None = None
    max_steps: int | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    mode: str | None = None
    extensions: list[str] | None = None
    no_ext: bool | None = None
    env: dict[str, str] | None = None
    secrets: Secrets | None = None


class SessionInfo(Frozen, frozen=True):
    """A session as lists and snapshots show it."""

    id: str
    name: str
    cwd: str
    provider: str
    model: str
    reasoning: str
    mode: str
    state: str
    """`idle`, `running`, `waiting` (for a decision), `held` (a queue that waits for a person), `blocked`, `closed`."""
    created: str
    updated: str
    message_count: int = 0
    clients: int = 0
    ephemeral: bool = False
    failed: bool = False
    """The last run ended with an error, and none has begun since."""
    usage: Tokens = Tokens()
    """What is known of its model calls, since the last `clear`."""
    writing: int = 0
    """Characters that have come of the reply under way; 0: none is."""
    waiting: "Waiting | None" = None
    """Its run waits for the model, which has failed."""


class Cursor(Frozen, frozen=True):
    """Where a client has read to."""

    epoch: str
    seq: int


class Created(Frozen, frozen=True):
    """A session and the cursor before its first event."""

    session: SessionInfo
    seq: int
    epoch: str


class SessionList(Frozen, frozen=True):
    """Filters; `cursor` is what the page before returned."""

    cwd: str | None = None
    state: str | None = None
    cursor: str | None = None
    limit: int = 100


class Sessions(Frozen, frozen=True):
    """Newest first; `cursor` is absent on the last page."""

    sessions: list[SessionInfo]
    cursor: str | None = None


class Rename(Mutation, frozen=True, kw_only=True):
    """A name that people know the session by."""

    name: str


class Fork(Mutation, frozen=True, kw_only=True):
    """A new session that shares the transcript up to the message at `seq`."""

    seq: int | None = None
    name: str | None = None


class Rewind(Mutation, frozen=True, kw_only=True):
    """Go back to the message at `seq`."""

    seq: int


class Export(OfSession, frozen=True, kw_only=True):
    """`format` is `jsonl` or `markdown`; `after` continues where a page ended: it is what that one said as `next`."""

    format: str = "jsonl"
    after: int = 0


class Exported(Frozen, frozen=True):
    """A page of text; `next` is the `after` of the next page, absent on the last."""

    text: str
    next: int | None = None


class Import(Frozen, frozen=True):
    """A session file of the original, or an export in JSON lines: an absolute path."""

    path: str
    cwd: str = ""
    """Where the session is to work; empty: where the file says."""
    request_id: str | None = None


class Imported(Created, frozen=True):
    """The session that holds what is in the file."""

    known: bool = False
    """The file was imported before: it is the session of then, and nothing was done."""


class History(OfSession, frozen=True, kw_only=True):
    """Messages before the event `before`, newest page first in time order."""

    before: int | None = None
    limit: int = 50
    at: int | None = None
    """As the conversation was at this message; without it, as it goes on now: what was rewound is left out."""


class HistoryPage(Frozen, frozen=True):
    """Oldest first."""

    messages: list[Message]
    has_more: bool


class Search(Frozen, frozen=True):
    """Messages of all sessions with all of these words.

    `"Several words in quotes"` are a phrase; no other character means anything, and no query is an error.
    """

    query: str
    cursor: str | None = None
    limit: int = 50


class Attach(OfSession, frozen=True, kw_only=True):
    """Follow a session; with `after`, from there on. `env` replaces the environment its tools run in."""

    after: Cursor | None = None
    limit: int = 50
    env: dict[str, str] | None = None


class ToolUse(Frozen, frozen=True):
    """A call that is being written."""

    id: str
    name: str
    args: str


class Partial(Frozen, frozen=True):
    """What the current step has produced so far."""

    text: str
    tool_uses: list[ToolUse]


class RunningCall(Frozen, frozen=True):
    """A tool call that runs now."""

    id: str
    seconds: float
    """How long it has been running; waiting for guards and people does not count."""


class Waiting(Frozen, frozen=True):
    """A run waits for its model, which has failed."""

    failures: int
    """In a row, from 1."""
    brief: str
    """The last failure in two or three words: `HTTP 529`, `no connection`."""
    reason: str
    """The last failure in a sentence."""
    since: str
    """When the first of them was."""
    next_s: float
    """Seconds until the next try."""
    left_s: float
    """Seconds until the run gives up."""


class RunInfo(Frozen, frozen=True):
    """The run in progress."""

    id: str
    step: int
    started: str
    partial: Partial
    shell: ShellRun | None = None
    """It is no run of the model, but this command."""
    calls: list[RunningCall] = []
    """The calls that run now; others of the reply that have no result wait."""
    waiting: Waiting | None = None
    """The model has failed, and is asked again after a pause."""


class Attached(Frozen, frozen=True, omit_defaults=False):
    """A snapshot, or the word that the cursor holds; missed events, `replay_complete` and live ones follow."""

    mode: str
    """`resumed` or `snapshot`."""
    session: SessionInfo
    seq: int
    epoch: str
    usage: Tokens
    queue: list[QueueItem]
    approvals: list[ApprovalRequested]
    panels: list[ExtPanel]
    status: list[ExtStatus]
    notes: list[ExtNotify]
    run: RunInfo | None
    messages: list[Message]
    has_more: bool
    held: bool = False
    reason: str | None = None
    """Why it is a snapshot although a cursor was given: `epoch`, `future`, `lost` (by a power failure) or `expired`."""
    context: int = 0
    """Tokens that the last model call read and wrote; 0: there was none since the conversation was cleared or compacted."""


class PresenceList(Frozen, frozen=True):
    """Who is attached."""

    clients: list[ClientInfo]
    you: str = ""
    """The id of the client that asks, whether or not it is attached."""


class PresenceUpdate(OfSession, frozen=True, kw_only=True):
    """What a client that is attached says of the person in front of it; it holds until the next one, or `detach`."""

    focused: bool
    """The person looks at this client: its terminal has the focus."""
    typing: bool = False
    """The person is writing something."""


class Subscribe(Frozen, frozen=True):
    """Topics: `sessions`, `extensions`, `trust`."""

    topics: list[str]


class Complete(OfSession, frozen=True, kw_only=True):
    """Completion of a file, a command or a model."""

    kind: str
    """`file`, `command` or `model`."""
    text: str
    """What was typed so far, without the `@`; of a command with or without its slash. More than 256 characters complete
    nothing, but for a path outside of the workspace."""


class Completion(Frozen, frozen=True):
    """Something that could be meant."""

    text: str
    """As in `items`."""
    detail: str = ""
    """One line about it: what a command does; of a model what it lacks."""
    source: str = ""
    """Of a command: `built in`, `skill`, or the extension whose it is. Of a model: its provider."""


class Completions(Frozen, frozen=True):
    """Best first, 50 at most."""

    items: list[str]
    """Paths from the working directory, those of directories with a slash at the end, and as they were begun where the
    text began with `/`, `~/` or `../`; commands without the slash; models as `provider/model`."""
    found: list[Completion] = []
    """The same, one for each of `items`, with what is known of it; empty for files."""
    partial: bool = False
    """There may be more: files are still being looked for, or are too many to look at all. Ask again in a moment."""


class WorkspaceInfo(Frozen, frozen=True):
    """The directory that a session works in."""

    cwd: str
    branch: str | None = None
    """Of git, or the beginning of the commit when none is checked out; absent: it is in no repository."""
    detached: bool = False
    """`branch` is a commit."""


class PromptHistory(Frozen, frozen=True, kw_only=True):
    """What people have asked in all stored sessions; `cursor` is what the page before returned."""

    query: str = ""
    """Only prompts with these characters in them, upper or lower case."""
    cursor: str | None = None
    limit: int = 50


class QueueList(Frozen, frozen=True):
    """The inputs that wait."""

    items: list[QueueItem]
    held: bool


class QueueWithdraw(Mutation, frozen=True, kw_only=True):
    """Take an input back that has not started."""

    input: str


class QueueMove(Mutation, frozen=True, kw_only=True):
    """Move an input to `position`, from 1."""

    input: str
    position: int


# --- decisions, extensions, administration ----------------------------------------------------------------------


class Approve(Mutation, frozen=True, kw_only=True):
    """A decision about the call whose arguments have this digest."""

    approval: str
    args_digest: str
    decision: str
    """`allow` or `deny`."""
    scope: str = "once"
    """Of an allow: `once`, `session` (what is chosen holds for the rest of the session) or `always` (and is written into
    `config.toml`)."""
    reason: str | None = None
    """For the model, and for others who would have decided."""
    args: dict[str, object] | None = None
    """Run it with these instead; guards see them again."""
    choice: str | None = None
    """Of a scope beyond `once`: the id of one of the request's `choices`; absent: `same`, which is its `rule`."""


class ApprovalScope(Frozen, frozen=True, kw_only=True):
    """Of one session, or without `session` of all."""

    session: str | None = None


class Approvals(Frozen, frozen=True):
    """What waits for a decision, oldest first; each carries its `session`."""

    approvals: list[ApprovalRequested]
    truncated: bool = False
    """More would have made the frame longer than 4 MiB; decide about these first."""


class PanelKey(Mutation, frozen=True, kw_only=True):
    """A key for a panel; `text` with `rune`."""

    panel_id: str
    key: str
    text: str = ""


class PanelResize(Mutation, frozen=True, kw_only=True):
    """The panel's size in columns and rows."""

    panel_id: str
    width: int
    height: int


class PanelClose(Mutation, frozen=True, kw_only=True):
    """The user closed it."""

    panel_id: str


class TokenCreate(Frozen, frozen=True):
    """A token for the WebSocket door."""

    name: str
    """Letters, digits, `.`, `_` and `-`; 64 characters at most."""
    role: str
    """The most that it gives: `read`, `submit`, `approve` or `admin`."""
    session: str | None = None
    """The id of the only session that it is for; absent: for all."""
    expires_s: float | None = None
    """How long it holds; absent: until it is revoked."""
    request_id: str | None = None
    sessions: list[str] = []
    """Ids of further sessions that it is for."""


class TokenName(Frozen, frozen=True):
    """A token by name."""

    name: str
    request_id: str | None = None


class TokenInfo(Frozen, frozen=True):
    """A token, without what makes it one."""

    name: str
    role: str
    created: str
    sessions: list[str] = []
    """The only ones that it is for; empty: all."""
    expires: str | None = None
    used: str | None = None
    """When somebody came in with it last, by the minute; absent: nobody has."""


class TokenMade(TokenInfo, frozen=True, kw_only=True):
    """A new token."""

    token: str
    """To be kept by the client: it is in no other answer, and only its digest is stored."""


class TokenList(Frozen, frozen=True):
    """Oldest first."""

    tokens: list[TokenInfo]


class UsageReport(Frozen, frozen=True):
    """Since an RFC 3339 time (else from the beginning), grouped by `model`, `session` or `cwd`."""

    since: str | None = None
    by: str = "model"


class Shutdown(Frozen, frozen=True):
    """Stop the daemon, at once or when nothing runs."""

    when_idle: bool = False
    request_id: str | None = None


class ConfigReloaded(Frozen, frozen=True):
    """What reading the configuration again has changed, as names of keys."""

    applied: list[str]
    """They hold from now on; about runs: from the next one on."""
    restart: list[str]
    """They have other values in the file, and hold when the daemon is restarted."""
    warnings: list[str]


class Status(Frozen, frozen=True, omit_defaults=False):
    """The daemon in figures; `zotctl status --json` prints the same."""

    v: int
    state: str
    socket: str
    pid: int
    version: str
    protocol: int
    epoch: str
    uptime_s: float
    sessions: int
    running: int
    clients: int
    extensions: int
    warnings: list[str]
    protocols: tuple[int, int] | None = None
    """The oldest and the newest protocol that it speaks."""
    websocket: str | None = None
    """The URL of its WebSocket door; null: it has none."""
    service: str | None = None
    """Who runs it: `systemd`, `launchd`; null: it runs by itself."""


@dataclass(frozen=True, slots=True)
class Command:
    """A row of the table."""

    name: str
    params: type[Frozen]
    result: type[Frozen] | None
    """None: the response has no `data`."""
    role: Role
    summary: str
    stdio: bool = False
    """Also a command of `zot rpc`."""


def _rows(role: Role, *rows: tuple[str, type[Frozen], type[Frozen] | None, str]) -> tuple[Command, ...]:
    return tuple(
        Command(name, params, result, role, summary, stdio=name in _STDIO) for name, params, result, summary in rows
    )


_STDIO = frozenset(
    [
        "hello",
        "prompt",
        "abort",
        "compact",
        "get_state",
        "get_messages",
        "clear",
        "set_model",
        "set_reasoning",
        "get_models",
        "ping",
    ]
)

COMMANDS: tuple[Command, ...] = (
    *_rows(
        Role.READ,
        ("hello", Hello, HelloResult, "says who is there and agrees on a version and a role"),
        ("ping", Nothing, Pong, "answers"),
        ("session.list", SessionList, Sessions, "sessions, newest first"),
        ("session.get", OfSession, SessionInfo, "one session"),
        ("session.history", History, HistoryPage, "older messages, a page at a time"),
        ("session.search", Search, reports.SearchPage, "words in all sessions, newest first"),
        ("session.tree", OfSession, reports.Tree, "forks and rewinds of a session"),
        ("attach", Attach, Attached, "a snapshot, then what was missed, then live events"),
        ("detach", OfSession, None, "stops following; the session goes on"),
        ("presence", OfSession, PresenceList, "who is attached"),
        ("presence.update", PresenceUpdate, None, "says whether a person looks at this client"),
        ("subscribe", Subscribe, None, "follows topics of the daemon"),
        ("get_state", OfSession, State, "figures of a session"),
        ("get_messages", GetMessages, Messages, "the transcript as the model sees it"),
        ("get_models", GetModels, Models, "models that can be used"),
        ("complete", Complete, Completions, "completes a file, command or model name"),
        ("prompt.history", PromptHistory, reports.PromptPage, "earlier prompts of all sessions, newest first"),
        ("workspace.info", OfSession, WorkspaceInfo, "the directory of a session, and its git branch"),
        ("approval.list", ApprovalScope, Approvals, "calls that wait for a decision, of one session or of all"),
        ("queue.list", OfSession, QueueList, "inputs that wait"),
        ("ext.list", extensions.Scope, extensions.ExtensionList, "extensions and their states"),
        ("ext.logs", extensions.Logs, extensions.LogPage, "an extension's log"),
        ("channel.list", Nothing, ChannelList, "messaging channels, and who may write"),
        ("ext.doctor", extensions.Scope, extensions.Findings, "what is wrong with extensions"),
        ("daemon.status", Nothing, Status, "the daemon in figures"),
        ("daemon.metrics", Nothing, reports.Metrics, "what it holds, and what it has done, in numbers"),
        ("usage.report", UsageReport, reports.UsageSums, "tokens and money"),
        ("auth.list", auth.AuthScope, auth.KeyList, "where the vendors' keys come from"),
    ),
    *_rows(
        Role.SUBMIT,
        ("session.create", SessionCreate, Created, "a new session"),
        ("session.configure", SessionConfigure, SessionInfo, "changes settings"),
        ("session.rename", Rename, SessionInfo, "names a session"),
        ("session.fork", Fork, Created, "a session that starts from a point of this one"),
        ("session.rewind", Rewind, None, "goes back to a message"),
        ("session.export", Export, Exported, "the transcript as text, a page at a time"),
        ("session.close", Mutation, None, "unloads a session; an ephemeral one is gone"),
        ("prompt", Prompt, Started, "gives the session an input"),
        ("abort", Mutation, None, "cancels what runs now"),
        ("retry", Mutation, None, "asks a model that has failed again now, and not at the end of the pause"),
        ("compact", Compact, Started, "summarises the transcript"),
        ("queue.withdraw", QueueWithdraw, None, "takes back an input that waits"),
        ("queue.move", QueueMove, None, "moves an input in the queue"),
        ("run_command", RunCommand, CommandResult, "runs a slash command"),
        ("clear", Mutation, None, "starts the transcript anew"),
        ("set_model", SetModel, ModelName, "switches the model"),
        ("set_reasoning", SetReasoning, None, "sets how much the model thinks"),
        ("panel.key", PanelKey, None, "a key for a panel"),
        ("panel.resize", PanelResize, None, "a panel's size"),
        ("panel.close", PanelClose, None, "closes a panel"),
        ("ext.reload", extensions.Scoped, extensions.Reloaded, "restarts one extension, or all"),
        ("ext.tap", extensions.Tap, None, "shows the frames of an extension"),
    ),
    *_rows(
        Role.APPROVE,
        ("approve", Approve, None, "decides about a tool call"),
        ("shell", Shell, Started, "runs a command of a person"),
        ("set_mode", SetMode, None, "sets the approval mode"),
    ),
    *_rows(
        Role.ADMIN,
        ("session.delete", Mutation, None, "deletes a session and its records"),
        ("session.import", Import, Imported, "reads a session file of the original, or an export"),
        ("ext.install", extensions.Install, extensions.InstalledExtension, "installs an extension"),
        ("ext.remove", extensions.Remove, extensions.Removed, "removes an extension"),
        ("ext.enable", extensions.Name, None, "enables an extension"),
        ("ext.disable", extensions.Name, None, "disables an extension"),
        ("channel.pair", ChannelPair, PairedSender, "lets in the sender who was told a code"),
        ("channel.unpair", ChannelUnpair, None, "lets a sender write no more"),
        ("auth.check", auth.CheckKey, auth.KeyCheck, "asks a vendor whether a key is right"),
        ("auth.login", auth.Login, auth.KeyInfo, "stores a vendor's key"),
        ("auth.logout", auth.Logout, auth.KeyInfo, "forgets a vendor's stored key"),
        ("trust.list", extensions.TrustScope, extensions.TrustList, "trusted workspaces, or one and what it has"),
        ("trust.grant", extensions.TrustGrant, extensions.TrustedWorkspace, "trusts a workspace's code as it is now"),
        ("trust.revoke", extensions.TrustPath, None, "takes trust back"),
        ("token.create", TokenCreate, TokenMade, "makes a token"),
        ("token.list", Nothing, TokenList, "tokens, without their secrets"),
        ("token.revoke", TokenName, None, "revokes a token"),
        (
            "daemon.compact",
            Nothing,
            reports.Compacted,
            "gives the disk back what deleted sessions took; commits wait meanwhile",
        ),
        ("daemon.reload", Nothing, ConfigReloaded, "reads the configuration again; a bad one changes nothing"),
        ("daemon.shutdown", Shutdown, None, "stops the daemon"),
    ),
)
"""Every command of protocol 1. Those without a handler yet answer `unsupported`."""

BY_NAME = {command.name: command for command in COMMANDS}

MAX_ID = 2**53
"""Numeric request ids beyond this do not survive JavaScript."""
