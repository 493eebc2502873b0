"""What the sessions of each user have spent on each day (UTC), by the daemon that stored it.

The sums of sessions (`zotd.store.sums`) go with their sessions: a user who deletes one must not get its money back. Each daemon
has rows of its own, so that none waits for another one's commit.
"""

from collections.abc import Iterable
from functools import partial

from msgspec import Struct

from zotd.store.connection import SqlConnection
from zotd.store.ports import JournalDatabase

DAY_CHARS = len("2026-11-21")
"""Length of the prefix of a time that identifies the day."""

ADDING = "ON CONFLICT (user_name, day, daemon) DO UPDATE SET usd = user_days.usd + excluded.usd"
"""The end of an INSERT whose figures are added to a row that is there."""

_ADD = f"INSERT INTO user_days (user_name, day, daemon, usd) VALUES (?, ?, ?, ?) {ADDING}"  # noqa: S608  (ours)


def add(connection: SqlConnection, user: str, daemon: int, spent: Iterable[tuple[str, float]]) -> None:
    """Add amounts in USD, each with a time at which it was spent; call it in the transaction that stores their records."""
    connection.executemany(_ADD, [(user, time[:DAY_CHARS], daemon, usd) for time, usd in spent])


_SESSIONS = """
SELECT user_name, count(*) FROM sessions
WHERE user_name <> '' AND parent IS NULL AND state <> 'staged' GROUP BY user_name
"""

_SPENT = "SELECT user_name, sum(usd) FROM user_days WHERE day = ? GROUP BY user_name"


class UserFigures(Struct, frozen=True):
    """What a user has, and has spent on a day."""

    sessions: int = 0
    """Stored sessions, without subagents."""
    usd: float = 0.0


class UserDays:
    """What is stored of users in a database that the caller opens and closes. Methods raise StorageError."""

    def __init__(self, database: JournalDatabase) -> None:
        self._database = database

    async def spent(self, user: str, day: str) -> float:
        """Return what the user has spent on a day, in USD."""
        return await self._database.read(partial(_spent, user=user, day=day))

    async def figures(self, day: str) -> dict[str, UserFigures]:
        """Return all users that have a session, or have spent something on that day."""
        return await self._database.read(partial(_figures, day=day))

    async def forget(self, before: str) -> None:
        """Delete what was spent before that day. Without users nothing is written."""
        if await self._database.read(partial(_has_older, before=before)):
            await self._database.perform(partial(_forget, before=before))


def _spent(connection: SqlConnection, user: str, day: str) -> float:
    query = "SELECT coalesce(sum(usd), 0) FROM user_days WHERE user_name = ? AND day = ?"
    (usd,) = connection.execute(query, (user, day)).fetchone()
    return float(usd)


def _figures(connection: SqlConnection, day: str) -> dict[str, UserFigures]:
    sessions = dict(connection.execute(_SESSIONS).fetchall())
    spent = dict(connection.execute(_SPENT, (day,)).fetchall())
    return {user: UserFigures(sessions.get(user, 0), spent.get(user, 0.0)) for user in {*sessions, *spent}}


def _has_older(connection: SqlConnection, before: str) -> bool:
    return connection.execute("SELECT 1 FROM user_days WHERE day < ? LIMIT 1", (before,)).fetchone() is not None


def _forget(connection: SqlConnection, before: str) -> None:
    connection.execute("DELETE FROM user_days WHERE day < ?", (before,))
