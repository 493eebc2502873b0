"""The database file: how it is made, protected, opened and brought up to date (`docs/durability.md` and 5).

    sessions   one per session: `core.ports.SessionRow` as JSON, and what is looked for of it; replaced with every commit
    records    what was committed, append-only: the record's body, and its events as they were sent
    texts      what can be searched: see `zotd.store.search`
    partials   the text of running steps: see `zotd.store.partials`
    forks      how much of a session is a copy of another one's: see `zotd.store.forks`
    imports    which file a session was read from
    generations  from which `seq` on each life of the database went on with a session: see `zotd.store.generations`
    sums       what model requests took, by session, hour and model: see `zotd.store.sums`
    staged     sessions that are being put together: see `zotd.store.staging`
    settings   what the daemon remembers for itself
    meta       `epoch`; `generation`, how often it was opened for writing; `version`, the program that opened it for writing last; `searchable`, how far `texts` goes

One process writes; the daemon's lock sees to that, not this module.
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
"""Longest wait for a lock. Only another program can hold one (a backup, a person with a SQLite shell): the daemon
has one writer, and readers do not block it."""

WAL_KEPT_BYTES = 64 * 1024 * 1024
"""What the write-ahead log is cut to after a checkpoint; one huge commit does not keep its disk space for ever."""

_SORT_IN_MEMORY = "PRAGMA temp_store = MEMORY"
"""No file is opened for what does not fit into the cache (some thousand sessions, sorted: megabytes): a daemon without
free descriptors, or with a full `$TMPDIR`, reads and writes as before."""

log = logging.getLogger(__name__)


def open_for_writing(path: Path, tell: Callable[[str], None] = log.warning) -> sqlite3.Connection:
    """The one connection that writes; the file is made when it is missing, and brought to the current schema.

    The caller closes it, in the thread that opened it. The directory must exist. `tell` gets a sentence when commits are
    lost with the end of the log.

    Raises:
        StorageError: the file cannot be made or opened, is no such database, or has lost a part; it is as it was
            then. NewerSchemaError when a newer program made it.
    """
    try:
        refuse_torn(path)
        index = lost_log.known(path)
        if path.exists():
            at_rest = _rest_of(path) is not None  # the caller holds the daemon's lock
            open_read_only(
                path, at_rest=at_rest
            ).close()  # looks at it: whoever opens it for writing has changed it by closing it
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
    """A connection that cannot write; the caller closes it, in the thread that opened it.

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
    """What `look` makes of a database that exists, and beside which nothing is made; it may be called twice.

    To read a database that nobody has open, SQLite would make an empty log beside it, and leave it there. So it is told
    that nothing changes; should a daemon have opened it meanwhile, that was not true, and `look` begins again.

    Raises:
        StorageError: as `open_read_only`.
    """
    before = _rest_of(path)
    if before is not None:
        with closing(open_read_only(path, at_rest=True)) as connection:
            found = look(connection)
        if _rest_of(path) == before:
            return found
    with closing(open_read_only(path)) as connection:
        return look(connection)


def open_read_only(path: Path, *, at_rest: bool = False) -> sqlite3.Connection:
    """A connection to a database that exists and of which nothing changes, not even its schema; the caller closes it.

    For other processes than the daemon, and for copies. `at_rest`: nobody else has it open, nor will.

    Raises:
        StorageError: there is none, or it is none of ours; NewerSchemaError when a newer program made it.
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
    """Everything in the block is committed at its end, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # it failed, and SQLite has not rolled back by itself (as on a full disk)
            connection.execute("ROLLBACK")


def _tell_lost(connection: sqlite3.Connection, index: lost_log.IndexedLog | None, tell: Callable[[str], None]) -> None:
    if index is None:
        return
    (_, frames, _) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    sentence = lost_log.lost(index, frames)
    if sentence is not None:
        tell(sentence)


def refuse_torn(path: Path) -> None:
    """Raise StorageError when one of the database's files has lost what the others still speak of; changes nothing.

    SQLite would go on without a word: with an empty database it removes the log, in a new one it finds the log of the
    old, and without the log that a killed daemon has left, the newest commits have never been.
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
    """What differs when somebody has written to the database; None while it has a log, or when it is not there."""
    real = path.resolve()
    try:
        found = real.stat()
    except FileNotFoundError:
        return None
    return None if Path(f"{real}-wal").exists() else (found.st_ino, found.st_size, found.st_mtime_ns)


def _make(path: Path) -> None:
    """Make a new database, under another name at first: a start that is killed leaves none, and never half of one."""
    draft = path.with_name(f".{path.name}.new")
    for name in _files(draft):
        name.unlink(missing_ok=True)  # of a start that was killed
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        _prepare(connection, path)
    draft.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # or a power failure could take the name back, and leave a log without its database
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
    # Only of a database without tables; an older one is converted by `zotctl prune` (`zotd.store.space`).
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA journal_mode = WAL")
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
    for version in range(found, len(MIGRATIONS)):
        with transaction(connection):
            MIGRATIONS[version](connection)
            connection.execute(f"PRAGMA user_version = {version + 1}")
    with transaction(connection):  # writes nothing when it is the same version: a full disk does not stop a start
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
    """The version of the database's form; 0: it is empty."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)
