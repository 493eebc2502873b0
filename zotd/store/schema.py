"""Creates, protects, opens and upgrades the database file (`docs/durability.md`).

    sessions     one row per session: `core.ports.SessionRow` as JSON, and columns to search by; replaced by every commit
    records      append-only: the record's body, and its events as they were sent
    texts        full-text index: see `zotd.store.search`
    partials     text of running steps: see `zotd.store.partials`
    forks        which part of a session is a copy of another one: see `zotd.store.forks`
    imports      which file a session was imported from
    generations  the `seq` from which each generation continued a session: see `zotd.store.generations`
    sums         usage by session, hour and model: see `zotd.store.sums`
    staged       incomplete sessions: see `zotd.store.staging`
    timers       prompts that are due at some time: see `zotd.store.timers`
    batches      sets of prompts, and `batch_prompts`: see `zotd.store.batches`
    audit        who has decided what: see `zotd.store.audit`
    user_days    what users have spent: see `zotd.store.user_days`
    settings     the daemon's own state
    meta         `epoch`; `generation`, how often the database was opened for writing; `version` of the program that last
                 opened it for writing; `searchable`, how far `texts` goes

Only one process may write. The daemon's lock ensures that, not this module.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from zotd.core.ports import StorageError
from zotd.store import lost_log
from zotd.store.errors import NewerSchemaError
from zotd.store.migration_copy import keep_copy
from zotd.store.migrations import MIGRATIONS
from zotd.wire.version import VERSION

T = TypeVar("T")

BUSY_S = 5.0
"""Longest wait for a lock. Only another program can hold one (a backup, a SQLite shell): the daemon has one writer, and
readers do not block it."""

WAL_KEPT_BYTES = 64 * 1024 * 1024
"""The write-ahead log is cut to this size after a checkpoint, so that a huge commit does not occupy space for ever."""

_SORT_IN_MEMORY = "PRAGMA temp_store = MEMORY"
"""Sort without temporary files, so that the daemon also works without free descriptors or with a full `$TMPDIR`.
Sorting some thousand sessions takes megabytes."""

log = logging.getLogger(__name__)


def open_for_writing(path: Path, tell: Callable[[str], None] = log.warning) -> sqlite3.Connection:
    """Open the connection of the writer; create a missing file and upgrade an old schema.

    The caller closes it, in the thread that opened it. The directory must exist. `tell` gets a message if commits at
    the end of the log are lost.

    Raises:
        StorageError: the file cannot be created or opened, is no journal, or lacks a part; it is unchanged.
            NewerSchemaError if a newer program wrote it.
    """
    try:
        # Both before SQLite opens a file: it would remove the log of an empty database, and hide what was lost.
        refuse_torn(path)
        index = lost_log.known(path)
        if path.exists():
            at_rest = _rest_of(path) is not None  # the caller holds the daemon's lock
            # Check the schema read-only first: opening and closing a database for writing already changes it.
            open_read_only(path, at_rest=at_rest).close()
        else:
            _make(path)
        _protect(path)
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        try:
            _tell_lost(connection, index, tell)
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise StorageError(f"the journal {path} cannot be opened: {error}") from error
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write; the caller closes it, in the thread that opened it.

    Raises:
        StorageError: the file cannot be opened.
    """
    try:
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        connection.execute(_SORT_IN_MEMORY)
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise StorageError(f"the journal {path} cannot be opened: {error}") from error
    return connection


def read_at_rest(path: Path, look: Callable[[sqlite3.Connection], T]) -> T:
    """Call `look` with a connection to an existing database, without creating files next to it; return its result.

    To read a database that no process has open, SQLite would create an empty log and leave it there. The database is
    therefore opened as immutable. If a daemon opens it meanwhile, the result is discarded and `look` is called again.

    Raises:
        StorageError: as for `open_read_only`.
    """
    before = _rest_of(path)
    if before is not None:
        with closing(open_read_only(path, at_rest=True)) as connection:
            found = look(connection)
        # No daemon has opened the database in between, so the snapshot was consistent.
        if _rest_of(path) == before:
            return found
    with closing(open_read_only(path)) as connection:
        return look(connection)


