"""Which records of a session are a copy of another one's.

A fork is a copy: it has the first `shared` records of its `origin`, with the same numbers and the same `seq`. What
two sessions share is counted and found once, in the one that others were made of; when that one is deleted, the fork
that shares most of it takes its place.
"""

import sqlite3
from dataclasses import dataclass

OWN = "NOT EXISTS (SELECT 1 FROM forks WHERE forks.session = records.session AND records.number <= forks.shared)"
"""Condition on `records`: not a copy of what is in another session, too."""


@dataclass(frozen=True, slots=True)
class Inheritance:
    """The records of a fork that are no longer those of another session, too."""

    heir: int
    """The key of the fork."""
    above: int
    """The records after this number..."""
    last: int
    """...up to this one."""


def add_fork(connection: sqlite3.Connection, session: str, origin: str, *, shared: int, at: int) -> None:
    """Note that a session has the first `shared` records of another one, of which message `at` is the last."""
    query = "INSERT INTO forks SELECT fork.key, origin.key, ?, ? FROM sessions fork, sessions origin"
    connection.execute(query + " WHERE fork.id = ? AND origin.id = ?", (shared, at, session, origin))


def pass_on(connection: sqlite3.Connection, key: int) -> Inheritance | None:
    """The session with this key is about to be deleted: the fork that shares most with it takes its place."""
    heirs = connection.execute(
        "SELECT session, shared FROM forks WHERE origin = ? ORDER BY shared DESC, session LIMIT 1", (key,)
    )
    heir, shared = heirs.fetchone() or (None, 0)
    own = connection.execute("SELECT origin, shared, at FROM forks WHERE session = ?", (key,)).fetchone()
    if heir is not None:
        connection.execute("UPDATE forks SET origin = ? WHERE origin = ? AND session <> ?", (heir, key, heir))
        if own is None:
            connection.execute("DELETE FROM forks WHERE session = ?", (heir,))
        else:
            query = "UPDATE forks SET origin = ?, shared = min(shared, ?), at = min(at, ?) WHERE session = ?"
            connection.execute(query, (*own, heir))
    connection.execute("DELETE FROM forks WHERE session = ?", (key,))
    connection.execute("DELETE FROM imports WHERE session = ?", (key,))
    return None if heir is None else Inheritance(heir, min(own[1], shared) if own else 0, shared)
