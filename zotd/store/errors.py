"""What can go wrong with the journal.

    core.ports.StorageError         the disk, the file or the database did not do what was asked
    +-- UnreadableSessionError      something of a session cannot be read: it is read-only, others go on
    |   +-- UnreadableRecordError   one record of it cannot be understood
    +-- NewerSchemaError            a newer program made the database: the daemon does not start
    +-- home.HeldError              another process has the home

What the other modules of this layer raise is in theirs.
"""

import sqlite3

from zotd.core.ports import StorageError

_PRIMARY = 0xFF
"""The part of a SQLite error code that tells its kind; the rest tells variants of it."""


class UnreadableSessionError(StorageError):
    """A page, an event or the index row of a session is damaged, or a record: see below."""

    def __init__(self, session: str, reason: str, what: str = "part") -> None:
        """`what` of the session it is."""
        super().__init__(f"{what} of session {session} cannot be read ({reason}): the session is read-only")
        self.session = session


class UnreadableRecordError(UnreadableSessionError):
    """A record that is damaged, missing, or of a kind or version that only a newer program knows."""

    def __init__(self, session: str, number: int, reason: str) -> None:
        """`number` counts the session's records from 1."""
        super().__init__(session, reason, f"record {number}")
        self.number = number


class NewerSchemaError(StorageError):
    """The database has a newer schema than this program knows; nothing in it was touched."""


def is_damage(error: BaseException | None) -> bool:
    """Whether SQLite says that what is stored is wrong: it will say so the next time as well."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # none: a text in it is not UTF-8
    return code & _PRIMARY == sqlite3.SQLITE_CORRUPT
