"""Returns free space to the file system and erases remains of deleted data: free pages, write-ahead log, search index.

The writer does a slice of this work when it is idle. SQLite overwrites deleted data (`secure_delete`), but the
write-ahead log has the old pages until it is truncated, and FTS5 before 3.42 keeps the words of deleted texts in its
segments until they are merged.
"""

import logging
import sqlite3
from pathlib import Path

from zotd.core.ports import StorageError
from zotd.store.schema import BUSY_S

LOG_KEPT_BYTES = 4 * 1024 * 1024
"""A longer write-ahead log is truncated when the writer is next idle. SQLite's own checkpoints keep the log below this
size, except during a long read or after a huge commit."""

FREE_KEPT_PAGES = 256
"""Free pages kept for the next commits: a megabyte."""

SLICE_PAGES = 64
"""Pages returned or merged in one transaction: 1 to 3 ms, which is how long another commit may have to wait for it."""

_INCREMENTAL = 2
"""`PRAGMA auto_vacuum` of a database that can give pages back a few at a time."""

log = logging.getLogger(__name__)


class Space:
    """Tracks the pending clean-up of one database; used by the writer's thread."""

    def __init__(self, path: Path) -> None:
        self._log = Path(f"{path}-wal")
        self._has_deleted = True  # unknown at the start: a killed daemon may have left deleted data in the log
        self._merges = False

    def note_deletion(self) -> None:
        """Schedule the merging of the index and the truncation of the log, which still contain the deleted data."""
        self._has_deleted = True
        self._merges = True

    def keep_up(self, connection: sqlite3.Connection) -> bool:
        """Do a slice of work inside the caller's transaction; return True if there may be more."""
        if self._merges:
            self._merges = _merge(connection)
            return True
        return _give_back(connection)

    def shorten_log(self, connection: sqlite3.Connection) -> bool:
        """Truncate the write-ahead log if it is long or contains deleted data; call it outside of a transaction.

        Returns True if a reader prevents it, so that the caller tries again later.
        """
        try:
            size = self._log.stat().st_size
        except FileNotFoundError:
            size = 0
        if size == 0 or not (self._has_deleted or size > LOG_KEPT_BYTES):
            return False
        if _truncate(connection):
            self._has_deleted = self._merges  # the pages that merging rewrites go through the log, too
            return False
        return True

    def compact(self, connection: sqlite3.Connection) -> None:
        """Return all free space at once, outside of a transaction. Other commits wait; 10 to 30 MB take a second.

        A database made by an older program is rewritten, which needs as much free space as it has. Afterwards it can
        return pages a few at a time.

        Raises:
            StorageError: the work is incomplete; no data is lost.
        """
        try:
            # Before the pages are returned: merging the whole index frees pages.
            connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")
            self._merges = False
            if is_incremental(connection):
                # Not `execute`, which would stop after the first page; see `_give_back`.
                connection.executescript("PRAGMA incremental_vacuum")
            else:
                _vacuum(connection)
        except sqlite3.Error as error:
            raise StorageError(f"the journal could not be compacted: {error}") from error
        self._has_deleted = not _truncate(connection)


def is_incremental(connection: sqlite3.Connection) -> bool:
    """Whether the database can return pages a few at a time."""
    (mode,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    return bool(mode == _INCREMENTAL)


def size_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of the database without its log."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of the database without its free pages."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    return size_bytes(connection) - int(free) * int(page)


def _vacuum(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA temp_store = FILE")  # the copy does not fit into memory
    try:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("VACUUM")
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


def _merge(connection: sqlite3.Connection) -> bool:
    """Merge a slice of the index's segments, which removes deleted words; return True if there may be more."""
    before = connection.total_changes
    connection.execute("INSERT INTO texts (texts, rank) VALUES ('merge', ?)", (-SLICE_PAGES,))
    return connection.total_changes - before >= 2  # SQLite's documented sign that something was merged


def _give_back(connection: sqlite3.Connection) -> bool:
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    if free <= FREE_KEPT_PAGES or not is_incremental(connection):
        return False
    # One page per statement: each freed page is a result row without columns, and after the first such row Python's
    # sqlite3 ends the statement.
    for _ in range(min(SLICE_PAGES, free - FREE_KEPT_PAGES)):
        connection.execute("PRAGMA incremental_vacuum(1)")
    return True


def _truncate(connection: sqlite3.Connection) -> bool:
    """Truncate the log without waiting for readers; False if one of them prevented it."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        log.debug("the write-ahead log was not truncated: %s", error)
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_S * 1000)}")
    return not is_busy
