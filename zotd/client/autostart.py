"""Starts the daemon if none is running; concurrent clients start only one (`docs/protocol.md`).

    probe -> lock start.lock -> probe again -> detach `python -m zotd` -> its ready line on a pipe -> connect

A client never ends a daemon, not even one that is slow to start: it may already serve others.
"""

import fcntl
import os
import select
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from zotd import paths
from zotd.client.blocking import open_socket
from zotd.client.environment import shared
from zotd.client.errors import NotRunningError, StartError
from zotd.client.lock_owner import lock_owner_of
from zotd.client.respawn_limit import RespawnLimit, last_line, size

READY_CAP_S = 10.0
"""Timeout for the start of a daemon in seconds; with a thousand sessions it takes 0.6 s."""

LOCK_WAIT_S = READY_CAP_S + 2.0
"""Timeout for the start lock in seconds: the other client's `READY_CAP_S`, and time for its own work."""

LOCK_POLL_S = 0.05
"""Interval between attempts to lock, in seconds; `flock` has no timeout."""

LOG_LIMIT = 1024 * 1024
"""Size at which the start log is rotated before a start; one old file is kept."""

DAEMON = (sys.executable, "-P", "-m", "zotd")
"""The daemon's command; `-P` because its working directory must not be searched for modules."""

_served: set[str] = set()
"""Socket paths at which this process has found or started a daemon."""

_started_again: set[str] = set()
"""Socket paths at which this process has replaced a daemon that was killed."""

_DETACH = """
import os, sys
keep = int(sys.argv[1])
os.setsid()
os.chdir("/")
os.closerange(3, keep)
os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
if os.fork() == 0:
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Program that starts the daemon detached from the client's terminal, directory and open files.

It exits at once, so that init adopts the daemon and no client has to reap it. The client cannot fork by itself, because
it may have threads.
"""


def ensure(path: str, env: Mapping[str, str], command: Sequence[str] = DAEMON) -> socket.socket:
    """Return a connected socket as `blocking.open_socket` does; start a daemon first if none is listening.

    Blocks for up to `LOCK_WAIT_S` + `READY_CAP_S`. Raises `StartError` with the daemon's own reason, and what
    `open_socket` raises, except `NotRunningError`.

    A daemon that ends again and again is not restarted (see `respawn_limit`). Each process replaces a killed daemon
    only once, so that a long-running client does not restart a broken daemon for ever.
    """
    found = _probe(path)
    if found is None:
        _check_place(path)
        with _start_lock(path) as other:
            found = other or _probe(path) or _start_within_limits(path, env, command)
    _served.add(path)
    return found


@contextmanager
def held_up(path: str) -> Iterator[None]:
    """Hold the start lock of `path`: other clients wait for the daemon that is started in this block.

    They wait for `LOCK_WAIT_S` at most, so enter the block only when the old daemon is already stopping. Raises
    `StartError` if another client holds the lock for longer than that.
    """
    _check_place(path)
    lock = _open_start_lock(path)
    try:
        deadline = time.monotonic() + LOCK_WAIT_S
        while not _try_lock(lock):
            _sleep_until(deadline)
        yield
    finally:
        os.close(lock)


def start(path: str, env: Mapping[str, str], command: Sequence[str] = DAEMON) -> socket.socket:
    """Like `ensure`, without the respawn limit and inside `held_up`; for an explicit request of a person."""
    found = _probe(path)
    if found is None:
        RespawnLimit(path, env).forget()
        found = _start_and_note(path, env, command)
    return found


