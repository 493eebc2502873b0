"""Lock files that name the process which holds them.

A lock file is never removed: a process that has opened a removed file would not see the lock on the next one.
"""

import fcntl
import os
import time
from pathlib import Path

RELEASE_S = 1.0
"""Longest wait for the lock of a process that is dead. The child that it was about to start when it was killed has
inherited the descriptor, and closes it with `exec`: usually within a millisecond."""

RETRY_S = 0.01

PID_BYTES = 32
"""Maximum length of a pid with its newline."""


class LockedError(Exception):
    """Another process holds the lock."""

    def __init__(self, path: Path, holder: str, *, is_alive: bool) -> None:
        """`holder` is the pid that the file names, or `unknown`."""
        super().__init__(path, holder)
        self.holder = holder
        self.is_alive = is_alive
        """False: the process that locked the file has ended, so one that it has started must hold the lock."""


def acquire(path: Path, *, wait_s: float = RELEASE_S) -> int:
    """Lock the file, which is created with mode 0600 if it is missing, and write this process's pid to it.

    Returns the descriptor; the lock lasts until it is closed, or the process ends. If the file names a process that has
    ended, this blocks for up to `wait_s`.

    Raises:
        LockedError: another process holds the lock.
        OSError: the file cannot be opened; or, with `filename` None, its file system has no locks.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _wait(lock, path, wait_s)
        os.ftruncate(lock, 0)  # only now: without the lock this would erase the pid of the holder
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _wait(lock: int, path: Path, wait_s: float) -> None:
    give_up = time.monotonic() + wait_s
    while not _try_lock(lock):
        holder = os.pread(lock, PID_BYTES, 0).decode(errors="replace").strip()
        is_alive = _is_alive(holder)
        if is_alive or time.monotonic() >= give_up:
            raise LockedError(path, holder or "unknown", is_alive=is_alive)
        time.sleep(RETRY_S)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(holder: str) -> bool:
    """Whether a process has this pid. False for a file without one: its holder is about to write it."""
    try:
        os.kill(int(holder), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True
