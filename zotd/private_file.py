"""Small files of the user's own: read whole, replaced whole, changed by one process at a time.

What goes wrong is an `OSError` whose `strerror` fits behind "cannot be read:".
"""

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODE = 0o600
"""Mode of files and directories that only the user may read or write."""

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


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """No other process and no other thread is in this block for the same `path`. Blocks until then.

    Read, change and write inside; a process holds the lock for a few file operations only. The lock is the file
    `<path>.lock`, which stays: removing it would let two in.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path.with_name(f"{path.name}.lock"), flags, MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
