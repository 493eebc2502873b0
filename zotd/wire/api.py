"""The command table: name, parameters, result and role of each command. Dispatch, clients, docs and tests use it.

A parameter Struct has the fields of a request besides `id` and `type`; a result Struct is the response's `data`.
Session commands have a field `session`, except on stdio (`docs/protocol.md`).
"""

from enum import IntEnum

from msgspec import Struct, field

from zotd.wire import auth, extensions, reports
from zotd.wire.base import Frozen
from zotd.wire.batches import (
    BatchCancelled,
    BatchList,
    BatchListQuery,
    BatchName,
    BatchResultQuery,
    BatchResults,
    BatchSubmit,
    BatchSubmitted,
)
from zotd.wire.channels import ChannelList, ChannelPair, ChannelUnpair, PairedSender
from zotd.wire.content import Message, ShellRun, Tokens
from zotd.wire.diagnostics import DiagnosticsScope, LanguageServerReport
from zotd.wire.events import ApprovalRequested, ClientInfo, ExtNotify, ExtPanel, ExtStatus, QueueItem
from zotd.wire.families import Agents, AgentScope, SessionParent
from zotd.wire.jobs import JobInfo
from zotd.wire.plan import Plan, PlanStep
from zotd.wire.timers import TimerAdd, TimerEdit, TimerFired, TimerInfo, TimerList, TimerName, TimerQuery


class Role(IntEnum):
    """What a connection may do; each role includes those before it."""

    READ = 1
    SUBMIT = 2
    APPROVE = 3
    ADMIN = 4


class Envelope(Frozen, frozen=True):
    """Fields of every request."""

    type: str = ""
    id: str | int | None = None


class Response(Frozen, tag_field="type", tag="response", frozen=True):
    """The response to one request; `error` and `code` only if it failed."""

    command: str
    success: bool
    id: str | int | None = None
    data: object = None
    error: str | None = None
    code: str | None = None


class Nothing(Frozen, frozen=True):
    """No parameters, or no data."""


class OfSession(Frozen, frozen=True):
    """Parameters of commands that only name a session."""

    session: str = ""


class Mutation(OfSession, frozen=True, kw_only=True):
    """Base of commands that change something; a repeated `request_id` returns the first response again."""

    request_id: str | None = None


# --- connection -----------------------------------------------------------------------------------------------


class Client(Frozen, frozen=True):
    """How a client describes itself; shown to other clients, never trusted."""

    name: str = ""
    kind: str = ""
    version: str = ""


class FleetProof(Frozen, frozen=True):
    """Sent instead of a token by a daemon of the same database, which forwards what its client sends (postgresql.md)."""

    connection: str
    """Id of the client's connection there."""
    nonce: str
    proof: str
    """Shows that the daemon has the fleet key."""
    account: str = ""
    """Whose the client is there, for the audit trail (audit.md)."""
    spare: bool = False
    """There is no client yet; a hello for one follows when there is. The daemon keeps the connection for a while."""
    user: str = ""
    """The client's user there (users.md); empty: none."""


class Hello(Frozen, frozen=True):
    """The first frame on WebSocket, optional elsewhere. On stdio, `token` is `ZOTCORE_RPC_TOKEN`."""

    client: Client = Client()
    protocol: tuple[int, int] | None = None
    role: str | None = None
    token: str | None = None
    can_approve: bool = False
    fleet: FleetProof | None = None


class Limits(Frozen, frozen=True, omit_defaults=False):
    """Limits of the daemon, in bytes and queued inputs."""

    line_bytes: int
    frame_bytes: int
    queue: int


class HelloResult(Frozen, frozen=True):
    """`provider` and `model` are for stdio only; the other fields are for the daemon's doors only."""

    protocol_version: int
    version: str
    provider: str | None = None
    model: str | None = None
    epoch: str | None = None
    connection: str | None = None
    pid: int | None = None
    role: str | None = None
    features: list[str] | None = None
    """Tags of features added within this protocol version. Ignore unknown ones."""
    limits: Limits | None = None
    protocols: tuple[int, int] | None = None
    """The oldest and the newest protocol version that the daemon supports."""
    proof: str | None = None
    """The answer to `fleet`: the daemon has the fleet key, too."""
    spare: bool = False
    """The answer to `fleet.spare`: the connection is kept for a client that comes later."""


class Pong(Frozen, frozen=True):
    """Sent by the daemon or the runtime."""

    pong: bool


# --- turns ----------------------------------------------------------------------------------------------------


class PromptImage(Frozen, frozen=True):
    """An image of a prompt or of a tool result; `data` is base64."""

    mime_type: str
    data: str


class Prompt(Mutation, frozen=True, kw_only=True):
    """A prompt for a session."""

    message: str
    images: list[PromptImage] | None = None
    """null and an empty list mean the same, because Go encodes an empty slice as null."""
    when_busy: str = "queue"
    """`queue`, `steer` or `reject`."""
    sender: str | None = None
    unattended: str | None = None
    """What to do with an approval request that no attached client can decide: `park` or `deny`; absent: as
    configured."""
    patience_s: float | None = None
    """How long the run keeps retrying a failing model, in seconds; at most `limits.retry_patience_s`."""


class Started(Frozen, frozen=True):
    """`position` is the place in the queue, from 1, if the run did not start at once."""

    started: bool
    input: str | None = None
    run: str | None = None
    position: int | None = None


class SideQuestion(OfSession, frozen=True, kw_only=True):
    """A question to the session's model, answered from the conversation without adding to it, also while a run goes on."""

    question: str
    key: str = ""
    """Names the question in `side_delta`; empty: the client wants none."""


