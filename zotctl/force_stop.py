"""End a daemon that does not answer: SIGTERM, then SIGKILL, and never to a process that is not it.

A pid in a file says little, because pids are used again. The process must be this user's and have the daemon's lock file
open (`zotd.client.lock_owner`), and it is looked at once more when a descriptor of the process holds its pid.
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
"""How long it may take to end after SIGTERM. One that still works ends its runs in that time."""

KILL_S = 5.0
"""How long the kernel may take after SIGKILL; a process that waits for a broken disk does not end at all."""

POLL_S = 0.05
"""Where the system has no event for the end of a process that is not our child."""


def end(env: Mapping[str, str]) -> str:
    """End the daemon of this environment; the signal that did it, empty when none lives.

    Raises `ClientError` when it may not be ended, `NoAnswerError` when it does not end.
    """
    lock = _lock(env)
    pid = lock_owner_of(lock)
    if pid is None:
        return ""
    process = _opened(pid)
    try:
        # Looked at again: between the two the pid may have become another process's.
        return _end(process, pid) if lock_owner_of(lock) == pid else ""
    finally:
        if process is not None:
            os.close(process)


def _end(process: int | None, pid: int) -> str:
    with output.progress("stopping zotd"):
        for number, limit_s in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, KILL_S)):
            _send(process, pid, number)
            _send(process, pid, signal.SIGCONT)  # a process that was stopped by a signal gets SIGTERM when it goes on
            if _has_ended(process, pid, limit_s):
                return number.name
    raise NoAnswerError(f"zotd (pid {pid}) did not exit after SIGKILL: it is blocked in the kernel, usually on a disk")


def _lock(env: Mapping[str, str]) -> str:
    """The file that the daemon holds: beside its socket, or, when nobody holds that, in the home.

    With `ZOTD_SOCKET` the daemon of the home may be another one.
    """
    beside = f"{paths.socket_path(env)}.lock"
    if env.get("ZOTD_SOCKET") or lock_owner_of(beside) is not None:
        return beside
    return os.path.join(paths.zot_home(env), status_probe.HOME_LOCK)


def _opened(pid: int) -> int | None:
    """A descriptor of the process; None where the system has none."""
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
