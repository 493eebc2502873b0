"""Interfaces between sessions and the outside world; each has a real implementation and a fake or second one.

Models (`zotd.providers`), tools (`zotd.tools` and extensions), the journal (`zotd.store`).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from zotd.core.budget import Rates
from zotd.core.call_jail import CallJail
from zotd.core.edit_checks import CheckEdit
from zotd.core.editor_files import EditorFiles
from zotd.core.editor_terminals import EditorTerminals
from zotd.core.jobs import JobDesk
from zotd.core.lineage import RewindPoint, Span
from zotd.core.model_questions import ModelQuestion, QuestionReply
from zotd.core.permissions import PermissionRule
from zotd.core.person_questions import PersonAnswer, PersonQuestion
from zotd.core.records import AnyRecord, CacheLife, Settings
from zotd.core.reply import Part
from zotd.core.subagents import TaskOrder
from zotd.core.wakes import WakeOrder
from zotd.core.web_access import SearchBill, SearchEngine, WebAccess
from zotd.wire.content import Message, Text, Tokens, ToolContent
from zotd.wire.families import SessionParent
from zotd.wire.jobs import JobInfo
from zotd.wire.plan import Plan, PlanStep

# --- models ---------------------------------------------------------------------------------------------------


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it; `schema` is a JSON Schema object."""

    name: str
    description: str
    schema: Mapping[str, object]


class ModelRequest(Struct, frozen=True):
    """One model call.

    `messages` begins with a `user` message, and each tool call has exactly one result, in a message of role `tool`
    after its assistant message (one message per result). Messages are frozen and keep their identity from step to step,
    so a `Model` may cache the encoding of each.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    reasoning: str = "off"
    max_output: int | None = None
    cache_key: str = ""
    """The same for all requests of a session; vendors use it to find what they have cached. Empty: none."""
    cache_life: CacheLife = "5m"
    """How long a vendor that can be told should keep the request in its cache."""


class Model(Protocol):
    """One model, opened for one run."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request and yield the reply, one received chunk at a time.

        The first item is `[RequestAccepted()]`, at status 200; the last one contains `Stopped`. Read it in `aclosing`:
        closing the generator ends the request, also if its reader was cancelled.

        Raises:
            ModelError: the request failed, or (`Failure.CUT`) the stream ended before `Stopped`.
        """
        ...

    def price(self, tokens: Tokens) -> Tokens:
        """Return the tokens with `cost_usd`, which is 0 if the price is unknown."""
        ...

    @property
    def rates(self) -> Rates | None:
        """Prices for estimates; None if they are unknown."""
        ...

    @property
    def context_window(self) -> int:
        """Largest request in tokens; 0 if unknown."""
        ...


# --- tools ----------------------------------------------------------------------------------------------------


class Replay(StrEnum):
    """What recovery may do with a call whose outcome is unknown (`docs/durability.md`)."""

    NEVER = "never"
    SAFE = "safe"
    IDEMPOTENT = "idempotent"
    RECONCILE = "reconcile"


class Ancestor(Struct, frozen=True):
    """A tool call that caused another one."""

    tool: str
    call_id: str


class ToolContext(Struct, frozen=True):
    """Environment of a tool call."""

    session: str
    call_id: str
    cwd: str
    """The session's working directory, an absolute real path."""
    env: Mapping[str, str]
    """The environment to run commands in; complete, nothing is added to it."""
    out_dir: str
    """A private directory (0700) for output that is too long for a result; made on demand by the tool."""
    progress: Callable[[str], None]
    """Shows text while the tool runs; cheap, never blocks."""
    ledger: str = ""
    """Directory of the ledger of child processes; empty: none is kept."""
    skill_dirs: Sequence[str] = ()
    """Directories of skills; the first match wins."""
    home: str = ""
    """`$ZOT_HOME`. Built-in tools refuse to show the keys, tokens and transcripts in it. Empty: there is no home."""
    lineage: tuple[Ancestor, ...] = ()
    """The calls that caused this one, outermost first; empty for a call of the model."""
    operation_key: str | None = None
    """Key that stays the same when recovery repeats the call; only for `idempotent` and `reconcile` tools."""
    traceparent: str = ""
    """The call's span, for programs that make spans of their own; empty: no traces are made."""
    jail: CallJail | None = None
    """What the call is confined to; None: to nothing."""
    ask: Callable[[PersonQuestion], Awaitable[PersonAnswer]] | None = None
    """Asks a person, which may take any time; None: nobody can be asked."""
    ask_model: Callable[[ModelQuestion], Awaitable[QuestionReply]] | None = None
    """Asks the session's model, and a person first if that is needed; None: it cannot be asked."""
    web: Callable[[str], WebAccess | None] | None = None
    """Returns the network of the call, with this text in questions to persons; None, or returns None: the call has none."""
    delegate: "Callable[[TaskOrder, ToolContext], Awaitable[ToolOutcome]] | None" = None
    """Has a subagent do a task, and returns its last answer; None: there can be no subagents."""
    search_engine: Callable[[], SearchEngine | None] = lambda: None
    """What answers searches of the web at the moment; None: nothing does."""
    pay_search: "Callable[[SearchEngine, str], AbstractAsyncContextManager[SearchBill]] | None" = None
    """Enter before a vendor's model searches for a text; raises what `zotd.web` raises. None: it cannot be paid for."""
    editor: EditorFiles | None = None
    """Where a person may have files open; None: nowhere."""
    plan: "Callable[[Sequence[PlanStep]], Awaitable[ToolOutcome]] | None" = None
    """Changes the session's plan, and returns what the model is told of that; None: there can be none."""
    wake: Callable[[WakeOrder, str], Awaitable[str]] | None = None
    """Has the model woken later, as the call with this id wants; returns what it is told. None: nothing can."""
    jobs: JobDesk | None = None
    """Runs commands in the background; None: there can be no jobs."""
    check_edit: CheckEdit | None = None
    """Looks for errors in files that were edited; None: nothing does."""
    terminals: EditorTerminals | None = None
    """Where commands run that no jail confines; None: in children of this process."""
    check_lease: Callable[[], None] | None = None
    """See `Journal.check_lease`; for tools that do something before their effect begins."""
    reconcile: bool = False
    """Do not run; only report the outcome of the call with this operation key (`ToolOutcome.state`)."""