class SideAnswer(Frozen, frozen=True):
    """The answer to a `session.side_question`."""

    text: str
    provider: str
    model: str
    tokens: Tokens
    """What it took; billed to the session."""


class Compact(Mutation, frozen=True, kw_only=True):
    """Summarise the transcript; `instructions` say what matters."""

    instructions: str = ""


class Shell(Mutation, frozen=True, kw_only=True):
    """A shell command of the user, run in the session's directory and environment, and never during a run."""

    command: str
    context: bool = True
    """Whether the model sees the command and its output with the next prompt."""


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
    """The oldest messages were left out to keep the frame below 4 MiB."""


class SetModel(Mutation, frozen=True, kw_only=True):
    """Use another model from the next step on; `provider` only in the daemon."""

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
    """`yolo`, `workspace`, `ask` or `read-only`."""

    mode: str


class AgentOptionValue(Frozen, frozen=True):
    """A value of an option of another agent."""

    id: str
    name: str
    detail: str = ""
    """What it means, on one line."""


class AgentOption(Frozen, frozen=True):
    """What can be chosen of another agent: its mode, its model, or something else."""

    id: str
    """The agent's own; `mode` if the agent has modes and no option for them."""
    name: str
    current: str
    """The id of a value."""
    values: list[AgentOptionValue]
    category: str = ""
    """What it is about, if the agent says so: `mode`, `model`, `thought_level`, …"""


class AgentOptionList(Frozen, frozen=True):
    """What can be chosen of the agent that runs a session."""

    agent: str
    """Its name, for people."""
    options: list[AgentOption]


class AgentChoose(Mutation, frozen=True, kw_only=True):
    """Sets an option of the agent that runs the session, which keeps it for later. The mode of zot stays as it is."""

    option: str
    value: str
    """Its id, or its name."""


class GetModels(OfSession, frozen=True, kw_only=True):
    """Models of the session's provider, or of `provider`, or of all that have a key."""

    provider: str | None = None
    all: bool = False
    current: bool = False
    """Leave out models that have a successor."""


class ModelInfo(Frozen, frozen=True, omit_defaults=False):
    """One model of the catalog; unknown figures are 0."""

    id: str
    provider: str
    context_window: int
    max_output: int
    reasoning: bool
    few_shot: bool = False
    """Example calls are put in front of the transcript, because the model is too small to call tools without them."""
    ready: bool = True
    """Whether its API key, or whatever else it needs, is available."""
    api: str | None = None
    """The only API in which the vendor serves it (`responses`); null: the vendor's usual one."""
    images: bool | None = None
    """Whether it accepts images; null: unknown."""
    tools: bool | None = None
    """Whether it can call tools; null: unknown."""
    superseded: bool = False
    """Whether the same vendor has a successor, as far as the names show."""


class Models(Frozen, frozen=True):
    """The models of one provider, or of all of them."""

    models: list[ModelInfo]


class ModelQuery(Frozen, frozen=True, kw_only=True):
    """A model to look at; without `model`, the one that a new session would use."""

    provider: str | None = None
    model: str = ""
    env: dict[str, str] | None = None
    """Variables of the client that vendors use: `KeyInfo.variables` and `KeyInfo.settings`. They precede the daemon's."""


class CheckModel(ModelQuery, frozen=True, kw_only=True):
    """One question to a model."""

    probe: str
    """`stream`, `tools`, `images`, `reasoning` or `caching`."""


class ModelProbe(Frozen, frozen=True, omit_defaults=False):
    """What a small request has shown."""

    probe: str
    outcome: str
    """`yes`; `no`; `unclear`: accepted, without the expected result; `off`: the catalog says that it cannot, so nothing was
    sent."""
    sentence: str
    took_s: float
    tokens: Tokens


class TokenPrices(Frozen, frozen=True, omit_defaults=False):
    """USD for a million tokens, for small requests."""

    input: float
    output: float
    cache_read: float
    cache_write: float


class ModelDetails(Frozen, frozen=True, omit_defaults=False):
    """What the daemon knows of a model."""

    info: ModelInfo
    title: str
    """The vendor's name for display."""
    dialect: str
    """The API that requests use: `anthropic`, `openai` (Chat Completions), `responses`, `bedrock` or `vertex`."""
    base_url: str
    prices: TokenPrices | None
    """Null: unknown."""
    key: auth.KeyInfo
    missing: str
    """What is missing besides a key, as an instruction; empty: nothing."""
    known: bool
    """Whether the catalog has the model. If not, limits are guessed from its name."""


class RunCommand(Mutation, frozen=True, kw_only=True):
    """A slash command; `name` with or without the slash."""

    name: str
    args: str = ""
    unattended: str | None = None
    """As in `prompt`, for the run that the command starts."""
    patience_s: float | None = None
    """As in `prompt`."""


class CommandResult(Frozen, frozen=True):
    """What a slash command did."""

    action: str
    """`prompt` (an input was accepted), `display` or `insert` (with `text`), `open_panel` or `noop`."""
    extension: str | None = None
    """The extension that has the command; absent: it is built in."""
    text: str | None = None
    """Text to display, or to insert into the editor; attached clients also get it as an event."""
    input: str | None = None
    run: str | None = None
    position: int | None = None
    """As in the response to `prompt`."""
    started: bool | None = None


# --- sessions -------------------------------------------------------------------------------------------------


class GivenFor(Frozen, frozen=True):
    """The destination of requests for which a key was given."""

    provider: str
    base_url: str | None = None


