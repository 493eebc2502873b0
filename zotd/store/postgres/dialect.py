"""Makes a `zotd.store.connection.SqlConnection` of a connection to PostgreSQL.

Statements of queries have their parameters marked as SQLite has them. Values become literals in the statement: PostgreSQL
then finds out the type of each by its place, as SQLite does, also for a NULL.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import psycopg

from zotd.store.connection import Parameters, Row

PAGE_ROWS = 64
"""Rows that one round trip fetches while a caller iterates, because it may stop after any of them."""

_PLACE = re.compile(r"'[^']*'|(?<!:):([a-z_]+)|\?|%")


@lru_cache(maxsize=512)
def translated(sql: str) -> str:
    """Return a statement with psycopg's marks for its parameters. Texts in quotes stay as they are."""
    return _PLACE.sub(_mark, sql)


def _mark(found: re.Match[str]) -> str:
    whole, name = found.group(0), found.group(1)
    if name:
        return f"%({name})s"
    return "%s" if whole == "?" else whole.replace("%", "%%")


class SharedConnection:
    """`zotd.store.connection.SqlConnection`; use it inside a transaction, and in one thread at a time."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Parameters = (), /) -> "QueryRows":
        """Run a statement; a query runs when its rows are wanted."""
        rows = QueryRows(self._connection, translated(sql), parameters)
        if not sql.lstrip().startswith(("SELECT", "WITH")):
            rows.run()
        return rows

    def executemany(self, sql: str, parameters: Sequence[Sequence[object]], /) -> None:
        """Run a statement once for each of these parameters."""
        with psycopg.ClientCursor(self._connection) as cursor:
            cursor.executemany(translated(sql).encode(), parameters)


class QueryRows:
    """`zotd.store.connection.Rows`: all rows at once, or page by page if they are iterated over."""

    def __init__(self, connection: psycopg.Connection, sql: str, parameters: Parameters) -> None:
        self._connection = connection
        self._sql = sql.encode()
        # Without parameters psycopg does not look for marks, and would leave `%%` as it is.
        self._parameters: Sequence[object] | Mapping[str, object] = parameters or ()
        self._cursor: psycopg.Cursor | None = None

    def run(self) -> psycopg.Cursor:
        """Run the statement, unless that was done."""
        if self._cursor is None:
            self._cursor = psycopg.ClientCursor(self._connection)
            self._cursor.execute(self._sql, self._parameters)
        return self._cursor

    def fetchone(self) -> Row:
        """Return the next row, or None."""
        return self.run().fetchone()

    def fetchall(self) -> list[Row]:
        """Return the remaining rows."""
        found: list[Row] = self.run().fetchall()
        return found

    def __iter__(self) -> Iterator[Row]:
        """Yield the remaining rows."""
        # The writer's statements are sent without waiting for each other, which the server's cursors do not allow. What is
        # written together is small, and so is what such a write reads.
        if self._cursor is not None or self._connection.info.pipeline_status:
            yield from self.run()
            return
        # A cursor of the server; its own values are literals, too.
        with psycopg.ClientCursor(self._connection) as writer:
            query = writer.mogrify(self._sql, self._parameters)
        with self._connection.cursor(name="page") as pages:
            pages.itersize = PAGE_ROWS
            pages.execute(query.encode())
            yield from pages

    def close(self) -> None:
        """Read no more rows."""
        if self._cursor is not None:
            self._cursor.close()