class ToolOutcome(Struct, frozen=True):
    """Result of a tool call, or of a `reconcile` query about an earlier one."""

    content: ToolContent
    is_error: bool = False
    state: str | None = None
    """Outcome: `completed` or `not_started` (answers to `reconcile`), or `unknown`."""
    closed: tuple[str, ...] = ()
    """What a person can open, so that the call may change what its jail has refused: real paths of files and directories."""

    @classmethod
    def error(cls, text: str) -> "ToolOutcome":
        """Return an error result with one sentence for the model."""
        return cls([Text(text)], is_error=True)


class Tool(Protocol):
    """One tool. An abort cancels `run`, which must then leave no process running."""

    @property
    def spec(self) -> ToolSpec:
        """Description of the tool for the model."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether calls may run concurrently with others of the same step."""
        ...

    @property
    def replay(self) -> Replay:
        """Replay class: what recovery may do with a call whose outcome is unknown."""
        ...

    @property
    def extension(self) -> str | None:
        """Name of the extension that provides the tool; None for a built-in tool."""
        ...

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Do it. Bad arguments and failures are outcomes with `is_error`, not exceptions."""
        ...


Probe = Callable[[str], None]
"""Called with the name of a point in the work, on the thread that does the work. Tests kill the process there.

Code with such points takes a probe as an argument and lists their names in `POINTS`. Without a probe nothing is called.
"""


# --- journal --------------------------------------------------------------------------------------------------


NAME_CHARS = 200
"""Longest name of a session, so that it fits on a line of a list."""


class SessionRow(Struct, frozen=True):
    """Index row of a session; replaced with every commit."""

    id: str
    name: str
    cwd: str
    created: str
    updated: str
    settings: Settings
    state: str
    seq: int = 0
    """`seq` of the last event."""
    records: int = 0
    """Number of records; the next one has this number plus 1."""
    messages: int = 0
    usage: Tokens = Tokens()
    context: int = 0
    """Tokens that the last model call read; tells when to compact."""
    base: int = 1
    """Number of the first record needed to restore the model's view and the pending inputs."""
    abandoned: list[Span] = []
    """Ranges of events, as first and last `seq`, that rewinds removed from the conversation."""
    granted: tuple[PermissionRule, ...] = ()
    """Rules allowed for the rest of this session. Stored here because `base` may move beyond the records with them."""
    failed: bool = False
    """The last run ended with an error."""
    plan: Plan | None = None
    spent: Tokens = Tokens()
    """What budgets count for all requests ever, also estimates. `usage` has known figures only, since the last `clear`."""
    parent: SessionParent | None = None
    """Which session began it; None: it is no subagent."""
    spent_below: Tokens = Tokens()
    """What budgets count for its subagents, and theirs."""
    jobs: tuple[JobInfo, ...] = ()
    """Its jobs, oldest first: those that run, and the newest of those that do not."""
    user: str = ""
    """The user it belongs to; empty: none."""


