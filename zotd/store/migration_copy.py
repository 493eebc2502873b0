"""The copy of a database that is kept before its schema changes: the way back to the older program."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path


def keep_copy(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy the database `path` to `PATH.before-vVERSION` (0600), and remove the copies of earlier versions.

    A copy that is there already stays: it is from before an attempt that failed. The copy appears under its name when it
    is complete and synced.

    Raises:
        OSError, sqlite3.Error: it cannot be written; nothing has changed then.
    """
    target = path.with_name(f"{path.name}.before-v{version}")
    if not target.exists():
        draft = target.with_name(f".{target.name}.new")
        draft.unlink(missing_ok=True)  # of a start that was killed
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
                connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # one file
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    for other in path.parent.glob(f"{path.name}.before-v*"):
        if other != target:
            other.unlink()
    return target
