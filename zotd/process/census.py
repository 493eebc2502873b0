"""Lists processes and identifies them across pid reuse: by default the kernel reuses a pid after 32,768 others."""

import functools
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

MARK = "ZOT_CHILD_TOKEN"
"""The environment variable that a service passes on to all its descendants.

`zotd.client.environment` filters it out by its name: a daemon that an extension's client starts, and the commands of a
session that this client opens, do not belong to the extension. To start a helper that outlives its extension, unset
it: `env -u ZOT_CHILD_TOKEN setsid helper`.
"""

HIDDEN = (FileNotFoundError, ProcessLookupError, PermissionError)
"""Errors that mean the process has ended or belongs to another user. Other errors, such as running out of descriptors,
are raised: a host must not be considered dead because a file cannot be opened."""

EXEC_S = 0.01
"""Pause before an empty environment is read again, in seconds: a process has none while `exec` loads its program."""


class Identity(Struct, frozen=True):
    """Identifies one process, uniquely until the next boot."""

    pid: int
    started: int
    """Start time: clock ticks since boot, or microseconds since the epoch without /proc. Only compare it for equality
    or order."""


class ProcessStatus(Struct, frozen=True):
    """What the kernel reports about a process."""

    started: int
    parent: int
    """0 if there is none, or if it is in another pid namespace."""
    group: int
    session: int
    """Session id (`setsid`): the pid of the session leader."""
    is_alive: bool
    """False for a zombie."""


class ProcessInfo(Struct, frozen=True):
    """A living process of this user."""

    identity: Identity
    group: int
    mark: str
    """Value of `MARK`; empty if it is not set or cannot be read."""


class Kernel(Protocol):
    """Source of process information; a test can replace it."""

    def pids(self) -> Iterable[int]:
        """Yield the pids of all processes of this user."""
        ...

    def status(self, pid: int) -> ProcessStatus | None:
        """Return the status, or None if there is no such process."""
        ...

    def mark(self, pid: int) -> str | None:
        """Return `ProcessInfo.mark`, or None if the environment is empty, as it is during `exec`."""
        ...


class Procfs:
    """Reads /proc on Linux. 8 us a process; psutil takes four times as long, and 37 ms to import."""

    def pids(self) -> Iterable[int]:
        """See `Kernel`."""
        user = os.geteuid()
        with os.scandir("/proc") as entries:
            for entry in entries:
                # Others cannot be signalled, nor their environment be read.
                if entry.name.isdigit() and _owner(entry) == user:
                    yield int(entry.name)

    def status(self, pid: int) -> ProcessStatus | None:
        """Parse fields 3 to 6 and 22 of /proc/PID/stat."""
        try:
            data = _read(f"/proc/{pid}/stat")
        except HIDDEN:
            return None
        fields = data[data.rindex(b")") + 1 :].split()  # the second field, a name in brackets, may hold anything
        parent, group, session = map(int, fields[1:4])
        # The list begins with field 3 of the file, so field 22, the start time, has the index 19.
        return ProcessStatus(int(fields[19]), parent, group, session, is_alive=fields[0] not in b"ZX")

    def mark(self, pid: int) -> str | None:
        """See `Kernel`."""
        try:
            data = _read(f"/proc/{pid}/environ")
        except HIDDEN:
            return ""
        # As during `exec`; see `EXEC_S`.
        if not data:
            return None
        # The NUL in front makes sure that the name is matched from its beginning.
        _, _, rest = (b"\0" + data).partition(f"\0{MARK}=".encode())
        return os.fsdecode(rest.partition(b"\0")[0])


class Portable:
    """Uses psutil, on systems without /proc such as macOS."""

    def pids(self) -> Iterable[int]:
        """See `Kernel`."""
        import psutil  # noqa: PLC0415  (37 ms that Linux does not pay)

        user = os.geteuid()
        for process in psutil.process_iter():
            try:
                if process.uids().effective == user:
                    yield process.pid
            except psutil.Error:
                continue

    def status(self, pid: int) -> ProcessStatus | None:
        """See `Kernel`."""
        import psutil  # noqa: PLC0415

        try:
            process = psutil.Process(pid)
            is_alive = process.status() != psutil.STATUS_ZOMBIE
            started = round(process.create_time() * 1_000_000)
            return ProcessStatus(started, process.ppid(), os.getpgid(pid), os.getsid(pid), is_alive)
        except (psutil.Error, *HIDDEN):
            return None

    def mark(self, pid: int) -> str | None:
        """See `Kernel`."""
        import psutil  # noqa: PLC0415

        try:
            variables = psutil.Process(pid).environ()
        except (psutil.Error, *HIDDEN):
            return ""
        return variables.get(MARK, "") if variables else None


KERNEL: Kernel = Procfs() if sys.platform == "linux" else Portable()


def identify(pid: int, kernel: Kernel = KERNEL) -> Identity | None:
    """Return the identity of the process or zombie that has this pid now, or None if there is none."""
    status = kernel.status(pid)
    return None if status is None else Identity(pid, status.started)


def is_alive(identity: Identity, kernel: Kernel = KERNEL) -> bool:
    """Return whether this process is still running; a zombie is not, nor is another process with its pid."""
    status = kernel.status(identity.pid)
    return status is not None and status.is_alive and status.started == identity.started


def census(kernel: Kernel = KERNEL) -> list[ProcessInfo]:
    """Return all running processes of this user except this one.

    Blocks for 10 us a process, and once for `EXEC_S` if an environment was empty.
    """
    found: list[ProcessInfo] = []
    unsettled: list[tuple[Identity, int]] = []
    for pid in kernel.pids():
        status = kernel.status(pid)
        if status is None or not status.is_alive or pid == os.getpid():
            continue
        identity, mark = Identity(pid, status.started), kernel.mark(pid)
        if mark is None:
            unsettled.append((identity, status.group))
        else:
            found.append(ProcessInfo(identity, status.group, mark))
    if unsettled:
        # Once for all of them together.
        time.sleep(EXEC_S)
    return found + [ProcessInfo(identity, group, kernel.mark(identity.pid) or "") for identity, group in unsettled]


@functools.cache
def world() -> str:
    """Return a name for this boot of the machine and this pid namespace, outside of which an `Identity` is void."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return "here"  # macOS, where the microsecond of the start tells boots apart


def _owner(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat().st_uid
    except HIDDEN:
        return None


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  (three times as fast, and there are many)
        return file.read()
