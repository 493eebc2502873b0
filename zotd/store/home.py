"""Ensures that only one daemon uses a home, with a lock file beside the database.

The lock beside the socket is not enough: a directory of sockets may be emptied while the daemon runs, at logout or by a
cleaner of `/tmp`. Every process that writes to the files of a home holds this lock as well.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zotd import pid_lock
from zotd.core.ports import StorageError

LOCK = "zotd.lock"


class HeldError(StorageError):
    """Another process holds the lock of the home; the message names it."""


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Hold the lock of `home`, an existing directory, until the end of the block or of the process.

    Blocks for up to `pid_lock.RELEASE_S` if the last holder was killed while it started a program.

    Raises:
        HeldError: another process holds the lock.
        StorageError: the home cannot be locked. SQLite needs locks too, so a file system without them is refused.
    """
    path = home / LOCK
    try:
        lock = pid_lock.acquire(path)
    except pid_lock.LockedError as error:
        if error.is_alive:
            sentence = f"zotd is already running with pid {error.holder} in {home}; end it with `zotctl stop`"
        else:
            sentence = (
                f"{path} is locked by a program that an earlier zotd (pid {error.holder}, ended) has started; "
                f"end the program that `fuser {path}` names"
            )
        raise HeldError(sentence) from error
    except OSError as error:
        if error.filename is None:
            sentence = f"{home} cannot be locked ({error.strerror}): choose a place on a local disk with ZOT_HOME"
        else:
            sentence = f"{path} cannot be opened: {error.strerror}"
        raise StorageError(sentence) from error
    try:
        yield
    finally:
        os.close(lock)  # releases the lock; the file stays, because removing it would be a race with the next holder
