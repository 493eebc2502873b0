"""Validity of cursors after a crash. A new generation begins each time the database is opened for writing.

Events may be shown to clients before they are synced. A power failure can lose these events, and later events get their
numbers. A cursor therefore names the generation in which its client read. For each session the database stores the
`seq` from which a later generation continued; cursors of earlier generations are valid up to there.

    generation 1    events 1 to 11 are shown, 1 to 9 are synced, then the power fails
    generation 2    continues with event 10: cursors of generation 1 are valid up to 9; (1, 10) and (1, 11) are `lost`

After kill -9 nothing is lost, so the later generation continues after every cursor, and all of them are valid. The
scheme needs one sync per start and no clock. It does not use the machine's boot id, because a file system can fail
alone.
"""

import secrets

from msgspec import Struct

from zotd.store.connection import SqlConnection
from zotd.store.epoch import read_epoch

RANDOM_BYTES = 8
"""Length of the random name of a generation that could not be stored; it is never used again."""

_BEGIN = """
INSERT INTO meta VALUES ('generation', '1')
ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)
"""

_NUMBER = "SELECT coalesce((SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'generation'), 0)"

_MARK = "INSERT INTO generations SELECT key, ?, seq + ? FROM sessions WHERE id = ? ON CONFLICT DO NOTHING"

_NEXT = """
SELECT seq FROM generations
WHERE session = (SELECT key FROM sessions WHERE id = ?) AND number > ? ORDER BY number LIMIT 1
"""


class Generation(Struct, frozen=True):
    """One life of the database, from open to close."""

    database: str
    """The epoch of the database."""
    number: int
    name: str
    """The number; random if the number could not be synced, because a later generation may then get the same number."""

    @property
    def epoch(self) -> str:
        """The epoch of cursors: it identifies the database and the generation."""
        return f"{self.database}.{self.name}"


def begin(connection: SqlConnection) -> None:
    """Increment the generation; commit it durably before any event is shown in it."""
    connection.execute(_BEGIN)


def begun(connection: SqlConnection) -> Generation:
    """Return the generation that `begin` has stored."""
    (number,) = connection.execute(_NUMBER).fetchone()
    return Generation(read_epoch(connection), number, str(number))


def unrecorded(connection: SqlConnection) -> Generation:
    """Return a generation for use after `begin` failed (full disk); its cursors are valid until the database is closed."""
    (number,) = connection.execute(_NUMBER).fetchone()
    # Not a number, so that `number_of` rejects its cursors after a restart.
    return Generation(read_epoch(connection), number + 1, f"x{secrets.token_hex(RANDOM_BYTES)}")


def mark(connection: SqlConnection, session: str, number: int, *, repeated: int = 0) -> None:
    """Store that the generation continues the session from the stored `seq`; call it before its first commit there.

    `repeated`: number of events at the beginning of that commit that clients may have got from the generation before.
    """
    connection.execute(_MARK, (number, repeated, session))
    connection.execute("UPDATE sessions SET generation = ? WHERE id = ?", (number, session))


def forget(connection: SqlConnection, key: int) -> None:
    """Delete the entries of the session with this key."""
    connection.execute("DELETE FROM generations WHERE session = ?", (key,))


def holds_to(connection: SqlConnection, session: str, number: int) -> int | None:
    """Return the last `seq` for which cursors of that earlier generation are valid; None: every stored one."""
    # No later generation has written to the session, so nothing stored can have replaced a lost event.
    found = connection.execute(_NEXT, (session, number)).fetchone()
    return int(found[0]) if found else None


def number_of(epoch: str, current: Generation) -> int | None:
    """Return the generation that a cursor's epoch names; None if it is of another database, or unknown."""
    database, _, name = epoch.partition(".")
    # The epoch comes from a client: limit the digits before `int`, which is slow for very long numbers.
    if database != current.database or not (name.isascii() and name.isdigit()) or len(name) > len(str(current.number)):
        return None
    return int(name) if int(name) < current.number else None
