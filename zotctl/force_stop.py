"""Kills a daemon that does not answer: SIGTERM, then SIGKILL.

Pids are reused, so a stored pid is not enough. The process must belong to this user and hold the daemon's lock file
(`zotd.client.lock_owner`); this is checked again after a pidfd has pinned the pid.
"""

import os
import select
import signal
import time
from collections.abc import Mapping

from zotctl import output, status_probe
from zotd import paths
from zotd.client.errors import ClientError, NoAnswerError
from zotd.client.lock_owner import lives, lock_owner_of

TERM_S = 5.0
"""Seconds between SIGTERM and SIGKILL; a working daemon aborts its runs in that time."""

KILL_S = 5.0
"""Seconds to wait after SIGKILL; a process blocked on a broken disk does not end at all."""

POLL_S = 0.05
"""Seconds between checks where the system has no pidfd."""


def end(env: Mapping[str, str]) -> str:
    """Kill the daemon of this environment; return the name of the signal that ended it, or "" if none runs.

    Raises:
        ClientError: the process belongs to another user.
        NoAnswerError: the process did not end.
    """
    lock = _lock(env)
    pid = lock_owner_of(lock)
    if pid is None:
        return ""
    process = _opened(pid)
    try:
        # Checked again: the pid may have been reused before the pidfd was opened.
        return _end(process, pid) if lock_owner_of(lock) == pid else ""
    finally:
        if process is not None:
            os.close(process)


def _end(process: int | None, pid: int) -> str:
    with output.progress("stopping zotd"):
        for number, limit_s in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, KILL_S)):
            _send(process, pid, number)
            _send(process, pid, signal.SIGCONT)  # a stopped process handles SIGTERM only after it resumes
            if _has_ended(process, pid, limit_s):
                return number.name
    raise NoAnswerError(f"zotd (pid {pid}) did not exit after SIGKILL: it is blocked in the kernel, usually on a disk")


def _lock(env: Mapping[str, str]) -> str:
    """Return the daemon's lock file: next to its socket, or if no process holds that, in the home.

    With `ZOTD_SOCKET` the lock of the home is ignored: a different daemon may hold it.
    """
    beside = f"{paths.socket_path(env)}.lock"
    if env.get("ZOTD_SOCKET") or lock_owner_of(beside) is not None:
        return beside
    return os.path.join(paths.zot_home(env), status_probe.HOME_LOCK)


def _opened(pid: int) -> int | None:
    """Return a pidfd; None where the system has none."""
    if not hasattr(os, "pidfd_open"):  # macOS
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _send(process: int | None, pid: int, number: signal.Signals) -> None:
    try:
        if process is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(process, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise ClientError(f"zotd (pid {pid}) belongs to another user and cannot be stopped") from error


def _has_ended(process: int | None, pid: int, limit_s: float) -> bool:
    if process is not None:
        return bool(select.select([process], [], [], limit_s)[0])
    deadline = time.monotonic() + limit_s
    while not (ended := not lives(pid)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return ended
