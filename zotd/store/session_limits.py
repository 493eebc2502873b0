"""How many sessions a user may have, checked in the transaction that stores another one.

Subagents are not counted, the session above them is.
"""

from msgspec import Struct

from zotd.core.ports import StorageError
from zotd.store.connection import SqlConnection

# The row is locked until the end of the transaction, so that two daemons of a database do not count at the same time.
_LOCK = "UPDATE meta SET value = value WHERE key = 'epoch'"

_COUNT = """
SELECT count(*) FROM sessions
WHERE user_name = ? AND user_name <> '' AND parent IS NULL AND state <> 'staged'
"""
"""`user_name <> ''` repeats the condition of the partial index."""


class SessionLimit(Struct, frozen=True):
    """The user of a new session, and how many sessions that user may have."""

    user: str = ""
    """Empty: none."""
    sessions: int | None = None
    """None: any number."""


NO_LIMIT = SessionLimit()


class TooManySessionsError(StorageError):
    """The user has as many sessions as the quota allows; nothing was changed."""


def check(connection: SqlConnection, limit: SessionLimit) -> None:
    """Raise TooManySessionsError if the user may not have another session; call it in the transaction that stores it."""
    if limit.sessions is None:
        return
    connection.execute(_LOCK)
    (count,) = connection.execute(_COUNT, (limit.user,)).fetchone()
    if count >= limit.sessions:
        raise TooManySessionsError(
            f"the user {limit.user} has {count} sessions, and may have {limit.sessions}; delete one (zotctl delete), or raise "
            "`sessions` for this user in config.toml and run zotctl reload"
        )