class Secrets(Frozen, frozen=True):
    """API keys; kept in memory only, never in records, logs, status or request digests."""

    api_key: str | None = None
    given_for: GivenFor | None = None
    """Set to give a key again that the daemon may have lost in a restart: `session.configure` accepts it only if the
    session lacks its own key and still uses this destination; otherwise `conflict`."""


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
    """Maximum cost of all its model requests; absent: as configured."""
    budget_tokens: int | None = None
    fallback: list[str] | None = None
    """Models to ask when this one fails, best first: `provider/model`, or `model` if the catalog knows its vendor. Empty:
    none; absent: as configured."""
    mode: str | None = None
    agent: str | None = None
    """The adapter of another agent that runs the turns, such as `claude`; absent: zot itself does."""
    extensions: list[str] = []
    no_ext: bool = False
    ephemeral: bool = False
    keyless: bool = False
    """Create the session even if there is no API key for the vendor; if no vendor has one, it gets the first vendor of
    the catalog. Prompts are refused until there is a key."""
    discard_unused: bool = False
    """Delete the session one minute after its last client has left if it has no messages and no name. Forgotten when
    the daemon restarts."""
    env: dict[str, str] | None = None
    secrets: Secrets | None = None
    request_id: str | None = None


class SessionConfigure(Mutation, frozen=True, kw_only=True):
    """Settings from the next step on; absent fields keep their value."""

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
    fallback: list[str] | None = None
    mode: str | None = None
    extensions: list[str] | None = None
    no_ext: bool | None = None
    env: dict[str, str] | None = None
    secrets: Secrets | None = None


class SessionInfo(Frozen, frozen=True):
    """A session in lists and snapshots."""

    id: str
    name: str
    cwd: str
    provider: str
    model: str
    reasoning: str
    mode: str
    state: str
    """`idle`, `running`, `waiting` (for approval), `held` (the queue needs `continue`), `blocked` or `closed`."""
    created: str
    updated: str
    message_count: int = 0
    clients: int = 0
    ephemeral: bool = False
    failed: bool = False
    """The last run ended with an error, and no run has started since."""
    usage: Tokens = Tokens()
    """Usage of its model calls since the last `clear`, as far as known."""
    writing: int = 0
    """Characters received of the reply in progress; 0: none."""
    waiting: "Waiting | None" = None
    """Set while its run pauses before it retries the model."""
    fallback: str = ""
    """The model that is asked instead of `model`, which has failed, as `provider/model`; empty: none. Not known while the
    session is not in memory."""
    jail: str | None = None
    """What confines its calls in the mode `workspace`: `bubblewrap`, `landlock`, or `none: ` and the reason; null: no call
    has needed a jail since the session was loaded."""
    parent: SessionParent | None = None
    """Which session began it; null: it is no subagent."""
    family_usage: Tokens = Tokens()
    """What budgets count for its subagents, and theirs, beside its own requests."""
    jobs: int = 0
    """Number of its jobs that run."""
    daemon: str = ""
    """Machine and home of the other daemon that has it; empty: none. Several daemons may use one database."""
    user: str = ""
    """The user it belongs to (users.md); empty: none."""


class Cursor(Frozen, frozen=True):
    """The position up to which a client has read."""

    epoch: str
    seq: int


class Created(Frozen, frozen=True):
    """A new session and the cursor in front of its first event."""

    session: SessionInfo
    seq: int
    epoch: str


class SessionList(Frozen, frozen=True):
    """Filters; `cursor` is the one of the previous page."""

    cwd: str | None = None
    state: str | None = None
    cursor: str | None = None
    limit: int = 100
    subagents: bool = False
    """Also sessions that other sessions have begun."""
    user: str | None = None
    """Only sessions of this user."""


class Sessions(Frozen, frozen=True):
    """Newest first; `cursor` is absent on the last page."""

    sessions: list[SessionInfo]
    cursor: str | None = None


class Rename(Mutation, frozen=True, kw_only=True):
    """A name that people know the session by."""

    name: str


class Fork(Mutation, frozen=True, kw_only=True):
    """A new session that shares the transcript up to the message at `seq`.

    If another agent runs the turns, it copies its own session, as it is now: an earlier `seq` is refused.
    """

    seq: int | None = None
    name: str | None = None


class Rewind(Mutation, frozen=True, kw_only=True):
    """Go back to the message at `seq`."""

    seq: int
    files: bool = False
    """Also undo what the runs after it have changed in files."""
    when_changed: str = "refuse"
    """With `files`, as in `session.undo`."""


class Redo(Mutation, frozen=True, kw_only=True):
    """Make the changes again that the last undo has taken back."""

    when_changed: str = "refuse"
    """As in `session.undo`."""


class PlanState(Frozen, frozen=True, omit_defaults=False):
    """The plan of a session."""

    plan: Plan | None
    """Null: there is none."""
    planning: bool = False
    """Whether the session only reads until a person approves a plan."""


class PlanEdit(Mutation, frozen=True, kw_only=True):
    """Replace the steps of the plan; the model is told with its next request."""

    steps: list[PlanStep]
    """At most 50, each with at most 500 characters; line breaks become blanks."""
    revision: int
    """The revision that this changes, 0 if there was no plan. If it is not the newest one, the edit is refused: `conflict`."""


class JobList(Frozen, frozen=True):
    """The jobs of a session, oldest first: those that run, and the newest of those that do not."""

    jobs: list[JobInfo]


class JobMove(Mutation, frozen=True, kw_only=True):
    """Has a command that the model runs with `bash` go on as a job, and the run without it."""

    call: str = ""
    """The id of its call; empty: the only one that runs."""


class JobStop(Mutation, frozen=True, kw_only=True):
    """Ends a job with all that it has started; one that does not run stays as it is. The response comes when it has ended."""

    job: str


