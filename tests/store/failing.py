"""Disks with real failures: the descriptors of a file of this process temporarily refer to another file."""

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

FULL = "/dev/full"
"""A device on which every write fails with ENOSPC."""

NOT_SYNCED = "/dev/null"
"""A device that accepts writes but fails to sync."""


@contextmanager
def log_leads_to(device, database, flags=os.O_RDWR):
    """Replace the open write-ahead log of a database of this process; read-only with other `flags`."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        # Checkpoint first, so that no reader needs the log while it is replaced.
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
