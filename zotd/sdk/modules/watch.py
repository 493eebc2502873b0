"""Waits for changes in directories, with inotify if available, else by polling every half second.

An event only triggers a comparison with the earlier state. Editors save by renaming, deleting or writing in pieces, so the
events themselves would be misleading.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

POLL_S = 0.5
"""Polling interval without inotify: half the time in which a saved file should be noticed."""
QUIET_S = 0.05
"""The steps of an editor's save follow each other within this time."""
MAX_WAIT_S = 0.4
"""Longest wait for quiet, so that a directory that changes constantly is still compared."""

IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
IN_DELETE_SELF, IN_MOVE_SELF = 0x400, 0x800
FILES = IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
"""Without IN_CREATE: a new file is still empty."""
ARRIVALS = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF
"""Events for the parent of a directory that does not exist yet."""


def changes(directories: Sequence[Path]) -> Iterator[None]:
    """Yield at once, then after each possible change. Directories may be created and removed."""
    descriptor = _inotify()
    while True:
        # Watch first and compare afterwards: a change in between is seen twice rather than never.
        watched = descriptor is not None and all({_watch(descriptor, directory) for directory in directories})  # noqa: C419  a set, not a generator: each must be watched, even after one that fails
        yield
        if watched and descriptor is not None:
            _wait(descriptor)
        else:
            time.sleep(POLL_S)


def _inotify() -> int | None:
    """Open an inotify descriptor; return None if inotify is not available or exhausted."""
    if sys.platform != "linux":
        return None
    descriptor: int = ctypes.CDLL(None).inotify_init1(os.O_CLOEXEC)
    return descriptor if descriptor >= 0 else None


def _watch(descriptor: int, directory: Path) -> bool:
    """Watch a directory or its nearest existing parent. Watching a directory twice has no effect."""
    library = ctypes.CDLL(None)
    if library.inotify_add_watch(descriptor, os.fsencode(directory), FILES) >= 0:
        return True
    return any(
        library.inotify_add_watch(descriptor, os.fsencode(parent), ARRIVALS) >= 0
        for parent in directory.parents
        if parent.is_dir()
    )


def _wait(descriptor: int) -> None:
    os.read(descriptor, 65536)
    deadline = time.monotonic() + MAX_WAIT_S
    # Collects the events of one save before the next comparison.
    while time.monotonic() < deadline and select.select([descriptor], [], [], QUIET_S)[0]:
        os.read(descriptor, 65536)