class Undo(Mutation, frozen=True, kw_only=True):
    """Take back what the last run that changed files has changed in them."""

    after: int | None = None
    """Undo all runs that began after the event with this `seq` instead."""
    when_changed: str = "refuse"
    """What happens if the user has changed some of the files since then: `refuse` (nothing is restored), `keep` (those
    files stay as they are) or `overwrite`."""


class FileChanges(OfSession, frozen=True, kw_only=True):
    """Asks what the last run that changed files has changed, among those that began between two events."""

    after: int = 0
    """`seq` of an event before its first change."""
    until: int | None = None
    """`seq` of the last event that may come before its first change; absent: all."""


class ChangedFile(Frozen, frozen=True):
    """A file that a run has changed."""

    path: str
    added: int | None = None
    """Lines; absent: it is no text."""
    removed: int | None = None


class ChangedFiles(Frozen, frozen=True):
    """What a run has changed in files."""

    run: str
    files: list[ChangedFile]
    """At most 1,000."""
    total: int
    """Number of all files."""
    patch: str
    """As git writes it, at most 256 KiB."""
    is_cut: bool = False
    """Whether the patch goes on."""


class KeptFile(Frozen, frozen=True):
    """A file that stayed as it was, although it differs."""

    path: str
    reason: str


class FilesRestored(Frozen, frozen=True):
    """Files that were returned to an earlier state. Paths are relative to the working directory, at most 1,000 of a kind."""

    restored: list[str]
    kept: list[KeptFile]
    files: int
    """Number of all files that were restored."""
    checkpoint: int
    """Number of the checkpoint of the state before (`zotctl checkpoints`); 0: nothing was to be done."""
    text: str
    """All of it in a sentence for people."""


class Export(OfSession, frozen=True, kw_only=True):
    """`format` is `jsonl` or `markdown`; `after` is `next` of the previous page."""

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
    """Working directory of the session; empty: the one in the file."""
    request_id: str | None = None


class Imported(Created, frozen=True):
    """The session that contains the file's conversation."""

    known: bool = False
    """The file had been imported before: `session` is that session, and nothing was changed."""


class History(OfSession, frozen=True, kw_only=True):
    """Messages before the event `before`, newest page first in time order."""

    before: int | None = None
    limit: int = 50
    at: int | None = None
    """Show the conversation as it was at this message; without it, as it is now, without rewound messages."""


class HistoryPage(Frozen, frozen=True):
    """Messages, oldest first; `has_more` if there are older ones."""

    messages: list[Message]
    has_more: bool


class ImageOfMessage(OfSession, frozen=True, kw_only=True):
    """An image of the message that the event `seq` shows, a prompt or a tool result; events have only its size."""

    seq: int
    index: int = 0
    """Which of its images, from 0."""


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


class McpServers(OfSession, frozen=True, kw_only=True):
    """MCP servers that a client brings along, by name. They replace those that it has brought before; none end those.

    They run for this session as long as the connection lasts, and 60 s longer.
    """

    servers: dict[str, dict[str, object]]
    """As in `mcp.json`."""


class McpServersTaken(Frozen, frozen=True):
    """What became of them; one that is used but cannot be started is told like that of any other extension."""

    refused: list[str]
    """A sentence about each one that is not used."""


class FilesOffer(OfSession, frozen=True, kw_only=True):
    """The client is an editor: files of the session are read and written through it as long as its connection lasts.

    It gets `file_request`. Of several clients the last one counts. Neither `read` nor `write` takes the offer back.
    """

    read: bool = False
    write: bool = False


class FileAnswer(OfSession, frozen=True, kw_only=True):
    """What became of a `file_request`."""

    request: str
    """Its `id`."""
    content: str | None = None
    """What was read."""
    error: str | None = None
    """Why it was neither read nor written; the daemon then uses the file on the disk."""


class TerminalsOffer(OfSession, frozen=True, kw_only=True):
    """The client is an editor: commands of the session may run in its terminals as long as its connection lasts.

    It gets `terminal_request`. Of several clients the last one counts.
    """

    offered: bool = True
    """False takes the offer back."""


class TerminalAnswer(OfSession, frozen=True, kw_only=True):
    """How the command of a `terminal_request` has ended."""

    request: str
    """Its `id`."""
    output: str = ""
    """What it has written; at least the end of it."""
    truncated: bool = False
    """The beginning of the output is missing."""
    exit_code: int | None = None
    """128 + N after signal N; absent: unknown."""
    error: str | None = None
    """Why there is no terminal, or its end is not known."""


class ToolUse(Frozen, frozen=True):
    """A tool call that the model is still writing."""

    id: str
    name: str
    args: str


class Partial(Frozen, frozen=True):
    """What the current step has produced so far."""

    text: str
    tool_uses: list[ToolUse]


class RunningCall(Frozen, frozen=True):
    """A tool call in progress."""

    id: str
    seconds: float
    """How long it has been running, without the time it waited for guards and approval."""


class Waiting(Frozen, frozen=True):
    """The pause before a failed model call is retried."""

    failures: int
    """Number of consecutive failures."""
    brief: str
    """The last failure in two or three words: `HTTP 529`, `no connection`."""
    reason: str
    """The last failure as a sentence."""
    since: str
    """Time of the first failure."""
    next_s: float
    """Seconds until the next attempt."""
    left_s: float
    """Seconds until the run gives up."""


class RunInfo(Frozen, frozen=True):
    """State of the run in progress, for a client that attaches during it."""

    id: str
    step: int
    started: str
    partial: Partial
    shell: ShellRun | None = None
    """Set if this is not a run of the model but a command that the user ran."""
    calls: list[RunningCall] = []
    """The calls that are running; others without a result are waiting."""
    waiting: Waiting | None = None
    """Set while the run pauses before it retries the model."""


