"""Giving space back, and keeping nothing of what was deleted: free pages, the write-ahead log, the search index.

The writer does a slice of it in its pauses. SQLite overwrites what is deleted (`secure_delete`), but the write-ahead log
still has the pages as they were, until it is truncated; and FTS5 before 3.42 keeps the words of deleted texts in its
segments until they are merged.
"""

import logging
import sqlite3
from pathlib import Path

from zotd.core.ports import StorageError
from zotd.store.schema import BUSY_S

LOG_KEPT_BYTES = 4 * 1024 * 1024
"""A longer write-ahead log is truncated in the writer's next pause: SQLite's own checkpoints keep it below this, unless
somebody reads for long or a commit is huge."""

FREE_KEPT_PAGES = 256
"""Pages that stay free for the next commits: a megabyte."""

SLICE_PAGES = 64
"""Given back, or merged, in one transaction: 1 to 3 ms, which is how long another commit may have to wait for it."""

_INCREMENTAL = 2
"""`PRAGMA auto_vacuum` of a database that can give pages back a few at a time."""

log = logging.getLogger(__name__)


class Space:
    """What is to be given back of one database; used by the thread that writes."""

    def __init__(self, path: Path) -> None:
        self._log = Path(f"{path}-wal")
        self._has_deleted = True  # perhaps: by a daemon that was killed
        self._merges = False

    def note_deletion(self) -> None:
        """Something was deleted: words of it are in the index, and pages of it in the log."""
        self._has_deleted = True
        self._merges = True

    def keep_up(self, connection: sqlite3.Connection) -> bool:
        """A slice, inside the caller's transaction; True when there may be more."""
        if self._merges:
            self._merges = _merge(connection)
            return True
        return _give_back(connection)

    def shorten_log(self, connection: sqlite3.Connection) -> bool:
        """Truncate the write-ahead log when it is long or has what was deleted; outside of a transaction.

        True: somebody reads, and it is to be tried again.
        """
        try:
            size = self._log.stat().st_size
        except FileNotFoundError:
            size = 0
        if size == 0 or not (self._has_deleted or size > LOG_KEPT_BYTES):
            return False
        if _truncate(connection):
            self._has_deleted = self._merges
            return False
        return True

    def compact(self, connection: sqlite3.Connection) -> None:
        """Give everything back at once, outside of a transaction; other commits wait. 10 to 30 MB take a second.

        A database that cannot give back pages a few at a time, as older programs made them, can afterwards. For that
        it is written anew, which needs as much free space as it has.

        Raises:
            StorageError: a part of it is not done, and nothing is lost.
        """
        try:
            connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")
            self._merges = False
            if is_incremental(connection):
                connection.executescript("PRAGMA incremental_vacuum")
            else:
                _vacuum(connection)
        except sqlite3.Error as error:
            raise StorageError(f"the journal could not be compacted: {error}") from error
        self._has_deleted = not _truncate(connection)


def is_incremental(connection: sqlite3.Connection) -> bool:
    """Whether the database can give back pages a few at a time."""
    (mode,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    return bool(mode == _INCREMENTAL)


def size_bytes(connection: sqlite3.Connection) -> int:
    """Of the database, without its log."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Of the database, without the pages that are free."""
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
    """Merge a slice of the index's segments into one, by which deleted words go; True when there may be more."""
    before = connection.total_changes
    connection.execute("INSERT INTO texts (texts, rank) VALUES ('merge', ?)", (-SLICE_PAGES,))
    return connection.total_changes - before >= 2  # SQLite's documented sign that something was merged


def _give_back(connection: sqlite3.Connection) -> bool:
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    if free <= FREE_KEPT_PAGES or not is_incremental(connection):
        return False
    # One by one: a page is a step with a row of no columns, after the first of which Python's module ends a statement.
    for _ in range(min(SLICE_PAGES, free - FREE_KEPT_PAGES)):
        connection.execute("PRAGMA incremental_vacuum(1)")
    return True


def _truncate(connection: sqlite3.Connection) -> bool:
    """Whether the log could be truncated; does not wait for those who read."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        log.debug("the write-ahead log was not truncated: %s", error)
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_S * 1000)}")
    return not is_busy
