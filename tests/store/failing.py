"""Disks that fail for real: the descriptors of a file of this process lead elsewhere for a while."""

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

FULL = "/dev/full"
"""Nothing can be written there: no space is left on device."""

NOT_SYNCED = "/dev/null"
"""Everything can be written, and cannot be synced."""


@contextmanager
def log_leads_to(device, database, flags=os.O_RDWR):
    """The write-ahead log of a database that this process has open is another file; read-only with other `flags`."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        # What is in the log goes into the database, so that nobody has to read from the log meanwhile.
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        taken = [int(entry.name) for entry in Path("/proc/self/fd").iterdir() if leads_to(entry, f"{database}-wal")]
        kept = [os.dup(number) for number in taken]
        other = os.open(device, flags)
        for number in taken:
            os.dup2(other, number, inheritable=False)
    try:
        yield
    finally:
        for number, true in zip(taken, kept, strict=True):
            os.dup2(true, number, inheritable=False)
            os.close(true)
        os.close(other)


def leads_to(entry, path):
    try:
        return str(entry.readlink()) == path
    except FileNotFoundError:
        return False