class Attached(Frozen, frozen=True, omit_defaults=False):
    """A snapshot, or confirmation that the cursor is valid; missed events, `replay_complete` and live ones follow."""

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
    """Why a snapshot was sent although a cursor was given: `epoch`, `future`, `lost` (by a power failure) or
    `expired`."""
    context: int = 0
    """Tokens of the last model call, input and output; 0 if there was none since the conversation was cleared or
    compacted."""
    plan: Plan | None = None
    """As in `session.plan`."""
    planning: bool = False
    jobs: list[JobInfo] = []
    """As in `session.jobs`."""


class PresenceList(Frozen, frozen=True):
    """The attached clients."""

    clients: list[ClientInfo]
    you: str = ""
    """Id of the requesting client, attached or not."""


class PresenceUpdate(OfSession, frozen=True, kw_only=True):
    """What an attached client reports about its user; valid until the next report, or `detach`."""

    focused: bool
    """Whether the user is looking at this client: its terminal or window has the focus."""
    typing: bool = False
    """Whether the user is typing in it."""


class PushKey(Frozen, frozen=True):
    """The daemon's public key, base64url: the `applicationServerKey` of a browser's subscription."""

    key: str


class PushSubscribe(Frozen, frozen=True, kw_only=True):
    """A browser's subscription at its push service, as its `PushManager` returns it. It ends with the token."""

    endpoint: str
    public: str
    """Its key `p256dh`, base64url."""
    auth: str
    """Its key `auth`, base64url."""
    name: str = ""
    """Description of the browser, for `push.list`."""


class PushUnsubscribe(Frozen, frozen=True):
    """The subscription with this endpoint."""

    endpoint: str


class PushBrowser(Frozen, frozen=True):
    """A browser that gets push messages."""

    id: str
    name: str
    created: str
    token: str = ""
    """Name of the access token with which it has subscribed; empty: none was needed."""


class PushBrowsers(Frozen, frozen=True):
    """The browsers that get push messages, oldest first."""

    browsers: list[PushBrowser]


class PushRemove(Frozen, frozen=True):
    """The browser with this id."""

    browser: str


class Subscribe(Frozen, frozen=True):
    """Topics: `sessions`, `extensions`, `trust`, `timers`."""

    topics: list[str]


class Complete(OfSession, frozen=True, kw_only=True):
    """Completion of a file, a command or a model."""

    kind: str
    """`file`, `command` or `model`."""
    text: str
    """What was typed so far, without the `@`; for commands with or without the slash. Texts of more than 256 characters
    have no completions, except paths outside of the workspace."""


class Completion(Frozen, frozen=True):
    """A completion with details for display."""

    text: str
    """As in `items`."""
    detail: str = ""
    """One line: what a command does, or what a model lacks."""
    source: str = ""
    """For a mention: the name of the extension. For commands: `built in`, `skill`, the name of the extension or of the adapter, or the directory of the command's file, such
    as `.claude/commands`. For models: the provider."""
    hint: str = ""
    """What arguments a command takes, for people; empty: unknown."""


class Completions(Frozen, frozen=True):
    """Completions, best first; at most 50."""

    items: list[str]
    """Paths relative to the working directory, with a slash behind directories, or in the form that was typed if `text`
    begins with `/`, `~/` or `../`, and between them what extensions offer to mention; commands without the slash; models as `provider/model`."""
    found: list[Completion] = []
    """The same completions with details, in the order of `items`; empty if all are files."""
    partial: bool = False
    """The list may be incomplete: files are still being indexed, or are too many. Ask again in a moment."""


class WorkspaceInfo(Frozen, frozen=True):
    """The directory that a session works in."""

    cwd: str
    branch: str | None = None
    """The git branch, or the abbreviated commit if none is checked out; absent: not in a repository."""
    detached: bool = False
    """Whether `branch` is a commit."""


class PromptHistory(Frozen, frozen=True, kw_only=True):
    """The prompts of all stored sessions; `cursor` is the one of the previous page."""

    query: str = ""
    """Only prompts that contain this text, ignoring case."""
    cursor: str | None = None
    limit: int = 50


class QueueList(Frozen, frozen=True):
    """The pending inputs, in the order in which they will start."""

    items: list[QueueItem]
    held: bool


class QueueWithdraw(Mutation, frozen=True, kw_only=True):
    """Withdraw an input that has not started."""

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
    """For `allow`: `once`, `session` (applies for the rest of the session) or `always` (added to `config.toml`)."""
    reason: str | None = None
    """Shown to the model and to other clients."""
    args: dict[str, object] | None = None
    """Run the call with these arguments instead; guards check them again. For a `question`: the answers."""
    choice: str | None = None
    """For a scope other than `once`: the id of one of the request's `choices`; absent: `same`."""


class ApprovalScope(Frozen, frozen=True, kw_only=True):
    """The approvals of one session, or of all without `session`."""

    session: str | None = None


class Approvals(Frozen, frozen=True):
    """The pending approval requests, oldest first; each has its `session`."""

    approvals: list[ApprovalRequested]
    truncated: bool = False
    """The list was cut at the frame limit of 4 MiB; decide these first."""


class Grant(Frozen, frozen=True):
    """What was allowed for the rest of a session: a rule."""

    tool: str
    """The tool of the calls; `network` for hosts, `files` for files and directories outside of the jail."""
    match: str


class Grants(Frozen, frozen=True):
    """The grants of a session, oldest first."""

    grants: list[Grant]


class RevokeGrants(Mutation, frozen=True, kw_only=True):
    """Grants to take back; with one that the session does not have, none is."""

    grants: list[Grant] = []


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
    """Reports that the user closed the panel."""

    panel_id: str


