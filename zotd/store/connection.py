"""What queries and writes of the journal need of a database, so that each is written once.

`sqlite3.Connection` is a `SqlConnection`; `zotd.store.postgres.dialect` makes one of PostgreSQL's. Statements use what both
understand (`docs/decisions/0124-one-sql-for-both-databases.md`): `?` and `:name` for parameters, `ON CONFLICT` instead
of `INSERT OR REPLACE`, casts to BIGINT, and no functions of dates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from zotd.core.ports import StorageError

Parameters = Sequence[object] | Mapping[str, object]

Row = Any  # type: ignore[explicit-any]
"""A tuple, or None. The types of columns are known to the statement alone."""


class Rows(Protocol):
    """The rows that a statement returns."""

    def fetchone(self) -> Row:
        """Return the next row as a tuple, or None."""
        ...

    def fetchall(self) -> list[Row]:
        """Return the remaining rows."""
        ...

    def __iter__(self) -> Iterator[Row]:
        """Yield the remaining rows, which are read from the database as they are consumed."""
        ...

    def close(self) -> None:
        """Read no more rows."""
        ...


class SqlConnection(Protocol):
    """Runs statements, in the transaction of whoever passed it."""

    def execute(self, query: str, parameters: Parameters = (), /) -> Rows:
        """Run one statement."""
        ...

    def executemany(self, query: str, parameters: Sequence[Sequence[object]], /) -> object:
        """Run a statement without rows once for each of these parameters."""
        ...


class Write(Struct, frozen=True):
    """An atomic change of the database."""

    apply: Callable[[SqlConnection], object]
    """Runs in the writer's thread inside a transaction, and a second time if that transaction fails. It may raise
    StorageError if it has changed nothing; the other writes of its group are not affected."""
    done: Callable[[StorageError | None], None]
    """Called on the event loop."""
    durable: bool = False
    """Whether the write has to survive a power failure before `done` is called."""
    size_bytes: int = 0
    alone: bool = False
    """Run without a transaction and without other writes: VACUUM and checkpoints are not allowed in one."""