def is_being_started(path: str) -> bool:
    """Return whether a client holds the start lock of `path` now."""
    try:
        lock = os.open(paths.start_lock(path), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(lock)
    finally:
        os.close(lock)


def was_killed(path: str) -> bool:
    """Return whether the last daemon at `path` was killed. A regular stop removes the socket; a kill leaves it behind.

    The lock file beside the socket names its pid.
    """
    return os.path.exists(path) and lock_owner_of(f"{path}.lock") is None


def _check_place(path: str) -> None:
    try:
        paths.check_private_dir(os.path.dirname(path))
    except paths.UnsafePathError as error:
        raise StartError(str(error)) from error


def _probe(path: str) -> socket.socket | None:
    try:
        return open_socket(path)
    except NotRunningError:
        return None


@contextmanager
def _start_lock(path: str) -> Iterator[socket.socket | None]:
    """Hold the start lock; yields a connection instead if a daemon accepts one before the lock is free."""
    lock = _open_start_lock(path)
    try:
        deadline = time.monotonic() + LOCK_WAIT_S
        found = None
        while not _try_lock(lock) and found is None:
            _sleep_until(deadline)
            found = _probe(path)
        yield found
    finally:
        os.close(lock)


def _open_start_lock(path: str) -> int:
    name = paths.start_lock(path)
    try:
        # The lock file is never deleted: a client that waits for the lock of a deleted file would start a second daemon.
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(f"cannot start zotd: {name}: {error.strerror}") from error


def _sleep_until(deadline: float) -> None:
    """Sleep for `LOCK_POLL_S`; raises `StartError` after the deadline."""
    if time.monotonic() > deadline:
        raise StartError(f"another program has been starting zotd for {LOCK_WAIT_S:g} s; try again")
    time.sleep(LOCK_POLL_S)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _start_within_limits(path: str, env: Mapping[str, str], command: Sequence[str]) -> socket.socket:
    killed = path in _served and was_killed(path)
    if killed and path in _started_again:
        raise StartError(
            "zotd was killed again after this program had restarted it once; run `zotctl doctor`, then `zotctl start`"
        )
    RespawnLimit(path, env).check()
    found = _start_and_note(path, env, command)
    if killed:
        _started_again.add(path)
    return found


def _start_and_note(path: str, env: Mapping[str, str], command: Sequence[str]) -> socket.socket:
    starts = RespawnLimit(path, env)
    try:
        found = _start(path, env, command)
    except StartError as error:
        starts.note(str(error).removeprefix("cannot start zotd: ").removesuffix(f" (log: {paths.start_log(env)})"))
        raise
    starts.note()
    return found


def _start(path: str, env: Mapping[str, str], command: Sequence[str]) -> socket.socket:
    log = paths.start_log(env)
    log_fd = _open_log(log)
    try:
        start = size(log)
        word = _spawn_and_listen(command, env, log_fd)
        if word.startswith("ready"):
            return open_socket(path)
        reason = word.removeprefix("error").strip() or last_line(log, start) or "it exited without a message"
    finally:
        os.close(log_fd)
    # A service manager, which does not use the lock, may have started one in the meantime.
    found = _probe(path)
    if found is not None:
        return found
    raise StartError(f"cannot start zotd: {reason} (log: {log})")


def _open_log(log: str) -> int:
    """Open the log for the daemon's stderr, or /dev/null: a missing log must not prevent the start."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        paths.make_private_dir(os.path.dirname(log))
        descriptor = os.open(log, flags, 0o600)
        if os.fstat(descriptor).st_size <= LOG_LIMIT:
            return descriptor
        os.close(descriptor)
        os.replace(log, f"{log}.1")
        return os.open(log, flags, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)


def _spawn_and_listen(command: Sequence[str], env: Mapping[str, str], log_fd: int) -> str:
    """Return the line that the daemon writes once it accepts connections or fails; empty if it exits without one."""
    read_end, write_end = os.pipe()
    try:
        os.set_inheritable(write_end, True)
        _detach([*command, "--autostarted", "--ready-fd", str(write_end)], env, log_fd, write_end)
        os.close(write_end)
        write_end = -1  # our copy is closed: otherwise the pipe would not reach its end when the daemon exits
        return _first_line(read_end)
    except OSError as error:
        raise StartError(f"cannot start zotd: {command[0]}: {error.strerror}") from error
    finally:
        os.close(read_end)
        if write_end >= 0:
            os.close(write_end)


def _detach(command: Sequence[str], env: Mapping[str, str], log_fd: int, keep: int) -> None:
    between = os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", "-c", _DETACH, str(keep), *command],
        shared(env),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log_fd, 1),
            (os.POSIX_SPAWN_DUP2, log_fd, 2),
        ],
    )
    os.waitpid(between, 0)  # it runs for 15 ms and does not wait for the daemon


def _first_line(read_end: int) -> str:
    deadline = time.monotonic() + READY_CAP_S
    said = b""
    while b"\n" not in said:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read_end], [], [], left)[0]:
            return f"error it did not become ready within {READY_CAP_S:g} s"
        chunk = os.read(read_end, 4096)
        if not chunk:
            break
        said += chunk
    return said.partition(b"\n")[0].decode(errors="replace")
