"""Interfaces between sessions and the outside world; each has a real implementation and a fake or second one.

Models (`zotd.providers`), tools (`zotd.tools` and extensions), the journal (`zotd.store`).
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from zotd.core.budget import Rates
from zotd.core.lineage import RewindPoint, Span
from zotd.core.permissions import PermissionRule
from zotd.core.records import AnyRecord, Settings
from zotd.core.reply import Part
from zotd.wire.content import Message, Text, Tokens, ToolContent

# --- models ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it; `schema` is a JSON Schema object."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    `messages` begins with a `user` message, and each tool call has exactly one result, in a message of role `tool` after
    its assistant message (one message per result). Messages are frozen and keep their identity from step to step, so a
    `Model` may cache the encoding of each.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    reasoning: str = "off"
    max_output: int | None = None


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


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A tool call that caused another one."""

    tool: str
    call_id: str


@dataclass(frozen=True, slots=True)
class ToolContext:
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
    reconcile: bool = False
    """Do not run; only report the outcome of the call with this operation key (`ToolOutcome.state`)."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """Result of a tool call, or of a `reconcile` query about an earlier one."""

    content: ToolContent
    is_error: bool = False
    state: str | None = None
    """Outcome: `completed` or `not_started` (answers to `reconcile`), or `unknown`."""

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


# --- tests ----------------------------------------------------------------------------------------------------


Probe = Callable[[str], None]
"""Called when work has come to a point that has a name, on the thread that does the work; tests stop the process there.

Whoever has points takes one as an argument, and lists their names in `POINTS`. Where there is none, nothing is called.
"""


# --- journal --------------------------------------------------------------------------------------------------


NAME_CHARS = 200
"""Longest name of a session: lists show it on a line."""


class SessionRow(Struct, frozen=True):
    """A session as the journal's index has it; written with every commit."""

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
    """Number of the first record that is needed to know what the model sees and what waits."""
    abandoned: list[Span] = []
    """Stretches of events, first and last `seq`, that are not part of the conversation after it was rewound."""
    granted: tuple[PermissionRule, ...] = ()
    """What people have allowed for the rest of this session; in the row, for a compaction leaves its records behind."""
    failed: bool = False
    """The last run ended with an error."""
    spent: Tokens = Tokens()
    """What budgets count of all its requests ever, estimates for those of unknown cost among it; `usage` is what is
    known, since the last `clear`."""


class JournalEntry(Struct, frozen=True):
    """A record with the events that it showed."""

    number: int
    record: AnyRecord
    first_seq: int = 0
    """0: it showed none."""
    last_seq: int = 0
    events: bytes = b""
    """NDJSON, as sent to clients."""
    messages: int = 0
    """How many of the events are messages (`user_message`, `assistant_message`, `tool_result`)."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as the journal has it."""

    number: int
    record: AnyRecord
    body: bytes
    """The record as JSON."""
    first_seq: int
    """Of its events; 0: it showed none."""
    events: bytes
    """NDJSON, as sent to clients."""
    messages: int
    """How many of the events are messages."""


@dataclass(frozen=True, slots=True)
class PartialText:
    """What had come of a step's reply when it was kept; no record."""

    run: str
    step: int
    text: str


class RecordReader(Protocol):
    """What a session has recorded, for whoever goes through it."""

    async def holds_to(self, session: str, epoch: str) -> int | None:
        """The last `seq` that a cursor with this epoch may have: what was shown up to there is still what is stored.

        None: the epoch is of another history. The current epoch holds without a limit.
        """
        ...

    async def entries(self, session: str, after: int, limit_bytes: int) -> list[Stored]:
        """The records behind number `after`, oldest first: at least one when there is one, and no more than fit."""
        ...

    async def record_at(self, session: str, seq: int) -> int | None:
        """The number of the record that shows the event `seq`; None: there is no such event."""
        ...

    async def rewinds(self, session: str) -> list[RewindPoint]:
        """Every rewind of the session, oldest first. Looks at the kind of each of its records."""
        ...


class Journal(Protocol):
    """Where a session's records go."""

    @property
    def epoch(self) -> str:
        """Names the history that events are read from now; half of every cursor."""
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
        """The records from number `start` on, oldest first."""
        ...

    async def events_after(self, session: str, seq: int, limit_bytes: int) -> tuple[int, bytes]:
        """Events after `seq` as NDJSON, whole records only, at least one; and the `seq` they reach."""
        ...

    async def messages_before(
        self, session: str, seq: int | None, limit: int, left: Sequence[Span] = ()
    ) -> list[bytes]:
        """The newest `limit` message events with a `seq` below (None: of all), oldest first, a JSON line each.

        Those in `left`, stretches of events in their order, are passed over.
        """
        ...

    @property
    def history(self) -> RecordReader:
        """The records one by one."""
        ...

    def keep_partial(self, session: str, partial: PartialText) -> None:
        """Keep what has come of a running step, in the place of what was kept of the session before.

        Returns at once and never raises: it may get lost. The session's next commit with a `message` or an
        `interrupted` record removes it.
        """
        ...

    async def partial(self, session: str) -> PartialText | None:
        """What was kept of a step that a crash cut; None: nothing was, or its message is there."""
        ...

    def damage(self, session: str) -> "StorageError | None":
        """Why the session is read-only: something of it cannot be read, or no longer be written."""
        ...


class StorageError(Exception):
    """The journal could not write; the message says what the system answered."""
