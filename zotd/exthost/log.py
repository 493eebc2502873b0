"""An extension's log file: its stderr and zot's own messages about it, limited in size."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from zotd.logs import RotatedFile
from zotd.sanitize import escaped

FILE_BYTES = 5 * 1024 * 1024
"""Size at which the log is rotated (`docs/extensions.md`)."""

FILES = 3
"""Files in all: the current one, `.1` and `.2`."""

TOTAL_BYTES = 64 * 1024 * 1024
"""Limit of the logs of all extensions together, including removed extensions. The oldest files are deleted first."""

SWEEP_BYTES = 256 * 1024
"""A log checks the total size at its first write and after so many bytes, so the limit may be exceeded for a while."""

_ALL = "ext-*.log*"


class ExtensionLog:
    """`ext-<name>.log`, with mode 0600; opened by the first write.

    Write errors are ignored: a full disk loses lines and must not stop the extension.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listeners: dict[Callable[[bytes], None], None] = {}
        """Called with each chunk that is written. They return at once and never raise."""
        self._file = RotatedFile(path, file_bytes=FILE_BYTES, files=FILES)
        # The first write already checks the total size.
        self._unswept = SWEEP_BYTES

    def append(self, data: bytes) -> None:
        """Append bytes that the extension has written."""
        # Listeners first: `ext logs -f` shows lines even if the disk is full.
        for listener in list(self.listeners):
            listener(data)
        with suppress(OSError):
            self._file.write(data)
        self._unswept += len(data)
        if self._unswept >= SWEEP_BYTES:
            self._unswept = 0
            sweep(self.path.parent)

    def say(self, sentence: str) -> None:
        """Append a line of zot's own; the prefix and the escaping keep an extension from imitating it."""
        self.append(f"[zot] {escaped(sentence)}\n".encode(errors="backslashreplace"))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        self._file.close()


def sweep(directory: Path) -> None:
    """Remove the oldest extension logs in `directory` until all together have at most `TOTAL_BYTES`.

    The current file of an extension may be removed if it is the oldest; its next line creates a new one. Files that cannot
    be removed stay.
    """
    found: list[tuple[float, int, Path]] = []
    for path in directory.glob(_ALL):
        with suppress(OSError):  # removed or rotated by another process
            about = path.lstat()
            found.append((about.st_mtime, about.st_size, path))
    total = 0
    for _, size, path in sorted(found, reverse=True):
        total += size
        if total > TOTAL_BYTES:
            with suppress(OSError):
                path.unlink()
