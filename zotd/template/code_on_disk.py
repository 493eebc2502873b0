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

    def __init__(self, stamps: Mapping[str, _Stamp]) -> None:
        """`stamps`: inode, size and time of the last change by path; None for one that is not there."""
        self._stamps = stamps

    @classmethod
    def of_loaded_modules(cls) -> Self:
        """Return the state of this project's modules, and of the directory with the installed packages.

        Files of other packages are not looked at: there are thousands, and an installer that changes a package adds and
        removes entries of that directory.
        """
        found = (module.__file__ for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES)
        return cls({path: _stamp(path) for path in (*filter(None, found), sysconfig.get_path("purelib"))})

    def has_changed(self) -> bool:
        """Return whether any of it differs now. Takes 1 us a file."""
        return any(_stamp(path) != stamp for path, stamp in self._stamps.items())


def _stamp(path: str) -> _Stamp:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
