"""Which process holds a lock file of the daemon's, without locking it.

Whoever took the lock to find out, even for a moment, would be in the way of a daemon that starts. So it is only read: it
says a pid. A pid alone is nobody, for it changes hands: what makes it the holder is that it has the very file open.
"""

import os
import select


def lock_owner_of(lock: str) -> int | None:
    """The living process that holds the lock file `lock`; None: nobody does, or there is no such file.

    Where the system does not show the files of a process (macOS), one that lives is taken at the file's word.
    """
    try:
        with open(lock, encoding="ascii") as file:
            pid = int(file.read())
            held = os.fstat(file.fileno())
    except (OSError, ValueError):  # it is gone, or nobody has written into it
        return None
    return pid if lives(pid) and _has_open(pid, held) else None


def lives(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for does not."""
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
    """How the kernel sees the process: `T` is stopped by a signal, `D` waits for a disk; empty: it does not tell."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _has_open(pid: int, held: os.stat_result) -> bool:
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # there is no /proc, or it does not show this process
        return True
    return any(_is(f"/proc/{pid}/fd/{descriptor}", held) for descriptor in descriptors)


def _is(path: str, held: os.stat_result) -> bool:
    try:
        found = os.stat(path)
    except OSError:  # closed meanwhile
        return False
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)
