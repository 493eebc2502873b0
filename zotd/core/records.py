"""The kinds of journal records (`docs/durability.md`), as a tagged union of their bodies.

History is never rewritten: compaction, fork, rewind and clear are records that change what the model sees. The events
shown to people are stored next to the body (see `core.ports.JournalEntry`).
"""

from typing import Literal

import msgspec

from zotd.core.choices import Choice, of_rule
from zotd.core.permissions import PermissionRule
from zotd.wire.base import Frozen
from zotd.wire.content import Block, Tokens, ToolContent
from zotd.wire.jobs import JobInfo
from zotd.wire.plan import Plan

VERSION = 1
"""`v` of every record written by this program."""

DATE_NOTE = "(The date is {date} now.)"
"""Tells the model the day with an input. In the system prompt a new day would make the vendor's cache worthless."""


class Record(Frozen, tag_field="kind", frozen=True, kw_only=True):
    """Base of all records; the tag `kind` selects the type on disk."""

    time: str
    """RFC 3339, UTC, milliseconds."""
    v: int = VERSION


class Settings(Frozen, frozen=True, kw_only=True):
    """Settings of a session; contains no secrets."""

    provider: str
    model: str
    reasoning: str = "off"
    mode: str = "yolo"
    base_url: str | None = None
    system_prompt: str | None = None
    append_system_prompt: list[str] = []
    tools: list[str] | None = None
    no_tools: bool = False
    max_steps: int | None = None
    extensions: list[str] = []
    no_ext: bool = False
    own_key: bool = False
    """The session was given its own key (`--api-key`) and never uses another one."""
    budget_usd: float | None = None
    """Limit for the cost of all its requests together, in USD; None: as configured."""
    budget_tokens: int | None = None
    planning: str = ""
    """The mode to return to when a person has approved a plan (`/plan`); empty: the session does not plan."""
    fallback: list[str] | None = None
    """Models to ask when the own one fails, as `provider/model`, best first; None: as configured, empty: none."""
    agent: str = ""
    """The adapter of another agent, which runs the session's turns; empty: none. `model` is its name then."""
    agent_choices: dict[str, str] = {}
    """What people have chosen of that agent's options, such as its mode, by the agent's id of the option."""

    @property
    def label(self) -> str:
        """Vendor and model, for example `openai/gpt-5.5`."""
        return f"{self.provider}/{self.model}"


class Opening(Frozen, frozen=True):
    """Tool calls to run first, as if the model had made them."""

    name: str
    args: dict[str, object]
    more: list[dict[str, object]] = []
    """The arguments of further calls of the same tool."""


class AllowedTools(Frozen, frozen=True):
    """The only tool calls that a run may make, because the file of its slash command says so."""

    command: str
    """The name of the command, without the slash."""
    entries: list[str]
    """As in the file (`core.allowed_tools`); empty: no call at all."""
    is_agent: bool = False
    """`command` is the name of an agent type."""
    above: "AllowedTools | None" = None
    """What holds as well: what the run may call that began the subagent."""


class Input(Record, tag="input", frozen=True, kw_only=True):
    """A prompt was accepted. It starts with the attempt that names it."""

    id: str
    content: list[Block]
    sender: str = ""
    mode: str = "queue"
    request_id: str | None = None
    digest: str | None = None
    """SHA-256 of the request, to distinguish a repeated request from a different one with the same id."""
    opening: Opening | None = None
    unattended: str | None = None
    """How to treat approvals that no attached client can decide: `park` or `deny`; None: as configured."""
    patience_s: float | None = None
    """How long its run retries a failing model, at most as long as configured; None: as configured."""
    allowed_tools: AllowedTools | None = None
    """What its run may call; None: whatever the session allows."""


