"""Notices that the code of loaded modules has changed on disk, by an update or an editor."""

import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Self

PACKAGES = frozenset({"zotd", "zotctl", "zottui"})

_Stamp = tuple[int, int, int] | None


class CodeOnDisk:
    """The state of some files, as they were when their modules were loaded."""

    def __init__(self, stamps: Mapping[str, _Stamp], began_ns: int) -> None:
        """`stamps`: inode, size and time of the last change by path; None for one that is not there."""
        self._stamps = stamps
        # What changed while it was imported may be older than the file that has been looked at.
        self._has_changed = any(stamp is not None and stamp[-1] > began_ns for stamp in stamps.values())

    @classmethod
    def of_loaded_modules(cls, began_ns: int) -> Self:
        """Return the state of this project's modules, and of the directory with the installed packages.

        `began_ns`: when their import began, as in `time.time_ns`; a file that was changed since counts as changed.

        Files of other packages are not looked at: there are thousands, and an installer that changes a package adds and
        removes entries of that directory.
        """
        found = (module.__file__ for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES)
        files = (*filter(None, found), sysconfig.get_path("purelib"))
        return cls({path: _stamp(path) for path in files}, began_ns)

    def has_changed(self) -> bool:
        """Return whether any of it differs now. Takes 1 us a file."""
        return self._has_changed or any(_stamp(path) != stamp for path, stamp in self._stamps.items())


def _stamp(path: str) -> _Stamp:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
