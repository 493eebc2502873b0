"""Ensures that only one daemon uses a home, with a lock file beside the database.

The lock beside the socket is not enough: a directory of sockets may be emptied while the daemon runs, at logout or by a
cleaner of `/tmp`. Every process that writes to the files of a home holds this lock as well.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zotd.core.ports import StorageError

LOCK = "zotd.lock"

PID_BYTES = 32
"""Maximum length of a pid with its newline."""


class HeldError(StorageError):
    """Another process holds the lock of the home; the message names it."""


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Hold the lock of `home`, an existing directory, until the end of the block or of the process.

    The lock file is never removed: a process that has opened a removed file would not see the lock on the next one.

    Raises:
        HeldError: another process holds the lock.
        StorageError: the home cannot be locked. SQLite needs locks too, so a file system without them is refused.
    """
    try:
        lock = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StorageError(f"{home / LOCK} cannot be opened: {error.strerror}") from error
    try:
        _lock(lock, home)
        yield
    finally:
        os.close(lock)


def _lock(lock: int, home: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, PID_BYTES, 0).decode(errors="replace").strip() or "unknown"
        raise HeldError(f"zotd is already running with pid {holder} in {home}; end it with `zotctl stop`") from error
    except OSError as error:
        sentence = f"{home} cannot be locked ({error.strerror}): choose a place on a local disk with ZOT_HOME"
        raise StorageError(sentence) from error
    os.ftruncate(lock, 0)  # only now: without the lock this would erase the pid of the holder
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
