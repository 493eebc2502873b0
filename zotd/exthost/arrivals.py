"""Tells when a directory appears that is not there yet, such as the first `tools` of a project.

Linux only, through one inotify descriptor for all. Elsewhere nothing is told, and a reload finds what has come.
"""

import asyncio
import ctypes
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from zotd.exthost.discovery import is_directory

log = logging.getLogger(__name__)

IN_MOVED_TO, IN_CREATE, IN_DELETE_SELF, IN_MOVE_SELF, IN_ONLYDIR = 0x80, 0x100, 0x400, 0x800, 0x01000000
ARRIVALS = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR

QUIET_S = 0.1
"""From the first sign to the look: a tree is copied or unpacked meanwhile, and is then seen once."""

READ_BYTES = 64 * 1024


class Arrivals:
    """Watches for directories; all methods return at once, on the event loop."""

    def __init__(self) -> None:
        self._fd = -1
        self._wanted: dict[Callable[[], None], tuple[Sequence[Path], frozenset[Path]]] = {}
        """Whom to tell of which directories, and which of them were there at the last look."""
        self._look: asyncio.TimerHandle | None = None

    def watch(self, directories: Sequence[Path], changed: Callable[[], None]) -> None:
        """Call `changed` whenever one of these appears or goes."""
        if sys.platform != "linux" or not self._open():
            return
        self._wanted[changed] = directories, self._arm(directories)

    def forget(self, changed: Callable[[], None]) -> None:
        """Tell it no more."""
        self._wanted.pop(changed, None)

    def close(self) -> None:
        """Tell nobody any more."""
        self._wanted.clear()
        if self._look is not None:
            self._look.cancel()
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> bool:
        if self._fd < 0:
            self._fd = ctypes.CDLL(None, use_errno=True).inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
            if self._fd < 0:
                log.warning("new directories are only found by a reload: %s", os.strerror(ctypes.get_errno()))
                return False
            asyncio.get_running_loop().add_reader(self._fd, self._stirred)
        return True

    def _arm(self, directories: Sequence[Path]) -> frozenset[Path]:
        """Watch each of them, or the nearest parent there is; those that are there."""
        library = ctypes.CDLL(None)
        for directory in directories:
            place = next(path for path in (directory, *directory.parents) if is_directory(path))
            library.inotify_add_watch(self._fd, os.fsencode(place), ARRIVALS)
        return frozenset(directory for directory in directories if is_directory(directory))

    def _stirred(self) -> None:
        try:
            os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(QUIET_S, self._compare)

    def _compare(self) -> None:
        self._look = None
        for changed, (directories, before) in list(self._wanted.items()):
            # Armed first and compared then: what comes in between stirs again.
            there = self._arm(directories)
            self._wanted[changed] = directories, there
            if there != before:
                changed()