def open_read_only(path: Path, *, at_rest: bool = False) -> sqlite3.Connection:
    """Open an existing database without changing it, not even its schema; the caller closes the connection.

    For copies, and for processes other than the daemon. `at_rest` promises that no other process has it open or opens
    it.

    Raises:
        StorageError: there is no database, or it is no journal of zotd. NewerSchemaError if a newer program wrote it.
    """
    mode = "mode=ro&immutable=1" if at_rest else "mode=ro"
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=BUSY_S, isolation_level=None
        )
        try:
            _refuse_newer(connection, path)
            _refuse_foreign(connection, path)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StorageError(f"the journal {path} cannot be read: {error}") from error
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything in the block at its end; roll back if it raises."""
    # IMMEDIATE takes the write lock first: a lock taken later could fail in the middle without waiting for BUSY_S.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # it failed, and SQLite has not rolled back by itself, as it does on a full disk
            connection.execute("ROLLBACK")


def _tell_lost(connection: sqlite3.Connection, index: lost_log.IndexedLog | None, tell: Callable[[str], None]) -> None:
    if index is None:
        return
    # A passive checkpoint reports the number of usable frames; the first access to the log has recovered it.
    (_, frames, _) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    sentence = lost_log.lost(index, frames)
    if sentence is not None:
        tell(sentence)


def refuse_torn(path: Path) -> None:
    """Raise StorageError if a file of the database is missing or empty while the others refer to it; changes nothing.

    SQLite reports no error in these cases. It removes the log of an empty database, uses an old log in a new database,
    and drops the newest commits if the log of a killed daemon is missing.
    """
    log, shared = Path(f"{path}-wal"), Path(f"{path}-shm")
    if not path.exists():
        if log.exists() and log.stat().st_size > 0:
            raise StorageError(
                f"the journal {path} is missing, but its log {log} exists: put the journal back, or remove the log, too"
            )
    elif path.stat().st_size == 0:
        raise StorageError(
            f"the journal {path} is empty, which it should never be: restore a backup (`zotctl restore`)"
        )
    elif shared.exists() and not log.exists():
        raise StorageError(
            f"the journal {path} was not closed, and {log} with its newest commits is missing: put it back, or continue "
            f"without them (`zotctl restore {path}`)"
        )


def _rest_of(path: Path) -> tuple[int, int, int] | None:
    """Return a fingerprint that changes with every write; None if the database has a log, or does not exist."""
    real = path.resolve()  # the log is next to the target of a link
    try:
        found = real.stat()
    except FileNotFoundError:
        return None
    return None if Path(f"{real}-wal").exists() else (found.st_ino, found.st_size, found.st_mtime_ns)


def _make(path: Path) -> None:
    """Create a database under a temporary name, so that a killed start never leaves an incomplete one."""
    draft = path.with_name(f".{path.name}.new")
    # The log as well: SQLite would apply a leftover log to the new database.
    for name in _files(draft):
        name.unlink(missing_ok=True)  # of a start that was killed
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        _prepare(connection, path)
    draft.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # otherwise a power failure could undo the rename, and leave a log without its database
    finally:
        os.close(directory)


def _protect(path: Path) -> None:
    # SQLite gives `-wal` and `-shm` the mode of the database, so the mode of that one decides. An existing file is
    # never opened here: closing any descriptor of it would drop this process's POSIX locks on the database.
    for name in _files(path):
        if name.exists():
            name.chmod(0o600)


def _files(path: Path) -> tuple[Path, Path, Path]:
    return path, Path(f"{path}-wal"), Path(f"{path}-shm")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    _refuse_newer(connection, path)
    # Takes effect only for a database without tables; `zotctl prune` converts older ones (`zotd.store.space`).
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA secure_delete = ON")  # the text of deleted sessions must not stay in free pages
    connection.execute("PRAGMA journal_mode = WAL")  # readers do not block the writer
    connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}")
    connection.execute(_SORT_IN_MEMORY)
    # Without these two, macOS's fsync leaves the data in the drive's cache. No effect elsewhere.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    found = schema_of(connection)
    if 0 < found < len(MIGRATIONS):
        kept = keep_copy(connection, path, len(MIGRATIONS))
        log.info(
            "upgrading the journal from schema %s to %s; a copy of the old one is kept in %s",
            found,
            len(MIGRATIONS),
            kept,
        )
    # One transaction for each, so that an interrupted upgrade continues with the next migration.
    for version in range(found, len(MIGRATIONS)):
        with transaction(connection):
            MIGRATIONS[version](connection)
            connection.execute(f"PRAGMA user_version = {version + 1}")
    with transaction(connection):  # writes nothing for the same version, so a full disk does not prevent a start
        connection.execute(
            "INSERT INTO meta VALUES ('version', ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value",
            (VERSION,),
        )


def _refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    schema = schema_of(connection)
    if schema <= len(MIGRATIONS):
        return
    (maker,) = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() or ("a newer version",)
    raise NewerSchemaError(
        f"the journal {path} was written by zotd {maker} (schema {schema}), and this is zotd {VERSION} "
        f"(schema {len(MIGRATIONS)}): start that version or a newer one"
    )


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"meta", "sessions", "records"} <= tables:
        raise StorageError(f"{path} is not a journal of zotd")


def schema_of(connection: sqlite3.Connection) -> int:
    """Return the schema version of the database; 0 if it is empty."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)
