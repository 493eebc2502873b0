"""Reports when a directory is created that did not exist, such as the first `tools` directory of a project.

Linux only, with one inotify descriptor for all. Elsewhere nothing is reported, and a reload finds new directories.
Directories are accessed in threads, because one may be on a network mount that does not answer.
"""

import asyncio
import ctypes
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from zotd.exthost.discovery import is_directory
from zotd.process import descriptors

log = logging.getLogger(__name__)

IN_MOVED_TO, IN_CREATE, IN_DELETE_SELF, IN_MOVE_SELF, IN_ONLYDIR = 0x80, 0x100, 0x400, 0x800, 0x01000000
ARRIVALS = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR

QUIET_S = 0.1
"""Delay between the first event and the comparison, so that a tree being copied or unpacked is reported once."""

LOOK_S = 5.0
"""Longest wait for one workspace's directories. After that the others are compared; the next event tries again."""

READ_BYTES = 64 * 1024

Spawn = Callable[[str, Coroutine[object, object, None]], None]
"""Starts a named task; the callee owns it and logs its failure."""


@dataclass(slots=True, eq=False)
class _Wanted:
    directories: Sequence[Path]
    there: frozenset[Path] = frozenset()
    """Directories that existed at the last comparison."""
    watches: set[int] = field(default_factory=set)
    """inotify watch descriptors that were added for it; the kernel shares one between all that watch the same directory."""


class Arrivals:
    """Watches for new and removed directories. Belongs to one event loop."""

    def __init__(self, spawn: Spawn) -> None:
        """Use `spawn` to start the tasks that compare directories."""
        self._spawn = spawn
        self._fd = -1
        self._wanted: dict[Callable[[], None], _Wanted] = {}
        """By callback, which also identifies the subscriber."""
        self._is_looking = False
        self._has_stirred = False
        """An event arrived after the last comparison began."""
        self._is_closed = False

    async def watch(self, directories: Sequence[Path], changed: Callable[[], None]) -> None:
        """Call `changed` whenever one of these is created or removed after this method has returned."""
        if sys.platform == "linux" and not self._is_closed and self._open():
            wanted = self._wanted[changed] = _Wanted(directories)
            await self._arm(wanted)

    def forget(self, changed: Callable[[], None]) -> None:
        """Stop calling `changed`."""
        gone = self._wanted.pop(changed, None)
        if gone is None:
            return
        # inotify gives the same descriptor for the same directory, so one that another workspace still needs must
        # stay.
        used = {watch for wanted in self._wanted.values() for watch in wanted.watches}
        for watch in gone.watches - used:
            ctypes.CDLL(None).inotify_rm_watch(self._fd, watch)

    def close(self) -> None:
        """Close the inotify descriptor; no callback is called any more."""
        self._is_closed = True
        self._wanted.clear()
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            descriptors.close_soon(self._fd)
            self._fd = -1

    def _open(self) -> bool:
        if self._fd < 0:
            self._fd = ctypes.CDLL(None, use_errno=True).inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
            if self._fd < 0:
                log.warning("new directories are only found by a reload: %s", os.strerror(ctypes.get_errno()))
                return False
            asyncio.get_running_loop().add_reader(self._fd, self._stirred)
        return True

    async def _arm(self, wanted: _Wanted) -> bool:
        """Watch each directory or its nearest existing parent. Return True if other directories exist than before."""
        before = wanted.there
        # The thread cannot be cancelled. Its result is dropped, and the comparison is repeated with the next event.
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                watches, wanted.there = await asyncio.to_thread(_look, self._fd, wanted.directories)
                wanted.watches |= watches
        return wanted.there != before

    def _stirred(self) -> None:
        # The events themselves are not used: only a comparison tells which of the wanted directories exist now.
        with suppress(BlockingIOError):
            os.read(self._fd, READ_BYTES)
        self._has_stirred = True
        if not self._is_looking:
            self._is_looking = True
            self._spawn("look for new directories", self._compare())

    async def _compare(self) -> None:
        try:
            # Loops because events may arrive while the threads compare; a second task would compare the same again.
            while self._has_stirred:
                await asyncio.sleep(QUIET_S)
                self._has_stirred = False
                await self._look_at_all()
        finally:
            self._is_looking = False

    async def _look_at_all(self) -> None:
        for changed, wanted in list(self._wanted.items()):
            # `forget` may have been called while the thread compared.
            if await self._arm(wanted) and changed in self._wanted:
                changed()


def _look(fd: int, directories: Sequence[Path]) -> tuple[set[int], frozenset[Path]]:
    """Add watches; return their descriptors and the directories that exist. Blocks."""
    library = ctypes.CDLL(None)
    places = {next(path for path in (one, *one.parents) if is_directory(path)) for one in directories}
    # Watch first and compare afterwards: a directory created in between causes another event.
    watches = {library.inotify_add_watch(fd, os.fsencode(place), ARRIVALS) for place in places}
    return watches - {-1}, frozenset(one for one in directories if is_directory(one))
