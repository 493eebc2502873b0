"""Backs up the database, even while the daemon writes to it, and restores a backup.

Both work on files and in any process, because SQLite gives each reader a consistent snapshot.
"""

import os
import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from zotd.clock import rfc3339
from zotd.core.ports import StorageError
from zotd.store.epoch import EPOCH_BYTES
from zotd.store.home import held
from zotd.store.schema import read_at_rest


def backup(database: Path, target: Path, *, force: bool = False) -> int:
    """Copy the committed data into the single file `target` (0600); return its size in bytes.

    The file appears when it is complete, also after a crash; with `force` it replaces an existing one. The daemon may
    write meanwhile and does not wait; its write-ahead log grows until the copy is done.

    Raises:
        StorageError: the file exists, or a file cannot be read or written.
    """
    if not force and os.path.lexists(target):
        raise StorageError(f"{target} exists; choose another name, or replace it with --force")
    with _draft(database, target) as (draft, copy):
        copy.close()
        draft.replace(target)
    return target.stat().st_size


def restore(saved: Path, database: Path) -> Path | None:
    """Replace the database with the copy `saved`; return the new path of the old one, or None if there was none.

    The copy gets a new epoch, because the cursors of clients count the events of the old database.

    Raises:
        HeldError: a daemon uses the home.
        StorageError: `saved` is no journal, or a file cannot be read or written; nothing has changed.
    """
    # The lock comes first, so that no daemon starts between the copy and the replacement.
    with held(database.parent), _draft(saved, database) as (draft, copy):
        copy.execute("UPDATE meta SET value = ? WHERE key = 'epoch'", (secrets.token_hex(EPOCH_BYTES),))
        copy.close()
        replaced = _put_aside(database)
        draft.replace(database)
    return replaced


@contextmanager
def _draft(source: Path, target: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """Yield an open copy of `source` in the directory of `target`, which is removed unless the block moves it."""
    draft: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
        os.close(descriptor)
        draft = Path(name)
        with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
            # All pages in one step, and so in one read transaction: if another process commits between two steps,
            # SQLite starts the copy again, and with a busy daemon it would never finish.
            read_at_rest(source, lambda original: original.backup(copy))
            copy.execute("PRAGMA journal_mode = DELETE")  # a single file, also while it is open for reading
            yield draft, copy
    except (OSError, sqlite3.Error) as error:
        raise StorageError(f"{source} could not be copied to {target}: {error}") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def _put_aside(database: Path) -> Path | None:
    """Give the database and its log another name; None if there is none. It is not opened, because it may be damaged.

    The old name is kept for the database alone, so that the caller can replace it atomically. Its log is moved, because
    SQLite would apply it to the next database of that name.
    """
    if not database.exists():
        return None
    aside = database.with_name(f"{database.name}.{rfc3339().replace(':', '')}")
    os.link(database, aside)
    log, shared = Path(f"{database}-wal"), Path(f"{database}-shm")
    if log.exists():
        os.link(log, f"{aside}-wal")
        log.unlink()
    shared.unlink(missing_ok=True)
    return aside
