"""A log file that only its user can read and that is rotated at a given size."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""O_NOFOLLOW, because a symbolic link could redirect the log into another file; O_NONBLOCK, because opening a named pipe
must not block the caller."""


class RotatedFile:
    """`path`, `path.1`, … with mode 0600.

    Other programs may change the files: one that was removed or renamed is created again, and one that was truncated is
    continued. A symbolic link or another kind of file in their place is neither followed nor changed.
    """

    def __init__(self, path: Path, *, file_bytes: int, files: int) -> None:
        """Rotate at `file_bytes` and keep `files` files in all. Opens nothing yet."""
        self.path = path
        self._file_bytes = file_bytes
        self._files = files
        self._fd = -1
        self._size = 0

    def write(self, data: bytes) -> None:
        """Append `data`. Raises `OSError` on failure; the next call tries to open the file again."""
        if self._fd < 0 or not self._is_current():
            self.open()
        if self._size and self._size + len(data) > self._file_bytes:
            self._rotate()
        os.write(self._fd, data)

    def open(self) -> None:
        """Open the file, as `write` does by itself; its directory is made, for the user alone. Raises `OSError`."""
        self.close()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, _FLAGS, PRIVATE)
        try:
            self._size = _claimed(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._fd = descriptor

    def close(self) -> None:
        """Close the file; the next `write` opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _is_current(self) -> bool:
        """Return whether the path still refers to the open file, and update its size; takes a few microseconds."""
        try:
            named = os.lstat(self.path)
        except OSError:
            return False
        mine = os.fstat(self._fd)
        self._size = mine.st_size
        return (named.st_dev, named.st_ino) == (mine.st_dev, mine.st_ino)

    def _rotate(self) -> None:
        self.close()
        for number in range(self._files - 1, 0, -1):
            newer = self.path if number == 1 else self._older(number - 1)
            with suppress(FileNotFoundError):
                newer.replace(self._older(number))
        self.open()

    def _older(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _claimed(descriptor: int) -> int:
    """Set mode 0600, since the file may exist with another mode, and return its size."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise FileExistsError(errno.EEXIST, "not a regular file")
    os.fchmod(descriptor, PRIVATE)
    return found.st_size
