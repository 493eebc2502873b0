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
    """Copy what is committed now into the file `target` (0600, nothing beside it); its size in bytes.

    It is there whole or not at all, also after a crash; with `force` it replaces what was there. The daemon may write
    meanwhile and does not wait; its write-ahead log grows until the copy is done.

    Raises:
        StorageError: there is a file already, or something cannot be read or written.
    """
    if not force and os.path.lexists(target):
        raise StorageError(f"{target} exists; choose another name, or replace it with --force")
    with _draft(database, target) as (draft, copy):
        copy.close()
        draft.replace(target)
    return target.stat().st_size


def restore(saved: Path, database: Path) -> Path | None:
    """Put the copy `saved` in the place of the database; where that is now, None when there was none.

    The epoch is a new one: a client's cursor counts the events of the old database.

    Raises:
        HeldError: a daemon has it open.
        StorageError: `saved` is no such database, or something cannot be read or written; nothing has changed then.
    """
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
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, also when it is opened to be read
            yield draft, copy
    except (OSError, sqlite3.Error) as error:
        raise StorageError(f"{source} could not be copied to {target}: {error}") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def _put_aside(database: Path) -> Path | None:
    """Give the database another name, with its log; None when there is none. It is not looked into: it may be damaged.

    What is left of the old name is the database without its log, which would be taken for one of the next database.
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
