"""Small files of the user's own: read whole, replaced whole, changed by one process at a time.

What goes wrong is an `OSError` whose `strerror` fits behind "cannot be read:".
"""

import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODE = 0o600
"""Mode of files and directories that only the user may read or write."""

LOCK_POLL_S = 0.02
"""Pause between two attempts to get a lock; a thread that waits in the kernel could not give up."""

WRITABLE = 0o022
"""Permissions to write that only the user may have."""


def read(path: Path) -> bytes | None:
    """The content; None when there is no such file.

    Raises:
        PermissionError: others may write it, so it does not say what the user wants.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode  # of what was opened, not of what the name means a moment later
            content = file.read()
    except FileNotFoundError:
        return None
    if mode & WRITABLE:
        reason = f"other users can write it ({stat.filemode(mode)}): chmod 600 it, and check what it says"
        raise PermissionError(errno.EPERM, reason, str(path))
    return content


def write(path: Path, content: bytes) -> None:
    """Replace the file: afterwards, and after a crash, it holds this content or what it held before.

    The directory must exist.
    """
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink()
        raise


def stamp(path: Path) -> tuple[int, int] | None:
    """Return what changes when the file is replaced or written; None: there is none. Takes microseconds."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


@contextmanager
def locked(path: Path, *, within_s: float | None = None) -> Iterator[None]:
    """No other process and no other thread is in this block for the same `path`. Blocks until then.

    Read, change and write inside; a process holds the lock for a few file operations only, unless all users of it say
    how long they wait, with `within_s`. The lock is the file `<path>.lock`, which stays: removing it would let two in.

    Raises:
        TimeoutError: it was not free `within_s`.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path.with_name(f"{path.name}.lock"), flags, MODE)
    try:
        if within_s is None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            _wait_for(descriptor, path, within_s)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, path: Path, within_s: float) -> None:
    ends_at = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends_at:
                raise TimeoutError(
                    errno.ETIMEDOUT, f"another process has held the lock of {path.name} for {within_s:.0f} s"
                ) from None
            time.sleep(LOCK_POLL_S)
        else:
            return
