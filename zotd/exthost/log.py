"""An extension's log: what it writes to stderr, and what we have to say about it, in one file that cannot fill the disk."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from zotd.logs import escaped
from zotd.paths import make_private_dir

FILE_BYTES = 5 * 1024 * 1024
"""Size at which a new file is begun (`docs/extensions.md`)."""

FILES = 3
"""Files in all: the current one, `.1` and `.2`."""

PRIVATE = 0o600


class ExtensionLog:
    """`ext-<name>.log`, with mode 0600; opened when something is written.

    Writing is as good as the disk is: a full one loses lines and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listeners: dict[Callable[[bytes], None], None] = {}
        """Told of what is written, from now on; they return at once and never raise."""
        self._fd = -1
        self._size = 0

    def append(self, data: bytes) -> None:
        """Write what the extension wrote."""
        for listener in list(self.listeners):
            listener(data)
        with suppress(OSError):
            if self._fd < 0:
                self._open()
            if self._size + len(data) > FILE_BYTES and self._size:
                self._rotate()
            self._size += os.write(self._fd, data)

    def say(self, sentence: str) -> None:
        """Write a line of ours."""
        self.append(f"[zot] {escaped(sentence)}\n".encode(errors="backslashreplace"))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        make_private_dir(str(self.path.parent))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self.path, flags, PRIVATE)
        os.fchmod(self._fd, PRIVATE)  # it may exist with another mode
        self._size = os.fstat(self._fd).st_size

    def _rotate(self) -> None:
        self.close()
        for number in range(FILES - 1, 0, -1):
            newer = self.path if number == 1 else self._older(number - 1)
            with suppress(FileNotFoundError):
                newer.replace(self._older(number))
        self._open()

    def _older(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
