"""Interface between the journal and the database that has it: a file of SQLite, or a database of PostgreSQL."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from zotd.core.ports import JournalEntry, SessionRow, StorageError
from zotd.store.connection import SqlConnection, Write
from zotd.store.recovery import Recovery
from zotd.store.search import SearchIndex
from zotd.store.writer import WriterCounts

T = TypeVar("T")


class JournalDatabase(Protocol):
    """An open database with the tables of the journal, whose names and columns are the same everywhere."""

    @property
    def maker(self) -> str:
        """Random id of whoever has opened it, for what a process that ends leaves incomplete."""
        ...

    @property
    def index(self) -> SearchIndex:
        """The full-text index of messages."""
        ...

    @property
    def recovery(self) -> Recovery:
        """Reports when writing works again after a failure."""
        ...

    @property
    def warnings(self) -> list[str]:
        """Problems found when it was opened that do not prevent its use."""
        ...

    @property
    def counts(self) -> WriterCounts:
        """Number of writes since it was opened."""
        ...

    def read(self, query: Callable[[SqlConnection], T]) -> Awaitable[T]:
        """Run `query` in a thread, with a connection that sees every write reported before; raises StorageError."""
        ...

    def append(
        self,
        row: SessionRow,
        entries: Sequence[JournalEntry],
        generation: int,
        *,
        durable: bool,
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Queue a commit of a session behind all earlier writes; see `core.ports.Journal.commit`."""
        ...

    def submit(self, write: Write) -> None:
        """Queue a write behind all earlier ones. Returns at once and never raises."""
        ...

    async def perform(self, apply: Callable[[SqlConnection], object], *, durable: bool = False) -> None:
        """Queue a write and wait for it; raises the StorageError that it failed with."""
        ...

    async def erase(self, apply: Callable[[SqlConnection], object]) -> None:
        """Write a deletion, and leave as little of the deleted data as the database allows. Raises StorageError."""
        ...

    async def compact(self) -> tuple[int, int]:
        """Return free space; return the size in bytes before and after. Raises StorageError."""
        ...

    async def used_bytes(self) -> int:
        """Return the size of what is stored. Raises StorageError."""
        ...

    async def close(self) -> None:
        """Finish queued writes, then close it. Idempotent."""
        ...
