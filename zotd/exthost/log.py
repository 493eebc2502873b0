"""An extension's log: what it writes to stderr, and what we have to say about it, in one file that cannot fill the disk."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from zotd.logs import RotatedFile
from zotd.sanitize import escaped

FILE_BYTES = 5 * 1024 * 1024
"""Size at which a new file is begun (`docs/extensions.md`)."""

FILES = 3
"""Files in all: the current one, `.1` and `.2`."""

TOTAL_BYTES = 64 * 1024 * 1024
"""Of the logs of all extensions together, also those that are not installed any more; the oldest files go first."""

SWEEP_BYTES = 256 * 1024
"""After so much, and when it begins to write, a log looks whether all of them are too large; so they may be for a while."""

_ALL = "ext-*.log*"


class ExtensionLog:
    """`ext-<name>.log`, with mode 0600; opened when something is written.

    Writing is as good as the disk is: a full one loses lines and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listeners: dict[Callable[[bytes], None], None] = {}
        """Told of what is written, from now on; they return at once and never raise."""
        self._file = RotatedFile(path, file_bytes=FILE_BYTES, files=FILES)
        self._unswept = SWEEP_BYTES

    def append(self, data: bytes) -> None:
        """Write what the extension wrote."""
        for listener in list(self.listeners):
            listener(data)
        with suppress(OSError):
            self._file.write(data)
        self._unswept += len(data)
        if self._unswept >= SWEEP_BYTES:
            self._unswept = 0
            sweep(self.path.parent)

    def say(self, sentence: str) -> None:
        """Write a line of ours."""
        self.append(f"[zot] {escaped(sentence)}\n".encode(errors="backslashreplace"))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        self._file.close()


def sweep(directory: Path) -> None:
    """Remove the oldest logs of extensions in `directory` until they have `TOTAL_BYTES` together.

    The current file of an extension may be among them, when it has written nothing for longest; its next line begins it
    anew. What cannot be removed stays.
    """
    found: list[tuple[float, int, Path]] = []
    for path in directory.glob(_ALL):
        with suppress(OSError):  # it was removed, or renamed
            about = path.lstat()
            found.append((about.st_mtime, about.st_size, path))
    total = 0
    for _, size, path in sorted(found, reverse=True):
        total += size
        if total > TOTAL_BYTES:
            with suppress(OSError):
                path.unlink()