class Attempt(Record, tag="attempt", frozen=True, kw_only=True):
    """A model request is about to be sent, or (`answered`) the provider has begun to answer."""

    run: str
    step: int
    number: int
    """Number of the attempt within this step, from 1; 0 is the compaction that a run begins with."""
    provider: str
    model: str
    input: str | None = None
    """The input that this attempt starts with."""
    answered: bool = False
    steered: list[str] = []
    """Inputs that join the run here (`when_busy: "steer"`)."""
    resumes: bool = False
    """The run resumes where another one was cut. This record stands for no model request (its step is 0), and it drops
    an incomplete reply from what the model sees."""
    estimate: Tokens | None = None
    """What budgets charge for it if a crash cuts it, since it has no usage row then."""
    continues: str | None = None
    """With `resumes`: the run that was cut."""
    date: str = ""
    """The day that the model is told with the input that joins here; empty: it knows the day already."""
    context: str = ""
    """What guards have the model read beside the input that this attempt starts with."""
    covers: int = 0
    """More than 0: this requests an early summary of so many of the first messages, while the run goes on. Its number is 0."""
    waits: bool = False
    """The run waits for the early summary that is under way. This record stands for no request of its own."""
    asked_by: str = ""
    """Not empty: this requests an answer for the tool call with this id, for a person (`side_question`), or for a search of a tool call
    (`web_search:` and its id), while a run may go on. Its number is 0."""


class Reply(Record, tag="message", frozen=True, kw_only=True):
    """The model's message, complete or (if `stop` is `aborted` or `error`) as far as it was received."""

    run: str
    step: int
    content: list[Block]
    stop: str


class CallStarted(Record, tag="call_started", frozen=True, kw_only=True):
    """A tool that is not `safe` is about to run, with its final arguments."""

    run: str
    call_id: str
    name: str
    args: dict[str, object]
    replay: str
    operation_key: str | None = None
    within: str | None = None
    """The outermost call that caused this one, if an extension made it. Recovery then does not repeat that call."""


class CallResult(Record, tag="call_result", frozen=True, kw_only=True):
    """Result of a tool call, or its replacement if there is none."""

    run: str
    call_id: str
    name: str
    is_error: bool
    content: ToolContent
    unknown: bool = False
    """The daemon stopped while it ran, so it may have taken effect."""
    took_s: float | None = None
    """How long the tool ran, in seconds; None: it did not run, or an earlier version ran it."""


class ShellStarted(Record, tag="shell_started", frozen=True, kw_only=True):
    """A user's shell command is about to run; recovery does not repeat it."""

    id: str
    command: str
    context: bool
    """Whether the model sees the command and its output."""
    sender: str = ""
    request_id: str | None = None
    digest: str | None = None
    """As in `Input`."""


class ShellResult(Record, tag="shell_result", frozen=True, kw_only=True):
    """Result of a user's shell command; with `context` it is a message for the model."""

    id: str
    context: bool
    content: list[Block]
    exit: int | None = None
    """Exit code; None if it was aborted, or the daemon stopped while it ran."""
    unknown: bool = False
    """The daemon stopped while it ran, so it may have taken effect."""


CacheLife = Literal["5m", "1h", "off"]
"""How long a vendor keeps what a request wrote to its cache, counted from its last use; `off`: nothing is written."""


class PrefixDigests(Frozen, frozen=True):
    """What a request begins with, as digests: a difference tells why a vendor's cache was missed."""

    system: dict[str, str]
    """By the names of the system prompt's parts, such as the path of an `AGENTS.md`."""
    tools: tuple[tuple[str, str], ...]
    """Names and digests, in the order in which they were sent."""
    reasoning: str = "off"


