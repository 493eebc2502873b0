"""Copies a database before its schema changes, so that users can return to the older program."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path


def keep_copy(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy the database `path` to `PATH.before-vVERSION` (0600), and remove the copies of earlier versions.

    An existing copy is kept: it was made before a failed attempt, when the database was still untouched. The copy gets
    its name once it is complete and synced.

    Raises:
        OSError, sqlite3.Error: the copy cannot be written; nothing has changed.
    """
    target = path.with_name(f"{path.name}.before-v{version}")
    if not target.exists():
        draft = target.with_name(f".{target.name}.new")
        draft.unlink(missing_ok=True)  # of a start that was killed
        try:
            # Created here and not by SQLite, which would use the umask: the sessions are private.
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
                connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # no `-wal` beside it: the copy must be a single file
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    for other in path.parent.glob(f"{path.name}.before-v*"):
        if other != target:
            other.unlink()
    return target
