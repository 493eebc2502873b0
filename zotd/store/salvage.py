"""Lists sessions when a page of their table is damaged: for sessions on that page only the id is known.

The ids come from an index, which is on other pages. If the index is damaged too, there is no list.
"""

import sqlite3
from collections.abc import Iterator

from zotd.core.ports import SessionRow
from zotd.core.records import Settings
from zotd.store import queries
from zotd.store.connection import SqlConnection
from zotd.store.errors import is_damage
from zotd.store.queries import Page, PageQuery

_IDS = "SELECT id FROM sessions ORDER BY id"
"""SQLite answers this from the index alone, without touching the damaged table."""


def page(connection: SqlConnection, query: PageQuery) -> Page:
    """Like `queries.page`, but tolerates damaged rows."""
    try:
        return queries.page(connection, query)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    # Slow path: the same filter, order and cursor in Python, over rows that were read one by one.
    before, limit = query.before, query.limit
    wanted = [row for row in _rows(connection) if query.concerns(row) and query.state in {None, row.state}]
    wanted.sort(key=_place, reverse=True)
    if before is not None:
        updated, _, session = before.partition(" ")
        wanted = [row for row in wanted if _place(row) < (updated, session)]
    if len(wanted) <= limit:
        return wanted, None
    return wanted[:limit], " ".join(_place(wanted[limit - 1]))


def find(connection: SqlConnection, text: str) -> list[SessionRow]:
    """Like `queries.find`, but tolerates damaged rows."""
    try:
        return queries.find(connection, text)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    rows = [row for row in _rows(connection) if (row.name == text and row.parent is None) or row.id.startswith(text)]
    rows.sort(key=_place, reverse=True)
    return [row for row in rows if row.id == text] or rows  # an exact id takes precedence, as in `queries.find`


def _place(row: SessionRow) -> tuple[str, str]:
    return row.updated, row.id


def _rows(connection: SqlConnection) -> Iterator[SessionRow]:
    for (session,) in connection.execute(_IDS).fetchall():
        try:
            yield from queries.find(connection, session)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            # Listed rather than left out, so that people can see that it exists, and delete it.
            yield SessionRow(session, "", "", "", "", Settings(provider="", model=""), "blocked")
