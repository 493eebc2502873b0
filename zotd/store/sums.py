"""Sums of model usage by session, hour and model, updated in the commit that stores the request's record.

A report over all time therefore reads a few rows per session instead of every request (`zotd.store.usage`). The sums of
a fork exclude the part it shares with another session; when that one is deleted, `move` adds the shared part to the
fork that takes its place.
"""

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence

from zotd.store.connection import SqlConnection
from zotd.store.errors import is_damage
from zotd.store.forks import OWN, Inheritance
from zotd.store.usage import HOUR_CHARS, RequestUsage, added, figures_of
from zotd.wire.reports import UsageSum

KINDS = frozenset({"usage", "interrupted"})
"""Kinds of records that describe a model request."""

Key = tuple[int, str, str]
"""Primary key of a row: session key, hour, model."""

Sums = Mapping[Key, UsageSum]

_REQUESTS = "SELECT key FROM records WHERE kind IN ('usage', 'interrupted') AND time >= ''"
"""Uses only the index `records_usage`: no record is read, because one of them may be damaged."""

_REQUEST = f"SELECT session, number, time, body FROM records WHERE key = ? AND {OWN}"  # noqa: S608  (the condition is ours)

_PART = """
SELECT session, number, time, body FROM records
WHERE session = ? AND number > ? AND number <= ? AND kind IN ('usage', 'interrupted')
"""

COLUMNS = ("input", "output", "cache_read", "cache_write", "cost_usd", "attempts", "unknown", "estimated_usd")
"""The figures of a row."""

_NAMES = ", ".join(COLUMNS)

INTO = f"INTO sums (session, hour, model, {_NAMES})"
"""Where an INSERT puts rows."""

ADDING = f"ON CONFLICT (session, hour, model) DO UPDATE SET {', '.join(f'{name} = sums.{name} + excluded.{name}' for name in COLUMNS)}"
"""The end of that INSERT: the figures are added to a row that is there."""

_ADD = f"INSERT {INTO} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) {ADDING}"  # noqa: S608  (names of our own)

Request = tuple[int, int, str, bytes]
"""A record that describes a request: session key, number, time, body."""


def add(connection: SqlConnection, requests: Iterable[Request]) -> Sums:
    """Add requests to the sums, and return what was added; call it in the transaction that stores their records."""
    added_now = _added_up(connection, requests)
    save(connection, added_now)
    return added_now


def counted_usd(sums: Sums) -> list[tuple[str, float]]:
    """Return what budgets count for each row, in USD, with its hour."""
    return [(hour, row.cost_usd + row.estimated_usd) for (_, hour, _), row in sums.items()]


def save(connection: SqlConnection, sums: Sums) -> None:
    """Add the given sums to the stored ones."""
    connection.executemany(_ADD, [(*key, *columns(row)) for key, row in sums.items()])


def move(connection: SqlConnection, inheritance: Inheritance) -> None:
    """Add the records that a fork has inherited to the fork's sums."""
    part = connection.execute(_PART, (inheritance.heir, inheritance.above, inheritance.last)).fetchall()
    add(connection, part)


def forget(connection: SqlConnection, key: int) -> None:
    """Delete the sums of the session with this key."""
    connection.execute("DELETE FROM sums WHERE session = ?", (key,))


def counted(connection: SqlConnection) -> tuple[Sums, bool]:
    """Compute the sums from the records; also return whether all records could be read."""
    damage: list[int] = []
    found = _added_up(connection, _all(connection, damage))
    return found, not damage


def differing(connection: SqlConnection) -> Sequence[str]:
    """Return the ids of the sessions whose stored sums differ from their records."""
    expected, _ = counted(connection)
    query = f"SELECT session, hour, model, {_NAMES} FROM sums"  # noqa: S608  (names of our own)
    stored = {tuple(row[:3]): tuple(row[3:]) for row in connection.execute(query)}
    wrong = {
        key[0]
        for key in stored.keys() | expected.keys()
        if key not in stored or key not in expected or not _agree(stored[key], columns(expected[key]))
    }
    names = connection.execute("SELECT key, id FROM sessions WHERE state <> 'staged' ORDER BY key").fetchall()
    return [session for key, session in names if key in wrong]


def _all(connection: SqlConnection, damage: list[int]) -> Iterator[Request]:
    # One query per record: in a single query over all of them, one damaged page would end the whole iteration.
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


def _added_up(connection: SqlConnection, requests: Iterable[Request]) -> Sums:
    found = ((session, time, figures_of(connection, session, number, body)) for session, number, time, body in requests)
    return added_up((session, time, figures) for session, time, figures in found if figures is not None)


def added_up(figures: Iterable[tuple[int, str, RequestUsage]]) -> Sums:
    """Add up what requests used, each with its session's key and its time."""
    found: dict[Key, UsageSum] = {}
    for session, time, one in figures:
        key = session, time[:HOUR_CHARS], one.model
        found[key] = added(found.get(key) or UsageSum(one.model), one)
    return found


def columns(row: UsageSum) -> tuple[float, ...]:
    """Return the figures of a row, in the order of `COLUMNS`."""
    tokens = row.input, row.output, row.cache_read, row.cache_write
    return (*tokens, row.cost_usd, row.attempts, row.unknown, row.estimated_usd)


def _agree(stored: Sequence[float], expected: Sequence[float]) -> bool:
    # Not equal: the stored sums were added up in another order, which changes the last digits of the costs.
    return all(math.isclose(one, other, abs_tol=1e-6) for one, other in zip(stored, expected, strict=True))
