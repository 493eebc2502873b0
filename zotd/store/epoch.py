"""Identity of a database: a random epoch, stored in it when it is created."""

from zotd.store.connection import SqlConnection

EPOCH_BYTES = 16
"""128 random bits: two databases never share an epoch."""


def read_epoch(connection: SqlConnection) -> str:
    """Return the database's epoch, 32 hexadecimal digits."""
    (epoch,) = connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
    return str(epoch)
