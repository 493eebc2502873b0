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


class ExtensionLog:
    """`ext-<name>.log`, with mode 0600; opened when something is written.

    Writing is as good as the disk is: a full one loses lines and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listeners: dict[Callable[[bytes], None], None] = {}
        """Told of what is written, from now on; they return at once and never raise."""
        self._file = RotatedFile(path, file_bytes=FILE_BYTES, files=FILES)

    def append(self, data: bytes) -> None:
        """Write what the extension wrote."""
        for listener in list(self.listeners):
            listener(data)
        with suppress(OSError):
            self._file.write(data)

    def say(self, sentence: str) -> None:
        """Write a line of ours."""
        self.append(f"[zot] {escaped(sentence)}\n".encode(errors="backslashreplace"))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        self._file.close()
