"""Signals processes that are not our children, safely with respect to pid reuse."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress

from zotd.process.census import Identity, is_alive

UNSEEN = -1
"""Stands for a pidfd if there is none: the signal was sent, but the exit cannot be watched."""


async def signal_all(processes: Iterable[Identity], number: int, within_s: float) -> None:
    """Send a signal to each process and wait until all have exited, at most `within_s`.

    Skips processes that have ended, whose pid is reused, or that belong to another user. Without pidfd support it
    always waits for `within_s`. Safe to cancel.
    """
    sent = [fd for process in processes if (fd := _signal(process, number)) is not None]
    if not sent:
        return
    loop = asyncio.get_running_loop()
    # UNSEEN is never removed from the set, so that without pidfds the wait lasts for the whole time.
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
        return  # the caller takes another census
    finally:
        for fd in waiting - {UNSEEN}:
            let_go(fd)


def _signal(process: Identity, number: int) -> int | None:
    """Send the signal; return a pidfd, `UNSEEN`, or None if the process has ended or belongs to another user."""
    try:
        if sys.platform == "linux":
            with suppress(OSError):  # an old kernel; if the process has ended, `is_alive` below tells
                return _signal_held(process, number, os.pidfd_open(process.pid))
        if not is_alive(process):
            return None
        # Without a pidfd the pid could be reused between the check and the signal, which is very unlikely.
        os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return None
    return UNSEEN


def _signal_held(process: Identity, number: int, pidfd: int) -> int | None:
    """Send the signal through the pidfd, which never refers to another process even if the pid is reused."""
    try:
        if is_alive(process):
            signal.pidfd_send_signal(pidfd, number)
            return pidfd
    except (ProcessLookupError, PermissionError):
        pass
    os.close(pidfd)
    return None
