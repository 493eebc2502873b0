"""Waiting for changes in directories: inotify where there is one, else a look every half second.

An event only says *look again*: what has changed is found by comparing what is there with what was, so that no order
of events (editors save by renaming, deleting, writing in pieces) can mislead.
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
"""Between two looks where there is no inotify; half of what a save may take to be seen."""
QUIET_S = 0.05
"""An editor's last step follows the one before within this time."""
MAX_WAIT_S = 0.4
"""For quiet: a directory that changes all the time is looked at in between."""

IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
IN_DELETE_SELF, IN_MOVE_SELF = 0x400, 0x800
FILES = IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
"""Not IN_CREATE: a file that has just been created is empty still."""
ARRIVALS = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF
"""For the parent of a directory that does not exist yet."""


def changes(directories: Sequence[Path]) -> Iterator[None]:
    """Yields at once, then whenever something may have changed; directories may come and go."""
    descriptor = _inotify()
    while True:
        # Watch first and look afterwards: a change in between is then seen twice rather than never.
        watched = descriptor is not None and all({_watch(descriptor, directory) for directory in directories})  # noqa: C419  each must be watched, also after one that cannot be
        yield
        if watched and descriptor is not None:
            _wait(descriptor)
        else:
            time.sleep(POLL_S)


def _inotify() -> int | None:
    """A descriptor that reports changes; None where the system has no such thing, or none left to give."""
    if sys.platform != "linux":
        return None
    descriptor: int = ctypes.CDLL(None).inotify_init1(os.O_CLOEXEC)
    return descriptor if descriptor >= 0 else None


def _watch(descriptor: int, directory: Path) -> bool:
    """Watch a directory, or its nearest parent that exists; watching again what is watched changes nothing."""
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
    while time.monotonic() < deadline and select.select([descriptor], [], [], QUIET_S)[0]:
        os.read(descriptor, 65536)
