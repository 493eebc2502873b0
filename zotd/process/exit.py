"""Learning that a child has exited, apart from what its descendants do.

`asyncio.subprocess` is not used: its `wait()` returns only when every holder of the pipes has closed them, so one
background grandchild holds it for ever (seen on 3.11 to 3.13), and on 3.11 it starts a thread for each child.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

UNKNOWN_EXIT = 255
"""Stands for an exit code that somebody else collected, or that the kernel dropped because SIGCHLD is ignored."""

PIDFD_SIGNAL_PROCESS_GROUP = 4
"""`linux/pidfd.h`."""

_watched: dict[int, bool] = {}
"""Children that somebody here waits for; whether an orphan may have ended behind one. Of the process, as waiting is."""


class ExitWatch(Protocol):
    """Calls back on the event loop, once, when the child has exited."""

    def signal_group(self, number: int) -> None:
        """Send its group a signal; harmless when nothing is left of it. Until `reap`."""
        ...

    def close(self) -> None:
        """Watch no more, and leave it alone: instead of `reap`."""
        ...

    def reap(self) -> int:
        """Free the pid; call it once, after the call-back. The exit code, or minus the signal that ended the child."""
        ...


def watch_exit(pid: int, on_exit: Callable[[], None]) -> ExitWatch:
    """Watch a child of this process that nobody else waits for."""
    _watched[pid] = False
    if sys.platform == "linux":
        # Kernels before 5.3 and some sandboxes have no pidfd; without a free descriptor there is none either.
        with suppress(OSError):
            return PidfdWatch(pid, os.pidfd_open(pid), on_exit)
    return ThreadWatch(pid, on_exit)


def reap_orphans() -> None:
    """Free the pids of orphans that were handed to us and have ended; for a subreaper, at each SIGCHLD.

    Children that we have started are left to who waits for them: those that are watched here, and those in our own
    session, which an orphan never is, for all that we watch have left it.
    """
    while (pid := _ended_child()) is not None:
        if pid in _watched:
            _watched[pid] = True  # the kernel shows us no other while this one is there
            return
        if os.getsid(pid) == os.getsid(0):
            return  # the same; the next SIGCHLD comes here again
        _collect(pid)


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
        code = _collect(self._pid)
        _forget(self._pid)
        return code

    def signal_group(self, number: int) -> None:
        """See `ExitWatch`."""
        _signal_group(self._pid, number)

    def close(self) -> None:
        """See `ExitWatch`."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        _forget(self._pid)

    def _exited(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._on_exit()


class AdoptedWatch:
    """A process that was started by another: it can be watched, and not waited for.

    Somebody else frees its pid, at any moment after its exit; from then on a number of its group proves nothing. The
    pidfd does: it stands for the group as long as anybody is in it.
    """

    def __init__(self, pid: int, pidfd: int, on_exit: Callable[[], None]) -> None:
        """Watch `pid`, which leads its group; own `pidfd`, and close it. Linux only."""
        self._pid = pid
        self._pidfd = pidfd
        self._on_exit = on_exit
        self._has_exited = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pidfd, self._exited)

    def signal_group(self, number: int) -> None:
        """See `ExitWatch`."""
        try:
            signal.pidfd_send_signal(self._pidfd, number, None, PIDFD_SIGNAL_PROCESS_GROUP)
        except ProcessLookupError:
            return
        except OSError:  # a kernel before 6.9: only while it lives does the number surely stand for its group
            if not self._has_exited:
                _signal_group(self._pid, number)

    def reap(self) -> None:
        """Let go of it; how it has ended, only its parent gets to know."""
        os.close(self._pidfd)

    def close(self) -> None:
        """See `ExitWatch`."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)

    def _exited(self) -> None:
        self._has_exited = True
        self._loop.remove_reader(self._pidfd)
        self._on_exit()


class ThreadWatch:
    """macOS, and Linux without pidfd: a thread that waits.

    It frees the pid as soon as the child exits, so a signal sent to the group just then could in theory reach a
    stranger: every other number of the system would have to be used up in between.
    """

    def __init__(self, pid: int, on_exit: Callable[[], None]) -> None:
        """Start the thread; it ends with the child and never keeps the program alive."""
        self._pid = pid
        self._is_closed = False
        self._code = UNKNOWN_EXIT
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._wait, args=(pid, loop, on_exit), name=f"wait-{pid}", daemon=True).start()

    def reap(self) -> int:
        """See `ExitWatch`; the thread has done it."""
        _forget(self._pid)
        return self._code

    def signal_group(self, number: int) -> None:
        """See `ExitWatch`."""
        _signal_group(self._pid, number)

    def close(self) -> None:
        """See `ExitWatch`; the thread waits on, for nobody."""
        self._is_closed = True
        _forget(self._pid)

    def _wait(self, pid: int, loop: asyncio.AbstractEventLoop, on_exit: Callable[[], None]) -> None:
        self._code = _collect(pid)
        with suppress(RuntimeError):  # the loop was closed first: nobody is left to be told
            if not self._is_closed:
                loop.call_soon_threadsafe(on_exit)


def _signal_group(leader: int, number: int) -> None:
    # macOS answers "not permitted" for a group that has only zombies left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def is_watched(pid: int) -> bool:
    """Whether somebody waits for this child of ours, which we have started then."""
    return pid in _watched


def _forget(pid: int) -> None:
    """Nobody waits for it any more."""
    if _watched.pop(pid, False):
        reap_orphans()


def _ended_child() -> int | None:
    """A child that has ended, and stays a zombie; None: there is none."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if found is None else found.si_pid


def _collect(pid: int) -> int:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return UNKNOWN_EXIT
    return os.waitstatus_to_exitcode(status)
