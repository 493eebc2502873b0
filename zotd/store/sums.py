"""What model requests took, added up by session, hour and model: in the commit that stores the request's record.

So a report of all time reads some rows for each session, and not every request (`zotd.store.usage`). A fork's sums are
without what it has of another session; when that one is deleted, the fork that takes its place gets its part (`move`).
"""

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence

from zotd.store.errors import is_damage
from zotd.store.forks import OWN, Inheritance
from zotd.store.usage import HOUR_CHARS, added, figures_of
from zotd.wire.reports import UsageSum

KINDS = frozenset({"usage", "interrupted"})
"""Of the records that tell of a request."""

Key = tuple[int, str, str]
"""Of a row: the key of the session, the hour, the model."""

Sums = Mapping[Key, UsageSum]

_REQUESTS = "SELECT key FROM records WHERE kind IN ('usage', 'interrupted') AND time >= ''"
"""From the index `records_usage` alone: nothing of a record is read, one of which may be damaged."""

_REQUEST = f"SELECT session, number, time, body FROM records WHERE key = ? AND {OWN}"  # noqa: S608  (the condition is ours)

_PART = """
SELECT session, number, time, body FROM records
WHERE session = ? AND number > ? AND number <= ? AND kind IN ('usage', 'interrupted')
"""

_COLUMNS = "input, output, cache_read, cache_write, cost_usd, attempts, unknown, estimated_usd"

_ADD = f"""
INSERT INTO sums (session, hour, model, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session, hour, model) DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in _COLUMNS.split(", "))}
"""  # noqa: S608  (names of our own)

Request = tuple[int, int, str, bytes]
"""A record that tells of one: the key of its session, its number, time and body."""


def add(connection: sqlite3.Connection, requests: Iterable[Request]) -> None:
    """Count requests whose records have just been written, inside the same transaction."""
    save(connection, _added_up(connection, requests))


def save(connection: sqlite3.Connection, sums: Sums) -> None:
    """Add these to what is stored."""
    connection.executemany(_ADD, [(*key, *_columns(row)) for key, row in sums.items()])


def move(connection: sqlite3.Connection, inheritance: Inheritance) -> None:
    """Count what a fork has as its own from now on."""
    part = connection.execute(_PART, (inheritance.heir, inheritance.above, inheritance.last)).fetchall()
    add(connection, part)


def forget(connection: sqlite3.Connection, key: int) -> None:
    """The session with this key is deleted."""
    connection.execute("DELETE FROM sums WHERE session = ?", (key,))


def counted(connection: sqlite3.Connection) -> tuple[Sums, bool]:
    """The sums of all records that can be read, and whether that is all of them."""
    damage: list[int] = []
    found = _added_up(connection, _all(connection, damage))
    return found, not damage


def differing(connection: sqlite3.Connection) -> Sequence[str]:
    """The sessions of which the records tell something else than what is stored."""
    expected, _ = counted(connection)
    query = f"SELECT session, hour, model, {_COLUMNS} FROM sums"  # noqa: S608  (names of our own)
    stored = {tuple(row[:3]): tuple(row[3:]) for row in connection.execute(query)}
    wrong = {
        key[0]
        for key in stored.keys() | expected.keys()
        if key not in stored or key not in expected or not _agree(stored[key], _columns(expected[key]))
    }
    names = connection.execute("SELECT key, id FROM sessions WHERE state <> 'staged' ORDER BY key").fetchall()
    return [session for key, session in names if key in wrong]


def _all(connection: sqlite3.Connection, damage: list[int]) -> Iterator[Request]:
    for (key,) in connection.execute(_REQUESTS).fetchall():
        try:
            request = connection.execute(_REQUEST, (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            damage.append(key)
            continue
        if request is not None:
            yield request


def _added_up(connection: sqlite3.Connection, requests: Iterable[Request]) -> dict[Key, UsageSum]:
    found: dict[Key, UsageSum] = {}
    for session, number, time, body in requests:
        figures = figures_of(connection, session, number, body)
        if figures is not None:
            key = session, time[:HOUR_CHARS], figures.model
            found[key] = added(found.get(key) or UsageSum(figures.model), figures)
    return found


def _columns(row: UsageSum) -> tuple[float, ...]:
    tokens = row.input, row.output, row.cache_read, row.cache_write
    return (*tokens, row.cost_usd, row.attempts, row.unknown, row.estimated_usd)


def _agree(stored: Sequence[float], expected: Sequence[float]) -> bool:
    """Money was added up in another order."""
    return all(math.isclose(one, other, abs_tol=1e-6) for one, other in zip(stored, expected, strict=True))