class JournalEntry(Struct, frozen=True):
    """A record to append, with the events that show it to clients."""

    number: int
    record: AnyRecord
    first_seq: int = 0
    """0 if the record has no events."""
    last_seq: int = 0
    events: bytes = b""
    """NDJSON, as sent to clients."""
    messages: int = 0
    """How many of the events are messages (`user_message`, `assistant_message`, `tool_result`)."""


class Stored(Struct, frozen=True):
    """A record as read from the journal."""

    number: int
    record: AnyRecord
    body: bytes
    """The record as JSON."""
    first_seq: int
    """`seq` of its first event; 0 if it has none."""
    events: bytes
    """NDJSON, as sent to clients."""
    messages: int
    """How many of the events are messages."""


class PartialText(Struct, frozen=True):
    """Text of an incomplete reply, as last stored. Not a record."""

    run: str
    step: int
    text: str


class RecordReader(Protocol):
    """Reads the records of a session one by one."""

    async def holds_to(self, session: str, epoch: str) -> int | None:
        """Return the last `seq` up to which a cursor with this epoch is valid, i.e. the stored events are the same.

        None if the epoch belongs to another history. A cursor with the current epoch is valid without a limit.
        """
        ...

    async def entries(self, session: str, after: int, limit_bytes: int) -> list[Stored]:
        """Return records after number `after`, oldest first: at least one if there is one, at most `limit_bytes`."""
        ...

    async def record_at(self, session: str, seq: int) -> int | None:
        """Return the number of the record with the event `seq`, or None if there is no such event."""
        ...

    async def rewinds(self, session: str) -> list[RewindPoint]:
        """Return every rewind of the session, oldest first. Reads the kind of each of its records, so it is slow."""
        ...


class Journal(Protocol):
    """Storage of all sessions' records."""

    check_lease: Callable[[], None] | None
    """Raises StorageError if another process may have the sessions by now: to be called right before what must not happen twice."""

    @property
    def epoch(self) -> str:
        """Name of the history that events are currently read from; half of every cursor."""
        ...

    @property
    def is_immediate(self) -> bool:
        """Whether it is in memory: `commit` calls `done` before it returns, and nothing of it survives the process.

        So nothing is gained by putting records together, or by storing the text of a running step.
        """
        ...

    def commit(
        self,
        row: SessionRow,
        entries: Sequence[JournalEntry],
        *,
        durable: bool,
        done: Callable[["StorageError | None"], None],
    ) -> None:
        """Append `entries` and replace the index row in one transaction, after all earlier commits.

        Returns at once. `done` is called on the event loop, in the order of the commits: with None when the batch
        is committed (`durable`: it survives a power failure, else a crash of this program), with the error when
        nothing of it was stored.
        """
        ...

    async def records(self, session: str, start: int) -> list[AnyRecord]:
        """Return the records from number `start` on, oldest first."""
        ...

    async def events_after(self, session: str, seq: int, limit_bytes: int) -> tuple[int, bytes]:
        """Return events after `seq` as NDJSON, and the `seq` they reach. Whole records only, at least one."""
        ...

    async def messages_before(
        self, session: str, seq: int | None, limit: int, left: Sequence[Span] = ()
    ) -> list[bytes]:
        """Return the newest `limit` message events below `seq` (None: no bound), oldest first, one JSON line each.

        Events in the ranges `left`, which must be sorted, are omitted.
        """
        ...

    @property
    def history(self) -> RecordReader:
        """Access to single records."""
        ...

    def keep_partial(self, session: str, partial: PartialText) -> None:
        """Store the text of a running step in place of what was stored for the session before.

        Returns at once and never raises: the text may get lost. The session's next commit with a `message` or an
        `interrupted` record removes it.
        """
        ...

    async def partial(self, session: str) -> PartialText | None:
        """Return the stored text of a step that a crash cut; None if there is none, or if its message is recorded."""
        ...

    def damage(self, session: str) -> "StorageError | None":
        """Return why the session is read-only (part of it cannot be read or written); None if it is not."""
        ...


class StorageError(Exception):
    """The journal could not be written; the message contains the system's error."""
