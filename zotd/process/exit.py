"""Reports the exit of a child, whether or not its descendants still hold its pipes.

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
"""Reported if the exit code is lost: other code collected it, or SIGCHLD is ignored."""

PIDFD_SIGNAL_PROCESS_GROUP = 4
"""Flag of `pidfd_send_signal` from `linux/pidfd.h`, which Python does not define."""

_watched: dict[int, bool] = {}
"""Children with a watch, by pid; True if an orphan may have ended while this one was still a zombie. Module state,
because `waitid` is per process."""


class ExitWatch(Protocol):
    """Calls back once on the event loop when the child has exited."""

    def signal_group(self, number: int) -> None:
        """Send a signal to its group; does nothing if the group is empty. Not allowed after `reap`."""
        ...

    def close(self) -> None:
        """Stop watching without reaping the child; call it instead of `reap`."""
        ...

    def reap(self) -> int:
        """Reap the child and return its exit code, or minus a signal's number. Call it once, after the callback."""
        ...


def watch_exit(pid: int, on_exit: Callable[[], None]) -> ExitWatch:
    """Watch a child of this process; no other code may wait for it."""
    _watched[pid] = False  # before anything can fail, so that `reap_orphans` never takes this child for an orphan
    if sys.platform == "linux":
        # Kernels before 5.3 and some sandboxes have no pidfd; without a free descriptor there is none either.
        with suppress(OSError):
            return PidfdWatch(pid, os.pidfd_open(pid), on_exit)
    return ThreadWatch(pid, on_exit)


def reap_orphans() -> None:
    """Reap orphans that were reparented to us and have ended; a subreaper calls it at each SIGCHLD.

    Leaves alone children that are watched here, and children in our own session, which other code of this process has
    started. An orphan is never in our session, since everything watched here starts a session of its own.
    """
    while (pid := _ended_child()) is not None:
        if pid in _watched:
            _watched[pid] = True  # the kernel reports no other child until this one is reaped
            return
        try:
            session = os.getsid(pid)
        except ProcessLookupError:  # a thread of other code has reaped it since
            continue
        if session == os.getsid(0):
            return  # the same; the next SIGCHLD comes here again
        _collect(pid)


class PidfdWatch:
    """Watches a pidfd (Linux). The child stays a zombie until `reap`, so its pid cannot be reused before that."""

    def __init__(self, pid: int, pidfd: int, on_exit: Callable[[], None]) -> None:
        """Watch the child `pid`; take ownership of `pidfd`."""
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
        """Send a signal to the group; see `ExitWatch.signal_group`."""
        _signal_group(self._pid, number)

    def close(self) -> None:
        """Stop watching; see `ExitWatch.close`."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        _forget(self._pid)

    def _exited(self) -> None:
        # The pidfd of an exited process stays readable: the loop would call this again and again.
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._on_exit()


class AdoptedWatch:
    """Watches a process that is not our child, so that its exit can be observed but not its exit code.

    Its parent can reap it at any time after the exit, and then its group's number can be reused. The pidfd stays
    valid: it refers to the same group as long as the group has a member.
    """

    def __init__(self, pid: int, pidfd: int, on_exit: Callable[[], None]) -> None:
        """Watch the group leader `pid`; take ownership of `pidfd`. Linux only."""
        self._pid = pid
        self._pidfd = pidfd
        self._on_exit = on_exit
        self._has_exited = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pidfd, self._exited)

    def signal_group(self, number: int) -> None:
        """Send a signal to the group; see `ExitWatch.signal_group`."""
        try:
            signal.pidfd_send_signal(self._pidfd, number, None, PIDFD_SIGNAL_PROCESS_GROUP)
        except ProcessLookupError:
            return
        except OSError:  # a kernel before 6.9; the pid certainly refers to the group only while the process lives
            if not self._has_exited:
                _signal_group(self._pid, number)

    def reap(self) -> None:
        """Close the pidfd. Only the parent of the process can get its exit code."""
        os.close(self._pidfd)

    def close(self) -> None:
        """Stop watching; see `ExitWatch.close`."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)

    def _exited(self) -> None:
        self._has_exited = True
        self._loop.remove_reader(self._pidfd)
        self._on_exit()


class ThreadWatch:
    """Waits in a thread, on macOS and on Linux without pidfd.

    The thread reaps the child at once, so a signal that is sent to the group at that moment could in theory reach
    another process. For that, the kernel would have to use up all other pids in between.
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
        """Send a signal to the group; see `ExitWatch.signal_group`."""
        _signal_group(self._pid, number)

    def close(self) -> None:
        """Drop the callback; the thread goes on until the child exits."""
        self._is_closed = True
        _forget(self._pid)

    def _wait(self, pid: int, loop: asyncio.AbstractEventLoop, on_exit: Callable[[], None]) -> None:
        self._code = _collect(pid)
        with suppress(RuntimeError):  # the loop was closed first, so the callback has no use any more
            if not self._is_closed:
                loop.call_soon_threadsafe(on_exit)


def _signal_group(leader: int, number: int) -> None:
    # macOS answers "not permitted" for a group that has only zombies left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def is_watched(pid: int) -> bool:
    """Return whether this child has a watch, which means that we started it and did not inherit it as an orphan."""
    return pid in _watched


def _forget(pid: int) -> None:
    if _watched.pop(pid, False):  # an orphan may have ended meanwhile, hidden behind this zombie
        reap_orphans()


def _ended_child() -> int | None:
    """Return the pid of a zombie child without reaping it, or None."""
    try:
        # WNOWAIT: only look, because the zombie may belong to a watch, which needs its exit code.
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
