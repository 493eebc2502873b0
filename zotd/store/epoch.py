"""Identity of a database: a random epoch, stored in it when it is created."""

import sqlite3

EPOCH_BYTES = 16
"""128 random bits: two databases never share an epoch."""


def read_epoch(connection: sqlite3.Connection) -> str:
    """Return the database's epoch, 32 hexadecimal digits."""
    (epoch,) = connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
    return str(epoch)
