"""Finds the process that holds a lock file of the daemon, without locking it.

Trying the lock, even for a moment, could make a starting daemon fail. So the pid is read from the file, and checked
because pids are reused: the process counts as the owner only if it has this file open.
"""

import os
import select


def lock_owner_of(lock: str) -> int | None:
    """Return the pid of the running process that holds `lock`, or None if there is none or no such file.

    Where the open files of a process cannot be listed (macOS), a running process with the pid in the file counts.
    """
    try:
        with open(lock, encoding="ascii") as file:
            pid = int(file.read())
            held = os.fstat(file.fileno())
    except (OSError, ValueError):  # no such file, or no pid in it
        return None
    return pid if lives(pid) and _has_open(pid, held) else None


def lives(pid: int) -> bool:
    """Return whether the process is running; a zombie is not."""
    if not hasattr(os, "pidfd_open"):  # macOS
        try:
            os.kill(pid, 0)
        except OSError as error:
            return not isinstance(error, ProcessLookupError)
        return True
    try:
        process = os.pidfd_open(pid)
    except (OSError, OverflowError):
        return False
    try:
        return not select.select([process], [], [], 0)[0]
    finally:
        os.close(process)


def state_letter(pid: int) -> str:
    """Return the process state from /proc: `T` stopped by a signal, `D` waiting for a disk; empty if unknown."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _has_open(pid: int, held: os.stat_result) -> bool:
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # no /proc, or the process belongs to another user
        return True
    return any(_is(f"/proc/{pid}/fd/{descriptor}", held) for descriptor in descriptors)


def _is(path: str, held: os.stat_result) -> bool:
    try:
        found = os.stat(path)
    except OSError:  # closed in the meantime
        return False
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)