class UsageRow(Record, tag="usage", frozen=True, kw_only=True):
    """Tokens of one attempt, successful or not; `tokens` is None if the provider did not report them."""

    run: str
    step: int
    provider: str
    model: str
    tokens: Tokens | None
    purpose: str = "reply"
    """`reply`, `compaction`, `early_summary`, `sampling`, `side_question` or `web_search`."""
    estimate: Tokens | None = None
    """What budgets count instead of `tokens`, if the cost is unknown or incomplete."""
    reasoning: int = 0
    """Tokens of the output that were reasoning; 0 also if the provider did not report them."""
    took_s: float | None = None
    """Seconds from sending the request to its end, successful or not; None: it was not sent, a crash cut it, or an
    earlier version sent it."""
    first_s: float | None = None
    """Seconds from sending the request to the first token of the reply; None: there was none."""
    answered_by: str = ""
    """The model that answered, if it is another one than `model`: an alias stands for it, or a router has chosen it."""
    failure: str = ""
    """Why it failed: a `core.retry.Failure`, `aborted`, or `interrupted` by a crash. Empty: it was answered in full, or an earlier version sent it."""
    prefix: PrefixDigests | None = None
    """What the request began with, if that is not known from an earlier row since the last compaction."""
    missed: int = 0
    """Tokens that the vendor's cache should have had and that were read anew; 0 below `core.caching.MISSED_FROM`."""
    missed_because: str = ""
    """Why: a `core.caching.MissReason`."""
    searches: int = 0
    """How often a vendor's model has searched the web for it; what that costs is in `tokens.cost_usd`."""
    summary: str = ""
    """The early summary that was requested. It is here and in no record of its own: it is paid for and kept in one step, and
    earlier versions still read the session."""


class ConfigRecord(Record, tag="config", frozen=True, kw_only=True):
    """The settings and the name of the session from this record on."""

    settings: Settings
    name: str


class Known(Frozen, frozen=True):
    """A request that was accepted as an input; if it is repeated, only its response is sent again."""

    request: str
    digest: str
    input: str


class Compaction(Record, tag="compaction", frozen=True, kw_only=True):
    """The model sees the summary and the last `kept` messages; the rest stays in the journal."""

    summary: str
    kept: int
    known: list[Known] = []
    """The newest request ids so far, because a restart no longer reads the records that contain them."""
    allowed_tools: AllowedTools | None = None
    """What the run may call that goes on behind this, for the same reason."""


class Clear(Record, tag="clear", frozen=True, kw_only=True):
    """The model sees nothing of what came before."""

    known: list[Known] = []
    """As in `Compaction`."""


class ModelSwitch(Record, tag="model_switch", frozen=True, kw_only=True):
    """Requests of the session go to another model from here on; each of the three is `provider/model`."""

    run: str
    before: str
    after: str
    own: str
    """The model of the session's settings. The switch is over when `after` is this one, or the settings name another."""
    reason: str = ""
    """Why `before` is not asked; empty if it was a fallback that is no longer needed."""


class QueueOrder(Record, tag="queue", frozen=True, kw_only=True):
    """The pending inputs in their new order, after a client changed the queue."""

    order: list[str]
    held: bool


class Note(Record, tag="note", frozen=True, kw_only=True):
    """A line for people. A run that failed ends with one."""

    level: str
    text: str
    refused: bool = False
    """The vendor refused a request with images that no reply had followed; later requests omit them."""


class Interrupted(Record, tag="interrupted", frozen=True, kw_only=True):
    """Work was cut by a crash; `text` says what is known of it."""

    what: str
    text: str
    call_id: str | None = None


class ApprovalRow(Record, tag="approval", frozen=True, kw_only=True):
    """A tool call needs a person's approval."""

    id: str
    call_id: str
    tool: str
    args: dict[str, object]
    args_digest: str
    expires: str | None = None
    run: str = ""
    preview: str | None = None
    """What clients show of the call."""
    rule: PermissionRule | None = None
    """Only in records of earlier versions: the rule for the scopes `session` and `always`."""
    choices: tuple[Choice, ...] = ()
    """What can be allowed in addition to this call; empty if it can only be allowed once."""
    while_running: bool = False
    """The call has started, and its command waits for this: it is about a host, and ends with the command."""
    result: ToolContent | None = None
    """The call has ended with this error, because of what the question is about: after a restart it is not run again."""

    @property
    def offered(self) -> tuple[Choice, ...]:
        """The choices, also of records of earlier versions."""
        return self.choices or (() if self.rule is None else (of_rule(self.rule),))