class TokenCreate(Frozen, frozen=True):
    """A new token for the WebSocket door."""

    name: str
    """1 to 64 letters, digits, `.`, `_` and `-`."""
    role: str
    """The highest role it grants: `read`, `submit`, `approve` or `admin`."""
    session: str | None = None
    """Limit the token to the session with this id; absent: all sessions."""
    expires_s: float | None = None
    """Seconds until it expires; absent: never."""
    request_id: str | None = None
    sessions: list[str] = []
    """Ids of further sessions that the token may use."""
    user: str | None = None
    """The user that sessions begun with this token belong to (users.md): 1 to 64 letters, digits, `.`,
    `_`, `-` and `@`; absent: none."""


class TokenName(Frozen, frozen=True):
    """Parameters of commands that only name a token."""

    name: str
    request_id: str | None = None


class TokenInfo(Frozen, frozen=True):
    """A token without its secret."""

    name: str
    role: str
    created: str
    sessions: list[str] = []
    """The sessions it is limited to; empty: all."""
    expires: str | None = None
    used: str | None = None
    """Time of its last use, to the minute; absent: never used."""
    user: str = ""
    """The user that sessions begun with this token belong to; empty: none."""


class TokenMade(TokenInfo, frozen=True, kw_only=True):
    """The new token, including its secret."""

    token: str
    """The secret. It is in no other response; the daemon only stores its digest."""


class TokenList(Frozen, frozen=True):
    """All tokens without their secrets, oldest first."""

    tokens: list[TokenInfo]


class AuditQuery(Frozen, frozen=True, kw_only=True):
    """Entries of the audit trail with all of these values; `cursor` is the one of the previous page."""

    who: str | None = None
    command: str | None = None
    session: str | None = None
    cursor: str | None = None
    limit: int = 50


class UsageReport(Frozen, frozen=True):
    """Since an RFC 3339 time (else from the beginning), grouped by `model`, `session`, `cwd`, `user` or `day`."""

    since: str | None = None
    by: str = "model"


class Shutdown(Frozen, frozen=True):
    """Stop the daemon, at once or as soon as nothing runs."""

    when_idle: bool = False
    request_id: str | None = None


class DaemonDrain(Frozen, frozen=True):
    """Stop the daemon at the ends of its steps, and have other daemons of its database go on."""

    request_id: str | None = None


class Draining(Frozen, frozen=True):
    """The daemons that go on, by machine and home, and how long runs may take to stop, in seconds."""

    daemons: list[str]
    within_s: float


class SessionMove(Frozen, frozen=True):
    """Have another daemon of the database go on with a session; `to` is its name, machine or home, empty for the only other one."""

    session: str = ""
    to: str = ""
    request_id: str | None = None


class SessionMoved(Frozen, frozen=True):
    """The daemon that has the session from now on. Comes after the end of the step that runs."""

    daemon: str


class FleetDaemon(Frozen, frozen=True, omit_defaults=False):
    """One of the daemons that share a database."""

    name: str
    """Its machine and its home."""
    address: str
    """Where the others reach it; empty: they cannot."""
    state: str
    """`running`, `stopping`, or `expired`: it has not renewed its lease in time."""
    is_this: bool
    """It is the one that answers."""
    sessions: int
    """Sessions that no other daemon can open."""
    running: int
    """Of these, those that run or wait for a decision."""
    labels: list[str] = field(default_factory=list)
    """What it has, for prompts of batches that need it."""
    prompts: int = 0
    """Prompts of batches that it runs."""
    lease_s: float = 0.0
    """Seconds until its lease expires, unless it is renewed; below 0: since it has expired."""


class WaitingPrompts(Frozen, frozen=True, omit_defaults=False):
    """Prompts of batches that no daemon runs yet."""

    labels: list[str]
    """They need a daemon that has all of these."""
    prompts: int
    daemons: int
    """How many running daemons have them. 0: the prompts wait for such a daemon; else for a free place."""


class FleetList(Frozen, frozen=True):
    """All daemons of the database, oldest first; none if the sessions are in a file."""

    daemons: list[FleetDaemon]
    waiting: list[WaitingPrompts] = field(default_factory=list)
    """By the labels that they need."""


class FleetReady(Frozen, frozen=True, omit_defaults=False):
    """Whether the daemon takes work. Costs the database one indexed row, however many daemons and sessions there are."""

    ready: bool
    """It is not stopping, and has a lease if its sessions are in a database."""
    stopping: bool
    """It takes no new work, because it is stopping or being drained."""
    lease_s: float | None
    """Seconds for which no other daemon takes its sessions, unless it renews its lease as usual. 0: others may have them.
    Null: they are in a file."""


class ConfigReloaded(Frozen, frozen=True):
    """Names of the settings that differ after the configuration was reloaded."""

    applied: list[str]
    """In effect now; settings of runs from the next run on."""
    restart: list[str]
    """Changed in the file; they take effect when the daemon restarts."""
    warnings: list[str]


class Status(Frozen, frozen=True, omit_defaults=False):
    """The state of the daemon; `zotctl status --json` prints the same."""

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
    """The oldest and the newest protocol version that it supports."""
    websocket: str | None = None
    """URL of the WebSocket door; null: none."""
    service: str | None = None
    """The service manager that runs it: `systemd` or `launchd`; null: none."""


class CommandSpec(Struct, frozen=True):
    """A command: a row of the table."""

    name: str
    params: type[Frozen]
    result: type[Frozen] | None
    """None: the response has no `data`."""
    role: Role
    summary: str
    stdio: bool = False
    """Also a command of `zot rpc`."""


def _rows(role: Role, *rows: tuple[str, type[Frozen], type[Frozen] | None, str]) -> tuple[CommandSpec, ...]:
    return tuple(
        CommandSpec(name, params, result, role, summary, stdio=name in _STDIO) for name, params, result, summary in rows
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
        "session.undo",
        "session.redo",
    ]
)

