"""Reads, replaces and removes files of a workspace without following a link on the way to them.

Every directory is opened relative to the one above it, without following links, so that a link that was put there
meanwhile cannot lead out of the workspace. A file is replaced by a rename: it is never seen half written.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from zotd.checkpoints.trees import EXECUTABLE, LINK, REGULAR, FileState

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

READ_BYTES = 1024 * 1024

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors for a path at which nothing is: also if a directory on the way is missing, or a file or a link."""


class FilesBelow:
    """The files below a directory. Paths are relative to it. Close it after use."""

    def __init__(self, root: str) -> None:
        """Raises OSError if `root` cannot be opened."""
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close the directory."""
        os.close(self._root)

    def state(self, path: str) -> FileState | None:
        """Return what is at `path`; None if nothing is, or if a directory on the way is missing or is none.

        Raises OSError if it cannot be read.
        """
        try:
            with self._parent(path) as (parent, name):
                found = os.lstat(name, dir_fd=parent)
                if stat.S_ISLNK(found.st_mode):
                    return FileState(LINK, _blob_of_link(os.readlink(name, dir_fd=parent)))
                if not stat.S_ISREG(found.st_mode):
                    return FileState(stat.S_IFMT(found.st_mode), "")
                mode = EXECUTABLE if found.st_mode & stat.S_IXUSR else REGULAR
                return FileState(mode, _blob_of_file(name, parent))
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise

    def remove(self, path: str) -> None:
        """Remove the file or link at `path`, and the directories that become empty by that; raises OSError."""
        with self._parent(path) as (parent, name):
            os.unlink(name, dir_fd=parent)
        folder = os.path.dirname(path)
        with suppress(OSError):  # not empty, or another process is faster
            while folder:
                with self._parent(folder) as (parent, name):
                    os.rmdir(name, dir_fd=parent)
                folder = os.path.dirname(folder)

    def write(self, path: str, mode: int, content: bytes, *, draft: str, written: Callable[[], None]) -> None:
        """Replace what is at `path` with a file or link, or create it with the directories on the way.

        An existing file keeps its permissions, but for the executable bit; an empty directory is replaced.

        Args:
            path: where.
            mode: `REGULAR`, `EXECUTABLE` or `LINK`.
            content: bytes of the file, or the target of the link.
            draft: name of the temporary file, which is in the same directory.
            written: called when the temporary file is complete.

        Raises:
            OSError: it cannot be written; what was there is unchanged.
        """
        with self._parent(path, make=True) as (parent, name):
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=parent)  # of an interrupted restore
            try:
                _write_draft(parent, name, mode, content, draft=draft)
                written()
                with suppress(OSError):  # no directory, or one that is not empty, which the rename then refuses
                    os.rmdir(name, dir_fd=parent)
                os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=parent)
                raise

    def discard_draft(self, path: str, draft: str) -> None:
        """Remove the temporary file that an interrupted `write` has left, if there is one."""
        try:
            with self._parent(path) as (parent, _):
                os.unlink(draft, dir_fd=parent)
        except OSError as error:
            if error.errno not in ABSENT:
                raise

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the directory of `path`; yields its descriptor and the last part of the path."""
        *folders, name = path.split("/")
        descriptor = os.dup(self._root)
        try:
            for folder in folders:
                inner = _enter(folder, descriptor, make=make)
                os.close(descriptor)
                descriptor = inner
            yield descriptor, name
        finally:
            os.close(descriptor)


def _enter(folder: str, parent: int, *, make: bool) -> int:
    try:
        return os.open(folder, DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(folder, dir_fd=parent)
    return os.open(folder, DIRECTORY, dir_fd=parent)


def _write_draft(parent: int, name: str, mode: int, content: bytes, *, draft: str) -> None:
    if mode == LINK:
        os.symlink(content, os.fsencode(draft), dir_fd=parent)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o777 if mode == EXECUTABLE else 0o666, dir_fd=parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        with suppress(FileNotFoundError):
            present = os.lstat(name, dir_fd=parent)
            if stat.S_ISREG(present.st_mode):
                os.fchmod(descriptor, _permissions(stat.S_IMODE(present.st_mode), mode))
        os.fsync(descriptor)


def _permissions(present: int, mode: int) -> int:
    """Return permissions as they are, executable by those who may read if the recorded file is executable."""
    if mode == EXECUTABLE:
        return present | (present & 0o444) >> 2
    return present & ~0o111


def _blob_of_link(target: str) -> str:
    content = os.fsencode(target)
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def _blob_of_file(name: str, parent: int) -> str:
    """Return the object name that git gives to the content of a file."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    with os.fdopen(descriptor, "rb") as file:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(descriptor).st_size, usedforsecurity=False)
        while chunk := file.read(READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
