"""The kinds of journal record (`docs/durability.md`): the body of each, as a tagged union.

History is never rewritten: compaction, fork, rewind and clear are records that move what the model sees. What
people saw is kept beside the body, as the events that the record showed (see `core.ports.JournalEntry`).
"""

import msgspec

from zotd.core.choices import Choice, of_rule
from zotd.core.permissions import PermissionRule
from zotd.wire.base import Frozen
from zotd.wire.content import Block, Tokens, ToolContent

VERSION = 1
"""`v` of every record written by this program."""


class Record(Frozen, tag_field="kind", frozen=True, kw_only=True):
    """Base of all records; the tag `kind` selects the type on disk."""

    time: str
    """RFC 3339, UTC, milliseconds."""
    v: int = VERSION


class Settings(Frozen, frozen=True, kw_only=True):
    """How a session runs; no secret is among it."""

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
    """It was given a key of its own (`--api-key`), and never uses another one."""
    budget_usd: float | None = None
    """What all its requests together may cost; None: as configured."""
    budget_tokens: int | None = None


class Opening(Frozen, frozen=True):
    """A tool call that a run begins with, as if the model had made it."""

    name: str
    args: dict[str, object]


class Input(Record, tag="input", frozen=True, kw_only=True):
    """A prompt was accepted; it starts with the attempt that names it."""

    id: str
    content: list[Block]
    sender: str = ""
    mode: str = "queue"
    request_id: str | None = None
    digest: str | None = None
    """SHA-256 of the request, to tell a repetition from another request with the same id."""
    opening: Opening | None = None
    unattended: str | None = None
    """What becomes of a question to a person that nobody can answer: `park` or `deny`; None: as configured."""
    patience_s: float | None = None
    """How long its run waits for a model that fails, at most as long as configured; None: as configured."""


class Attempt(Record, tag="attempt", frozen=True, kw_only=True):
    """A model request is about to be sent, or (`answered`) the provider has begun to answer."""

    run: str
    step: int
    number: int
    """Counts the tries of this step, from 1; 0 is the summary that a run begins with."""
    provider: str
    model: str
    input: str | None = None
    """The input that this attempt starts with."""
    answered: bool = False
    steered: list[str] = []
    """Inputs that join the run here (`when_busy: "steer"`)."""
    resumes: bool = False
    """The run goes on where another one was cut: no model is asked by this record (its step is 0), and a reply that
    had not come whole is not the model's any more."""
    estimate: Tokens | None = None
    """What it counts with in budgets when a crash cuts it; it has no usage row then."""


class Reply(Record, tag="message", frozen=True, kw_only=True):
    """The model's message, whole or (`stop` is `aborted` or `error`) as far as it came."""

    run: str
    step: int
    content: list[Block]
    stop: str


class CallStarted(Record, tag="call_started", frozen=True, kw_only=True):
    """A tool that is not `safe` is about to run, with the arguments as they will run."""

    run: str
    call_id: str
    name: str
    args: dict[str, object]
    replay: str
    operation_key: str | None = None
    within: str | None = None
    """The outermost call that led to this one, when an extension made it; with this on record, nobody repeats that."""


class CallResult(Record, tag="call_result", frozen=True, kw_only=True):
    """A tool's answer, or what stands for it when there is none."""

    run: str
    call_id: str
    name: str
    is_error: bool
    content: ToolContent
    unknown: bool = False
    """The daemon stopped while it ran: it may have happened."""


class ShellStarted(Record, tag="shell_started", frozen=True, kw_only=True):
    """A command of a person is about to run; with this on record nobody repeats it."""

    id: str
    command: str
    context: bool
    """The model is to see it and its output."""
    sender: str = ""
    request_id: str | None = None
    digest: str | None = None
    """As of an `Input`."""


class ShellResult(Record, tag="shell_result", frozen=True, kw_only=True):
    """What came of it; with `context` it is a message for the model."""

    id: str
    context: bool
    content: list[Block]
    exit: int | None = None
    """None: it was aborted, or the daemon stopped while it ran."""
    unknown: bool = False
    """The daemon stopped while it ran: it may have happened."""


