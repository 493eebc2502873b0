"""Errors of the journal.

    core.ports.StorageError         an operation on the disk, the file or the database failed
    +-- UnreadableSessionError      a part of a session is unreadable: the session is read-only, others continue
    |   +-- UnreadableRecordError   one of its records cannot be decoded
    +-- NewerSchemaError            a newer program wrote the database: the daemon does not start
    +-- home.HeldError              another process holds the lock of the home

Errors of other files are defined in their modules.
"""

import sqlite3

from zotd.core.ports import StorageError

_PRIMARY = 0xFF
"""Mask for the primary result code of SQLite; the other bits distinguish variants."""


class UnreadableSessionError(StorageError):
    """A page, an event or the index row of a session is damaged, or a record: see below."""

    def __init__(self, session: str, reason: str, what: str = "part") -> None:
        """`what` names the damaged part of the session."""
        super().__init__(f"{what} of session {session} cannot be read ({reason}): the session is read-only")
        self.session = session


class UnreadableRecordError(UnreadableSessionError):
    """A record that is damaged, missing, or of a kind or version that only a newer program knows."""

    def __init__(self, session: str, number: int, reason: str) -> None:
        """`number` counts the session's records from 1."""
        super().__init__(session, reason, f"record {number}")
        self.number = number


class NewerSchemaError(StorageError):
    """The database has a newer schema than this program supports, and was not changed."""


def is_damage(error: BaseException | None) -> bool:
    """Whether the stored data is damaged, so that a retry would fail in the same way."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # no code: a stored text is not UTF-8
    return code & _PRIMARY == sqlite3.SQLITE_CORRUPT
