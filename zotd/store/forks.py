"""Tracks which records of a session are copies of another session's records.

A fork copies the first `shared` records of its `origin`, with the same numbers and the same `seq`. Searches and reports
attribute shared records to the origin only. When the origin is deleted, the fork that shares most with it becomes the
new origin of the other forks.
"""

from msgspec import Struct

from zotd.store.connection import SqlConnection

OWN = "NOT EXISTS (SELECT 1 FROM forks WHERE forks.session = records.session AND records.number <= forks.shared)"
"""SQL condition on `records`: the record is not a copy from another session."""


class Inheritance(Struct, frozen=True):
    """The records that a fork no longer shares with another session: those after `above`, up to `last`."""

    heir: int
    """Key of the fork."""
    above: int
    last: int


def add_fork(connection: SqlConnection, session: str, origin: str, *, shared: int, at: int) -> None:
    """Store that a session shares the first `shared` records of another one; `at` is the `seq` of the last message."""
    query = "INSERT INTO forks SELECT fork.key, origin.key, ?, ? FROM sessions fork, sessions origin"
    connection.execute(query + " WHERE fork.id = ? AND origin.id = ?", (shared, at, session, origin))


def pass_on(connection: SqlConnection, key: int) -> Inheritance | None:
    """Prepare the deletion of the session with this key: the fork that shares most with it takes its place."""
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
            # The deleted session was a fork itself: the heir shares with that origin at most what both of them had.
            connection.execute("UPDATE forks SET origin = ? WHERE session = ?", (own[0], heir))
            for column, most in (("shared", own[1]), ("at", own[2])):
                query = f"UPDATE forks SET {column} = ? WHERE session = ? AND {column} > ?"  # noqa: S608  (names of our own)
                connection.execute(query, (most, heir, most))
    connection.execute("DELETE FROM forks WHERE session = ?", (key,))
    connection.execute("DELETE FROM imports WHERE session = ?", (key,))
    return None if heir is None else Inheritance(heir, min(own[1], shared) if own else 0, shared)