class UsageRow(Record, tag="usage", frozen=True, kw_only=True):
    """Tokens of one attempt, whatever became of it; `tokens` is None when the provider never said."""

    run: str
    step: int
    provider: str
    model: str
    tokens: Tokens | None
    purpose: str = "reply"
    """`reply` or `compaction`."""
    estimate: Tokens | None = None
    """What budgets count instead of `tokens`, where the cost is not known or not all of it."""


class ConfigRecord(Record, tag="config", frozen=True, kw_only=True):
    """The settings and the name of the session from this record on."""

    settings: Settings
    name: str


class Known(Frozen, frozen=True):
    """A request that has brought an input: when it comes again, it is only answered."""

    request: str
    digest: str
    input: str


class Compaction(Record, tag="compaction", frozen=True, kw_only=True):
    """The model sees the summary and the last `kept` messages; the rest stays in the journal."""

    summary: str
    kept: int
    known: list[Known] = []
    """The newest requests so far: after a restart nobody reads the records that brought them."""


class Clear(Record, tag="clear", frozen=True, kw_only=True):
    """The model sees nothing of what was before."""

    known: list[Known] = []
    """As in `Compaction`."""


class QueueOrder(Record, tag="queue", frozen=True, kw_only=True):
    """The inputs that wait, after somebody changed them."""

    order: list[str]
    held: bool


class Note(Record, tag="note", frozen=True, kw_only=True):
    """A line for people; the end of a run that failed is one."""

    level: str
    text: str
    refused: bool = False
    """The vendor refused a request with images that no reply has followed: later requests leave these out."""


class Interrupted(Record, tag="interrupted", frozen=True, kw_only=True):
    """Work was cut off, and what is known of it."""

    what: str
    text: str
    call_id: str | None = None


class ApprovalRow(Record, tag="approval", frozen=True, kw_only=True):
    """A person is asked about a call."""

    id: str
    call_id: str
    tool: str
    args: dict[str, object]
    args_digest: str
    expires: str | None = None
    run: str = ""
    preview: str | None = None
    """What people are shown of it."""
    rule: PermissionRule | None = None
    """Of records of earlier versions: what `session` and `always` would allow from then on."""
    choices: tuple[Choice, ...] = ()
    """What can be allowed from then on; none: it can be allowed for once only."""

    @property
    def offered(self) -> tuple[Choice, ...]:
        """The choices, of every version."""
        return self.choices or (() if self.rule is None else (of_rule(self.rule),))


class Decision(Record, tag="decision", frozen=True, kw_only=True):
    """A pending approval was resolved."""

    approval: str
    decision: str
    """`allow`, `deny` or `cancelled`."""
    scope: str
    """`once`, `session` or `always`."""
    by: str
    """Who, as others know them; empty: nobody, and `reason` says why it is over."""
    reason: str | None = None
    args: dict[str, object] | None = None
    """The arguments to run it with instead."""
    choice: str = ""
    """Of a scope beyond `once`: which of the request's choices."""


class ForkRow(Record, tag="fork", frozen=True, kw_only=True):
    """This session continues another one from there; nothing that waited or was allowed in that one is taken along."""

    session: str
    at: int
    """The `seq` of the last message that both have."""
    file: str = ""
    """Where it was read from, when that other session was in a file."""


class RewindRow(Record, tag="rewind", frozen=True, kw_only=True):
    """The model sees what was there at that record, and nothing after it."""

    to: int
    seq: int = 0
    """Of the last message that counts, as people see it."""


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
    | QueueOrder
    | Note
    | Interrupted
    | ApprovalRow
    | Decision
    | ForkRow
    | RewindRow
)

DECODER = msgspec.json.Decoder(AnyRecord)
"""Decodes a record's body; raises `msgspec.ValidationError` for a kind that a newer program wrote."""


def kind_of(record: Record) -> str:
    """The record's kind, as the journal and the specification name it."""
    return str(type(record).__struct_config__.tag)
