"""How many sessions a user may have, checked in the transaction that stores another one.

Subagents count for nothing: the session above them does.
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


class SessionPlace(Struct, frozen=True):
    """Whose a new session is, and how many that user may have."""

    user: str = ""
    """Empty: none."""
    limit: int | None = None
    """None: any number."""


NO_USER = SessionPlace()


class NoPlaceError(StorageError):
    """The user has as many sessions as the quota allows; nothing was changed."""


def check(connection: SqlConnection, place: SessionPlace) -> None:
    """Raise NoPlaceError if the user may not have another session; call it in the transaction that stores it."""
    if place.limit is None:
        return
    connection.execute(_LOCK)
    (count,) = connection.execute(_COUNT, (place.user,)).fetchone()
    if count >= place.limit:
        raise NoPlaceError(
            f"the user {place.user} has {count} sessions, and may have {place.limit}; delete one (zotctl delete), or raise "
            "`sessions` for this user in config.toml and run zotctl reload"
        )
