"""Notices that the code of loaded modules has changed on disk, by an update or an editor."""

import os
import struct
import sys
import sysconfig
from collections.abc import Iterable
from typing import Self

PACKAGES = frozenset({"zotd", "zotctl", "zottui"})

_STAMP = struct.Struct("3q")
"""Inode, size and time of the last change in nanoseconds; zeros for a file that is not there."""


class CodeOnDisk:
    """The state of some files, as they were when their modules were loaded.

    It is two objects, however many files there are: a fork copies each page on which it touches an object.
    """

    def __init__(self, paths: Iterable[str], began_ns: int) -> None:
        """See `of_loaded_modules`."""
        self._paths = "\0".join(paths)
        self._state = _state(self._paths)
        # What changed while it was imported may be older than the file that has been looked at.
        self._has_changed = any(changed_ns > began_ns for _, _, changed_ns in _STAMP.iter_unpack(self._state))

    @classmethod
    def of_loaded_modules(cls, began_ns: int) -> Self:
        """Return the state of this project's modules, and of the directory with the installed packages.

        `began_ns`: when their import began, as in `time.time_ns`; a file that was changed since counts as changed.

        Files of other packages are not looked at: there are thousands, and an installer that changes a package adds and
        removes entries of that directory.
        """
        found = (module.__file__ for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES)
        return cls((*filter(None, found), sysconfig.get_path("purelib")), began_ns)

    def has_changed(self) -> bool:
        """Return whether any of it differs now. Takes 2 us a file."""
        return self._has_changed or _state(self._paths) != self._state


def _state(paths: str) -> bytes:
    return b"".join(map(_stamp, paths.split("\0")))


def _stamp(path: str) -> bytes:
    try:
        found = os.stat(path)  # noqa: PTH116  (a fifth of the time of `Path.stat`; each fork looks at 500 files)
    except OSError:
        return _STAMP.pack(0, 0, 0)
    return _STAMP.pack(found.st_ino, found.st_size, found.st_mtime_ns)