COMMANDS: tuple[CommandSpec, ...] = (
    *_rows(
        Role.READ,
        ("hello", Hello, HelloResult, "introduces the client; agrees on a version and a role"),
        ("ping", Nothing, Pong, "checks that the daemon responds"),
        ("session.list", SessionList, Sessions, "lists sessions, newest first"),
        ("session.get", OfSession, SessionInfo, "returns one session"),
        ("session.family", OfSession, Sessions, "returns a session and its subagents, each before those below it"),
        ("agents.list", AgentScope, Agents, "lists the agent types that sessions in a directory have"),
        (
            "diagnostics.list",
            DiagnosticsScope,
            LanguageServerReport,
            "lists language servers: those that run, and those that could",
        ),
        ("session.history", History, HistoryPage, "returns older messages, page by page"),
        ("session.image", ImageOfMessage, PromptImage, "returns an image of a message"),
        ("session.search", Search, reports.SearchPage, "searches all sessions, newest messages first"),
        ("session.tree", OfSession, reports.Tree, "returns forks and rewinds of a session"),
        ("attach", Attach, Attached, "returns a snapshot, then sends missed events, then live ones"),
        ("detach", OfSession, None, "stops sending events; the session continues"),
        ("presence", OfSession, PresenceList, "lists the attached clients"),
        ("presence.update", PresenceUpdate, None, "reports whether the user is looking at this client"),
        ("subscribe", Subscribe, None, "subscribes to topics of the daemon"),
        ("push.key", Nothing, PushKey, "returns the key with which browsers subscribe to push messages"),
        ("get_state", OfSession, State, "returns settings and usage of a session"),
        ("get_messages", GetMessages, Messages, "returns the transcript as the model sees it"),
        ("get_models", GetModels, Models, "lists available models"),
        ("model.show", ModelQuery, ModelDetails, "describes a model: limits, prices, address, key"),
        ("complete", Complete, Completions, "completes a file, command or model name"),
        ("prompt.history", PromptHistory, reports.PromptPage, "lists earlier prompts of all sessions, newest first"),
        ("workspace.info", OfSession, WorkspaceInfo, "returns the working directory of a session and its git branch"),
        ("approval.list", ApprovalScope, Approvals, "lists pending approval requests of one session or all"),
        ("grant.list", OfSession, Grants, "lists what was allowed for the rest of a session"),
        ("session.plan", OfSession, PlanState, "returns the plan of a session"),
        ("session.jobs", OfSession, JobList, "lists the jobs of a session"),
        ("session.changes", FileChanges, ChangedFiles, "returns what a run has changed in files"),
        ("timer.list", TimerQuery, TimerList, "lists timers"),
        ("batch.list", BatchListQuery, BatchList, "lists batches of prompts"),
        ("batch.results", BatchResultQuery, BatchResults, "returns what has come of the prompts of a batch"),
        ("queue.list", OfSession, QueueList, "lists queued inputs"),
        ("ext.list", extensions.Scope, extensions.ExtensionList, "lists extensions and their states"),
        ("ext.logs", extensions.Logs, extensions.LogPage, "returns the end of an extension's log"),
        ("channel.list", Nothing, ChannelList, "lists messaging channels and their senders"),
        ("ext.doctor", extensions.Scope, extensions.Findings, "lists problems with extensions"),
        ("daemon.status", Nothing, Status, "returns the state of the daemon"),
        ("fleet.list", Nothing, FleetList, "lists the daemons that share the database"),
        ("fleet.ready", Nothing, FleetReady, "returns whether the daemon takes work and has a lease"),
        ("daemon.metrics", Nothing, reports.Metrics, "returns gauges and counters of the daemon"),
        ("users.list", Nothing, reports.UserList, "lists users, with what they have and may spend today"),
        ("usage.report", UsageReport, reports.UsageSums, "sums up tokens and cost"),
        ("auth.list", auth.AuthScope, auth.KeyList, "lists vendors and the sources of their API keys"),
    ),
    *_rows(
        Role.SUBMIT,
        ("session.create", SessionCreate, Created, "creates a session"),
        ("session.configure", SessionConfigure, SessionInfo, "changes settings of a session"),
        ("session.rename", Rename, SessionInfo, "renames a session"),
        ("session.fork", Fork, Created, "creates a session with the history of this one up to a message"),
        ("session.rewind", Rewind, FilesRestored, "returns to an earlier message, with `files` also the files"),
        ("session.undo", Undo, FilesRestored, "takes back what the last run has changed in files"),
        ("session.redo", Redo, FilesRestored, "makes the changes again that the last undo has taken back"),
        ("session.plan_edit", PlanEdit, PlanState, "changes the steps of the plan"),
        ("session.job_move", JobMove, JobInfo, "sends a running command to the background"),
        ("session.job_stop", JobStop, JobInfo, "ends a job"),
        ("session.export", Export, Exported, "returns the transcript as text, page by page"),
        ("session.close", Mutation, None, "unloads a session; deletes an ephemeral one"),
        ("session.mcp_servers", McpServers, McpServersTaken, "runs MCP servers of the client while it is connected"),
        ("prompt", Prompt, Started, "sends a prompt"),
        ("abort", Mutation, None, "cancels the current run"),
        ("retry", Mutation, None, "retries a failed model call now instead of after the pause"),
        ("compact", Compact, Started, "summarises the transcript"),
        ("session.side_question", SideQuestion, SideAnswer, "asks the model beside the conversation"),
        ("queue.withdraw", QueueWithdraw, None, "removes a queued input"),
        ("queue.move", QueueMove, None, "moves a queued input"),
        ("timer.add", TimerAdd, TimerInfo, "adds a timer, which sends a prompt when it is due"),
        ("timer.edit", TimerEdit, TimerInfo, "changes a timer"),
        ("timer.pause", TimerName, TimerInfo, "lets a timer not fire until it is resumed"),
        ("timer.resume", TimerName, TimerInfo, "lets a paused timer fire again"),
        ("timer.remove", TimerName, None, "removes a timer"),
        ("timer.run", TimerName, TimerFired, "fires a timer now, beside its due times"),
        ("batch.submit", BatchSubmit, BatchSubmitted, "has prompts run, each in a session, by any daemon of the fleet"),
        ("batch.cancel", BatchName, BatchCancelled, "runs no more prompts of a batch, and aborts those that run"),
        ("run_command", RunCommand, CommandResult, "runs a slash command"),
        ("clear", Mutation, None, "clears the transcript"),
        ("set_model", SetModel, ModelName, "switches the model"),
        ("set_reasoning", SetReasoning, None, "sets the reasoning effort"),
        ("push.subscribe", PushSubscribe, PushBrowser, "sends push messages to a browser from now on"),
        ("push.unsubscribe", PushUnsubscribe, None, "sends no more push messages to a browser"),
        ("panel.key", PanelKey, None, "sends a key to a panel"),
        ("panel.resize", PanelResize, None, "sets the size of a panel"),
        ("panel.close", PanelClose, None, "closes a panel"),
        ("ext.reload", extensions.Scoped, extensions.Reloaded, "restarts one extension, or all"),
        ("ext.tap", extensions.Tap, None, "sends all frames of an extension as events"),
    ),
    *_rows(
        Role.APPROVE,
        ("approve", Approve, None, "decides an approval request"),
        ("shell", Shell, Started, "runs a command of the user"),
        ("files.offer", FilesOffer, None, "has files read and written through an editor"),
        ("files.answer", FileAnswer, None, "answers a request about a file"),
        ("terminals.offer", TerminalsOffer, None, "has commands run in terminals of an editor"),
        ("terminals.answer", TerminalAnswer, None, "says how a command in a terminal has ended"),
        ("set_mode", SetMode, None, "sets the approval mode"),
        (
            "session.agent_options",
            OfSession,
            AgentOptionList,
            "starts the other agent of a session; returns its options",
        ),
        ("session.agent_choose", AgentChoose, AgentOptionList, "sets an option of the other agent, such as its mode"),
        (
            "grant.revoke",
            RevokeGrants,
            Grants,
            "takes back what was allowed for the rest of a session; returns what is left",
        ),
    ),
    *_rows(
        Role.ADMIN,
        ("session.delete", Mutation, None, "deletes a session and its records"),
        ("session.import", Import, Imported, "imports a session file: an export, or one of the Go version of zot"),
        ("ext.install", extensions.Install, extensions.InstalledExtension, "installs an extension"),
        ("ext.remove", extensions.Remove, extensions.Removed, "removes an extension"),
        ("ext.enable", extensions.Name, None, "enables an extension"),
        ("ext.disable", extensions.Name, None, "disables an extension"),
        ("channel.pair", ChannelPair, PairedSender, "allows the sender that was given a code to write"),
        ("channel.unpair", ChannelUnpair, None, "no longer allows a sender to write"),
        ("auth.check", auth.CheckKey, auth.KeyCheck, "checks an API key with the vendor"),
        ("model.check", CheckModel, ModelProbe, "sends a small request that shows what works with a model"),
        ("auth.login", auth.Login, auth.KeyInfo, "stores a vendor's API key"),
        ("auth.logout", auth.Logout, auth.KeyInfo, "deletes a vendor's stored API key and login"),
        ("auth.begin", auth.LoginBegin, auth.LoginBegun, "begins a login by subscription"),
        ("auth.wait", auth.LoginWait, auth.LoginOutcome, "waits for the end of a login by subscription"),
        ("auth.cancel", auth.LoginCancel, None, "cancels a login by subscription"),
        ("trust.list", extensions.TrustScope, extensions.TrustList, "lists trusted workspaces, or describes one"),
        ("trust.grant", extensions.TrustGrant, extensions.TrustedWorkspace, "trusts a workspace's code as it is now"),
        ("trust.revoke", extensions.TrustPath, None, "revokes trust in a workspace"),
        ("push.list", Nothing, PushBrowsers, "lists the browsers that get push messages"),
        ("push.remove", PushRemove, None, "sends no more push messages to a browser of the list"),
        ("token.create", TokenCreate, TokenMade, "creates a token"),
        ("token.list", Nothing, TokenList, "lists tokens, without their secrets"),
        ("token.revoke", TokenName, None, "revokes a token"),
        ("audit.list", AuditQuery, reports.AuditPage, "lists who has decided what, newest first"),
        (
            "daemon.compact",
            Nothing,
            reports.Compacted,
            "returns the disk space of deleted sessions; commits wait meanwhile",
        ),
        ("daemon.reload", Nothing, ConfigReloaded, "reloads the configuration; an invalid one changes nothing"),
        ("session.move", SessionMove, SessionMoved, "has another daemon of the database go on with a session"),
        ("daemon.shutdown", Shutdown, None, "stops the daemon"),
        (
            "daemon.drain",
            DaemonDrain,
            Draining,
            "hands what runs over to other daemons of the database, and stops the daemon",
        ),
    ),
)
"""Every command of protocol 1. Commands without a handler answer `unsupported`."""

BY_NAME = {command.name: command for command in COMMANDS}

MAX_ID = 2**53
"""Largest numeric request id: larger ones are not exact in JavaScript."""
