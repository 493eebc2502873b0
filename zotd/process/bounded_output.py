"""The output of a background command in a file of limited size, which has the newest part of it.

    feed ──> pending bytes ──write_until_end (a thread)──> file ──read (a thread)──> readers, by offset in the whole output
                └── is_behind: the command is paused while the disk is behind

When the file exceeds its limit, it is replaced by one with its newer half. So it is never larger than the limit and the
pending bytes, and an output of any length costs one more write of each byte.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

from zotd.paths import make_private_dir

BEHIND_BYTES = 1024 * 1024
"""Pending bytes at which the command is paused."""

PACE_S = 0.01
"""Pause after each write of a flood, in seconds: at most 100 MB/s then, so that the event loop serves everybody else."""


NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
"""The command may have replaced the file by a link to another one, which must be neither read nor changed."""


def _unheard(_inode: int, _base: int) -> None:
    """Only a reader in another process needs to hear of it."""


class OutputPart(Struct, frozen=True):
    """A part of an output."""

    start: int
    """Offset of its first byte; larger than the one asked for if the file does not have that any more."""
    data: bytes


class BoundedOutput:
    """Writes an output to a file, and reads parts of it. Used on one event loop; `read` may be called on any thread."""

    def __init__(self, path: Path, limit_bytes: int, moved: Callable[[int, int], None] = _unheard) -> None:
        """Use the file `path`, which is made with its directory when there is output.

        Before the file is replaced, `moved` is called on a thread with the inode of its successor, and the offset at which that
        begins in the whole output.
        """
        self.path = path
        self.total = 0
        """Bytes that have come."""
        self.failure = ""
        """Why the rest of the output could not be kept; empty: nothing is lost."""
        self._limit = limit_bytes
        self._moved = moved
        self._base = 0
        """Offset of the first byte in the file."""
        self._size = 0
        self._pending = bytearray()
        self._more = asyncio.Event()
        self._done = 0
        """Bytes that are on disk, or lost."""
        self._step = asyncio.Event()
        """Set, and replaced, when there are more of these."""
        self._has_ended = False
        self._file = threading.Lock()
        """Held while the file is changed or read."""

    @classmethod
    def at_rest(cls, path: Path, total: int) -> Self:
        """Return an output of `total` bytes that is over, as an earlier process has left it; 0: its length is not known. Blocks."""
        found = cls(path, 0)
        try:
            size = path.stat().st_size
        except OSError:
            size = 0
        found.total = max(total, size)
        found._done, found._base = found.total, found.total - size
        return found

    @property
    def is_behind(self) -> bool:
        """Too much output is waiting for the disk."""
        return len(self._pending) > BEHIND_BYTES

    def feed(self, data: bytes) -> None:
        """Add a chunk of output."""
        self.total += len(data)
        self._pending += data
        self._more.set()

    def end(self) -> None:
        """Mark the end of the output."""
        self._has_ended = True
        self._more.set()

    async def write_until_end(self, resume: Callable[[], None]) -> None:
        """Write what comes until the end; `resume` a paused command after each part."""
        while not self._has_ended or self._pending:
            await self._more.wait()
            self._more.clear()
            was_behind, waiting, self._pending = self.is_behind, self._pending, bytearray()
            # A full disk must not fail the command: its output is lost, and `failure` says so.
            if waiting and not self.failure:
                await asyncio.to_thread(self._append, waiting)
            self._done += len(waiting)
            self._step.set()
            self._step = asyncio.Event()
            if was_behind and not self._has_ended:
                await asyncio.sleep(PACE_S)
            resume()

    async def written(self) -> None:
        """Wait until all that has come before this call can be read, or is lost."""
        wanted = self.total
        while self._done < wanted:
            await self._step.wait()

    def read(self, start: int, limit_bytes: int) -> OutputPart:
        """Return at most `limit_bytes` from offset `start` on, or from the first that is kept. Blocks.

        Without a file, or with one that cannot be read, nothing is returned.
        """
        with self._file:
            start = max(start, self._base)
            try:
                with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | NO_LINK), "rb") as file:
                    file.seek(start - self._base)
                    return OutputPart(start, file.read(limit_bytes))
            except OSError:
                return OutputPart(start, b"")

    def _append(self, data: bytearray) -> None:
        with self._file:
            try:
                if not self._size:
                    make_private_dir(str(self.path.parent))
                with os.fdopen(
                    os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINK, 0o600), "wb"
                ) as file:
                    file.write(data)
                self._size += len(data)
                if self._size > self._limit:
                    self._halve()
            except OSError as error:
                self.failure = f"{self.path}: {(error.strerror or '').lower()}"

    def _halve(self) -> None:
        """Replace the file by one with its newer half."""
        kept, draft = self._limit // 2, self.path.with_suffix(".part")
        with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | NO_LINK), "rb") as file:
            file.seek(self._size - kept)
            newest = file.read()
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_LINK, 0o600), "wb") as file:
                file.write(newest)
                inode = os.fstat(file.fileno()).st_ino
            self._moved(inode, self._base + self._size - len(newest))
            draft.replace(self.path)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            raise
        self._base += self._size - len(newest)
        self._size = len(newest)
