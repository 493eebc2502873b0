"""What can go wrong with the journal.

    core.ports.StorageError         the disk, the file or the database did not do what was asked
    +-- UnreadableRecordError       one record cannot be understood: its session is read-only, others go on
    +-- NewerSchemaError            a newer program made the database: the daemon does not start

What the other modules of this layer raise is in theirs.
"""

from zotd.core.ports import StorageError


class UnreadableRecordError(StorageError):
    """A record that is damaged, missing, or of a kind or version that only a newer program knows."""

    def __init__(self, session: str, number: int, reason: str) -> None:
        """`number` counts the session's records from 1."""
        super().__init__(f"record {number} of session {session} cannot be read ({reason}): the session is read-only")
        self.session = session
        self.number = number


class NewerSchemaError(StorageError):
    """The database has a newer schema than this program knows; nothing in it was touched."""