class Decision(Record, tag="decision", frozen=True, kw_only=True):
    """A pending approval was resolved."""

    approval: str
    decision: str
    """`allow`, `deny` or `cancelled`."""
    scope: str
    """`once`, `session` or `always`."""
    by: str
    """Display name of the person; empty if it ended without a decision, see `reason`."""
    reason: str | None = None
    args: dict[str, object] | None = None
    """Arguments to run it with instead of the requested ones."""
    choice: str = ""
    """For a scope beyond `once`: id of the choice that was made."""


class ForkRow(Record, tag="fork", frozen=True, kw_only=True):
    """This session continues another one from there. Pending inputs and grants of that session are not copied."""

    session: str
    at: int
    """`seq` of the last message that both have in common."""
    file: str = ""
    """Path of the file that the other session was imported from; empty if it was in the journal."""


class RewindRow(Record, tag="rewind", frozen=True, kw_only=True):
    """The model sees what it saw at record `to`, and nothing after it."""

    to: int
    seq: int = 0
    """`seq` of the last message that remains visible."""


class FileRestore(Record, tag="file_restore", frozen=True, kw_only=True):
    """Files of the workspace were returned to an earlier state, for a user, or brought from another place.

    `content` is a message for the model.
    """

    action: str
    """`undo`, `redo`, `rewind` or `arrival`."""
    files: int
    """Number of files that were changed."""
    checkpoint: int
    """Number of the checkpoint of the state before; 0: nothing was to be done."""
    content: list[Block] = []
    """Empty: the model need not know."""


class PlanChange(Record, tag="plan", frozen=True, kw_only=True):
    """The session's plan from this record on. Its notes are a message for the model, with the next request."""

    plan: Plan | None
    """None: there is none."""
    mode_note: str = ""
    """What the model has not been told yet of the beginning or the end of planning; empty: nothing."""
    edit_note: str = ""
    """What the model has not been told yet of edits by people; empty: nothing."""

    @property
    def note(self) -> str:
        """Both notes."""
        return "\n\n".join(filter(None, (self.mode_note, self.edit_note)))


class JobStarted(Record, tag="job_started", frozen=True, kw_only=True):
    """A command is about to be started in the background."""

    job: JobInfo
    command: str
    """The whole command."""


class JobEnded(Record, tag="job_ended", frozen=True, kw_only=True):
    """A job has ended, or a crash has cut it."""

    job: JobInfo
    note: str = ""
    """A message for the model, with the next request; empty: it knows."""


class AgentSession(Record, tag="agent_session", frozen=True, kw_only=True):
    """The other agent that runs the turns has begun a session of its own, which it may take up again later."""

    id: str
    """The agent's id of it; empty: the agent has not made the copy yet."""
    copied_from: str = ""
    """The session of the agent's that it is a copy of, until there was a turn in it: before, the agent may have it in memory only."""


AnyRecord = (
    Input
    | Attempt
    | Reply
    | CallStarted
    | CallResult
    | ShellStarted
    | ShellResult
    | UsageRow
    | ConfigRecord
    | Compaction
    | Clear
    | ModelSwitch
    | QueueOrder
    | Note
    | Interrupted
    | ApprovalRow
    | Decision
    | ForkRow
    | RewindRow
    | FileRestore
    | PlanChange
    | JobStarted
    | JobEnded
    | AgentSession
)

DECODER = msgspec.json.Decoder(AnyRecord)
"""Decodes a record's body; raises `msgspec.ValidationError` for a kind that a newer program wrote."""


def kind_of(record: Record) -> str:
    """Return the record's kind, as used in the journal and in `docs/durability.md`."""
    return str(type(record).__struct_config__.tag)
