"""Learning that a child has exited, apart from what its descendants do.

`asyncio.subprocess` is not used: its `wait()` returns only when every holder of the pipes has closed them, so one
background grandchild holds it for ever (seen on 3.11 to 3.13), and on 3.11 it starts a thread for each child.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

UNKNOWN_EXIT = 255
"""Stands for an exit code that somebody else collected, or that the kernel dropped because SIGCHLD is ignored."""


class ExitWatch(Protocol):
    """Calls back on the event loop, once, when the child has exited."""

    def reap(self) -> int:
        """Free the pid; call it once, after the call-back. The exit code, or minus the signal that ended the child."""
        ...


def watch_exit(pid: int, on_exit: Callable[[], None]) -> ExitWatch:
    """Watch a child of this process that nobody else waits for."""
    if sys.platform == "linux":
        # Kernels before 5.3 and some sandboxes have no pidfd; without a free descriptor there is none either.
        with suppress(OSError):
            return PidfdWatch(pid, os.pidfd_open(pid), on_exit)
    return ThreadWatch(pid, on_exit)


class PidfdWatch:
    """Linux. The child stays a zombie until `reap`: till then no other process or group can get its number."""

    def __init__(self, pid: int, pidfd: int, on_exit: Callable[[], None]) -> None:
        """Own `pidfd`, and close it."""
        self._pid = pid
        self._pidfd = pidfd
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pidfd, self._exited)

    def reap(self) -> int:
        """See `ExitWatch`; does not block, for the child has exited."""
        return _collect(self._pid)

    def _exited(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._on_exit()


class ThreadWatch:
    """macOS, and Linux without pidfd: a thread that waits.

    It frees the pid as soon as the child exits, so a signal sent to the group just then could in theory reach a
    stranger: every other number of the system would have to be used up in between.
    """

    def __init__(self, pid: int, on_exit: Callable[[], None]) -> None:
        """Start the thread; it ends with the child and never keeps the program alive."""
        self._code = UNKNOWN_EXIT
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._wait, args=(pid, loop, on_exit), name=f"wait-{pid}", daemon=True).start()

    def reap(self) -> int:
        """See `ExitWatch`; the thread has done it."""
        return self._code

    def _wait(self, pid: int, loop: asyncio.AbstractEventLoop, on_exit: Callable[[], None]) -> None:
        self._code = _collect(pid)
        with suppress(RuntimeError):  # the loop was closed first: nobody is left to be told
            loop.call_soon_threadsafe(on_exit)


def _collect(pid: int) -> int:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return UNKNOWN_EXIT
    return os.waitstatus_to_exitcode(status)
