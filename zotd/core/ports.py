"""What sessions need from the outside world; each has a real implementation and a fake or second one.

Models (`zotd.providers`), tools (`zotd.tools`, later extensions), the journal (`zotd.store`).
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from zotd.core.records import AnyRecord, Settings
from zotd.core.reply import Part
from zotd.wire.content import Message, Tokens, ToolContent

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

    `messages` begins with a `user` message and is legal: each tool call has exactly one result, in a message of
    role `tool` that follows its assistant message (one message for each result). Messages are frozen and keep
    their identity from step to step, so a `Model` may remember how it encoded each of them.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    reasoning: str = "off"
    max_output: int | None = None


class Model(Protocol):
    """One model, opened for one run."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Part]]:
        """The reply, a whole received chunk at a time; the first item is `[Opened()]`, at status 200.

        Ends after `Stopped`. Closing the iterator, or cancelling the task that reads it, ends the request.

        Raises:
            ModelError: the request failed; also (`Failure.CUT`) when the stream ended before `Stopped`.
        """
        ...

    def price(self, tokens: Tokens) -> Tokens:
        """The same tokens with `cost_usd`; 0 when the price is unknown."""
        ...

    @property
    def context_window(self) -> int:
        """Tokens that fit into a request; 0 when unknown."""
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
    """A call of a tool that led to another one."""

    tool: str
    call_id: str


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool gets besides its arguments."""

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
    """Directory of the ledger of children; empty: none is kept."""
    skill_dirs: Sequence[str] = ()
    """Where skills are looked for, first wins."""
    lineage: tuple[Ancestor, ...] = ()
    """The calls that led to this one, outermost first: each tool's extension called the next. Empty: it is the first."""
    operation_key: str | None = None
    """The same when recovery repeats the call; only for tools that are `idempotent` or `reconcile`."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool answers."""

    content: ToolContent
    is_error: bool = False


class Tool(Protocol):
    """One tool. `run` is cancelled on abort and then leaves nothing running behind."""

    @property
    def spec(self) -> ToolSpec:
        """As the model sees it."""
        ...

    @property
    def parallel(self) -> bool:
        """May run beside other calls of its step."""
        ...

    @property
    def replay(self) -> Replay:
        """What recovery may do."""
        ...

    @property
    def extension(self) -> str | None:
        """Whose tool it is; None: built in."""
        ...

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Do it. Bad arguments and failures are outcomes with `is_error`, not exceptions."""
        ...


# --- journal --------------------------------------------------------------------------------------------------


class Row(Struct, frozen=True):
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


class Entry(Struct, frozen=True):
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


class Journal(Protocol):
    """Where a session's records go."""

    @property
    def epoch(self) -> str:
        """Made with the database; half of every cursor."""
        ...

    def commit(
        self,
        row: Row,
        entries: Sequence[Entry],
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

    async def messages_before(self, session: str, seq: int | None, limit: int) -> list[bytes]:
        """The newest `limit` message events with a `seq` below (None: of all), oldest first, a JSON line each."""
        ...

    def damage(self, session: str) -> "StorageError | None":
        """Why the session is read-only, when a read has met damage in it."""
        ...


class StorageError(Exception):
    """The journal could not write; the message says what the system answered."""
