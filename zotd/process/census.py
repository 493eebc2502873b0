"""Which processes there are, and which process a pid stands for: the kernel gives a pid out again, 32,768 later."""

import functools
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

MARK = "ZOT_CHILD_TOKEN"
"""The variable that a service and its descendants carry, wherever they go.

Its name keeps it out of whatever leaves a process (`zotd.client.environment`): a daemon that an extension's client
starts, and the commands of a session that it opens, are not the extension's. A helper that is meant to outlive its
extension is started without it: `env -u ZOT_CHILD_TOKEN setsid helper`.
"""

HIDDEN = (FileNotFoundError, ProcessLookupError, PermissionError)
"""A process that has ended, or is not ours to look at. Other errors, such as no free descriptor, say nothing about it
and are raised: a host must not be taken for dead because we cannot open a file."""

EXEC_S = 0.01
"""How long a process that shows no environment is given to show one: while `exec` loads a program, it has none yet."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One process; no other has the same before the next boot."""

    pid: int
    started: int
    """Clock ticks since the boot; without /proc, microseconds since the epoch. Only ever compared."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the kernel tells about a pid."""

    started: int
    parent: int
    """0: it has none, or one in another pid namespace."""
    group: int
    session: int
    """As of `setsid`: the pid of the process that began it."""
    is_alive: bool
    """False for a zombie."""


@dataclass(frozen=True, slots=True)
class Process:
    """A living process of this user."""

    identity: Identity
    group: int
    mark: str
    """Its `MARK`; empty: none, or it cannot be read."""


class Kernel(Protocol):
    """Where processes are read from."""

    def pids(self) -> Iterable[int]:
        """Of this user's processes."""
        ...

    def status(self, pid: int) -> Status | None:
        """None: there is no such process."""
        ...

    def mark(self, pid: int) -> str | None:
        """As in `Process`; None: it has no environment at all, maybe only for the moment."""
        ...


class Procfs:
    """Linux. 8 us for a process: psutil takes four times that, and 37 ms to import."""

    def pids(self) -> Iterable[int]:
        """See `Kernel`."""
        user = os.geteuid()
        with os.scandir("/proc") as entries:
            for entry in entries:
                if entry.name.isdigit() and _owner(entry) == user:
                    yield int(entry.name)

    def status(self, pid: int) -> Status | None:
        """See `Kernel`; fields 3 to 6 and 22 of /proc/PID/stat."""
        try:
            data = _read(f"/proc/{pid}/stat")
        except HIDDEN:
            return None
        fields = data[data.rindex(b")") + 1 :].split()  # the second field, a name in brackets, may hold anything
        parent, group, session = map(int, fields[1:4])
        return Status(int(fields[19]), parent, group, session, is_alive=fields[0] not in b"ZX")

    def mark(self, pid: int) -> str | None:
        """See `Kernel`."""
        try:
            data = _read(f"/proc/{pid}/environ")
        except HIDDEN:
            return ""
        if not data:
            return None
        _, _, rest = (b"\0" + data).partition(f"\0{MARK}=".encode())
        return os.fsdecode(rest.partition(b"\0")[0])


class Portable:
    """macOS."""

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

    def status(self, pid: int) -> Status | None:
        """See `Kernel`."""
        import psutil  # noqa: PLC0415

        try:
            process = psutil.Process(pid)
            is_alive = process.status() != psutil.STATUS_ZOMBIE
            started = round(process.create_time() * 1_000_000)
            return Status(started, process.ppid(), os.getpgid(pid), os.getsid(pid), is_alive)
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
    """The process that has this pid now, alive or a zombie; None: nobody has it."""
    status = kernel.status(pid)
    return None if status is None else Identity(pid, status.started)


def is_alive(identity: Identity, kernel: Kernel = KERNEL) -> bool:
    """Whether this very process runs; a zombie does not."""
    status = kernel.status(identity.pid)
    return status is not None and status.is_alive and status.started == identity.started


def census(kernel: Kernel = KERNEL) -> list[Process]:
    """All living processes of this user but this one. Blocks: 10 us for each, and `EXEC_S` where one has no mark yet."""
    found: list[Process] = []
    unsettled: list[tuple[Identity, int]] = []
    for pid in kernel.pids():
        status = kernel.status(pid)
        if status is None or not status.is_alive or pid == os.getpid():
            continue
        identity, mark = Identity(pid, status.started), kernel.mark(pid)
        if mark is None:
            unsettled.append((identity, status.group))
        else:
            found.append(Process(identity, status.group, mark))
    if unsettled:
        time.sleep(EXEC_S)
    return found + [Process(identity, group, kernel.mark(identity.pid) or "") for identity, group in unsettled]


@functools.cache
def world() -> str:
    """Names the machine, its boot and the namespace of pids: an `Identity` means something within one world only."""
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
