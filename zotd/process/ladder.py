"""Signals for processes that are not our children, sent to the very ones that are meant."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress

from zotd.process.census import Identity, is_alive

UNSEEN = -1
"""In place of a pidfd: the signal was sent, but the end cannot be watched."""


async def signal_all(processes: Iterable[Identity], number: int, within_s: float) -> None:
    """Send each a signal, and wait until all have ended, at most `within_s`; where there is no pidfd, all of it.

    Whoever has ended before, or belongs to somebody else by now, is passed over. Safe to cancel.
    """
    sent = [fd for process in processes if (fd := _signal(process, number)) is not None]
    if not sent:
        return
    loop = asyncio.get_running_loop()
    waiting = set(sent)
    ended = asyncio.Event()

    def let_go(fd: int) -> None:
        waiting.discard(fd)
        loop.remove_reader(fd)
        os.close(fd)
        if not waiting:
            ended.set()

    for fd in waiting - {UNSEEN}:
        loop.add_reader(fd, let_go, fd)
    try:
        async with asyncio.timeout(within_s):
            await ended.wait()
    except TimeoutError:
        return  # the caller looks again who is left
    finally:
        for fd in waiting - {UNSEEN}:
            let_go(fd)


def _signal(process: Identity, number: int) -> int | None:
    """Send it; the process's pidfd, `UNSEEN`, or None when it is gone or not ours to signal."""
    try:
        if sys.platform == "linux":
            with suppress(OSError):  # an old kernel; a process that is gone is met again below
                return _signal_held(process, number, os.pidfd_open(process.pid))
        if not is_alive(process):
            return None
        os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return None
    return UNSEEN


def _signal_held(process: Identity, number: int, pidfd: int) -> int | None:
    """The same, on a pidfd: from its opening on, the pid may change hands, and the signal still hits nobody else."""
    try:
        if is_alive(process):
            signal.pidfd_send_signal(pidfd, number)
            return pidfd
    except (ProcessLookupError, PermissionError):
        pass
    os.close(pidfd)
    return None
