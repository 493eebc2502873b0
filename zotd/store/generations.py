"""Which cursors still hold after a crash: one generation for each time that the database was opened for writing.

Events may be shown to clients before they are synced. A power failure can lose those, and what is recorded afterwards
gets their numbers. So a cursor names the generation in which its client read, and for each session the database notes
the `seq` with which a later generation went on. A cursor of an earlier generation holds up to there, and no further.

    generation 1    events 1 to 11 are shown, 1 to 9 are synced, then the power fails
    generation 2    goes on with event 10: cursors of generation 1 hold up to 9; (1, 10) and (1, 11) are `lost`

After kill -9 nothing is lost, so the later generation goes on behind every cursor, and all of them hold. This needs no
sync besides one at each start, no clock and no trust in the machine's boot id: a file system can fail alone.
"""

import secrets
import sqlite3
from dataclasses import dataclass

from zotd.store.epoch import read_epoch

RANDOM_BYTES = 8
"""Of the name of a generation that could not be recorded: no other one ever has it."""

_BEGIN = """
INSERT INTO meta VALUES ('generation', '1')
ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1
"""

_NUMBER = "SELECT coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'generation'), 0)"

_MARK = "INSERT OR IGNORE INTO generations SELECT key, ?, seq FROM sessions WHERE id = ?"

_NEXT = """
SELECT seq FROM generations
WHERE session = (SELECT key FROM sessions WHERE id = ?) AND number > ? ORDER BY number LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Generation:
    """One life of the database, from open to close."""

    database: str
    """The epoch of the database."""
    number: int
    name: str
    """The number, or random when the number could not be synced: a later life may then have the same number."""

    @property
    def epoch(self) -> str:
        """The half of a cursor that tells the database and the generation."""
        return f"{self.database}.{self.name}"


def begin(connection: sqlite3.Connection) -> None:
    """Count a generation; to be committed durably before any event is shown in it."""
    connection.execute(_BEGIN)


def begun(connection: sqlite3.Connection) -> Generation:
    """The generation that `begin` has counted."""
    (number,) = connection.execute(_NUMBER).fetchone()
    return Generation(read_epoch(connection), number, str(number))


def unrecorded(connection: sqlite3.Connection) -> Generation:
    """A generation for when `begin` failed, as on a full disk: its cursors hold until the database is closed."""
    (number,) = connection.execute(_NUMBER).fetchone()
    return Generation(read_epoch(connection), number + 1, f"x{secrets.token_hex(RANDOM_BYTES)}")


def mark(connection: sqlite3.Connection, session: str, number: int) -> None:
    """Note that the generation goes on with the session, from the `seq` that is stored; before its first commit."""
    connection.execute(_MARK, (number, session))
    connection.execute("UPDATE sessions SET generation = ? WHERE id = ?", (number, session))


def forget(connection: sqlite3.Connection, key: int) -> None:
    """The session with this key is being deleted."""
    connection.execute("DELETE FROM generations WHERE session = ?", (key,))


def holds_to(connection: sqlite3.Connection, session: str, number: int) -> int | None:
    """The last `seq` of the session that cursors of that earlier generation may have; None: any that is stored."""
    found = connection.execute(_NEXT, (session, number)).fetchone()
    return int(found[0]) if found else None


def number_of(epoch: str, current: Generation) -> int | None:
    """The number of the generation that a cursor's epoch names; None: of another database, or not known."""
    database, _, name = epoch.partition(".")
    if database != current.database or not (name.isascii() and name.isdigit()) or len(name) > len(str(current.number)):
        return None
    return int(name) if int(name) < current.number else None
