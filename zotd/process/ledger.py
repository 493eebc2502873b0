"""Records running children on disk, so that the next daemon can end those of one that was killed.

    $ZOT_HOME/run/children/WORLD.PID.START/        one directory for each host
                               └── MARK            one file for each child; empty until its pid is known

A host is a process that starts children. Files are not synced: they survive the host's death, and after a crash of the
machine no child is left to be found.
"""

import functools
import logging
import os
import secrets
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from zotd.decodable import decodable
from zotd.paths import make_private_dir
from zotd.process.census import Identity, identify, is_alive, world

log = logging.getLogger(__name__)

FORGET_S = 30 * 24 * 3600.0
"""Age at which the directory of another boot, container or machine is removed, in seconds. Whether its host still runs
cannot be determined from here; if it does, it creates the directory again."""


_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class _Note(msgspec.Struct, frozen=True):
    """Content of a child's file."""

    pid: int
    started: int
    what: str
    is_kept: bool = False
    """The next daemon may adopt it."""


class Abandoned(Struct, frozen=True):
    """A child whose host has ended; it may have ended too."""

    path: Path
    leader: Identity | None
    """The child, which leads its group; None if the host was killed before it recorded the pid."""
    is_kept: bool = False
    """The next daemon may adopt it."""

    @property
    def mark(self) -> str:
        """Value of `census.MARK` in the descendants of the child, if it was started with one."""
        return self.path.name


class ChildEntry:
    """The record of one child."""

    def __init__(self, path: Path, fd: int) -> None:
        """Use the file at `path`; take ownership of its descriptor `fd`, or -1 if there is none to write to."""
        self._path = path
        self._fd = fd

    @property
    def mark(self) -> str:
        """Unique marker of the child: 64 random bits in hexadecimal."""
        return self._path.name

    def started(self, pid: int, what: str, *, is_kept: bool = False) -> Identity | None:
        """Record the pid of the child, which leads its own group, and a name (`what`) for people who read the file.

        With `is_kept` the child is meant for the next daemon, and other hosts of this home do not end it. The result is
        the child's identity as the kernel has it; None if it could not be read.
        """
        child = None
        with suppress(OSError):  # out of descriptors; the child can still be found by its marker, the file's name
            child = identify(pid)
        if child is None:
            self._let_go()
        else:
            self.record(child, what, is_kept=is_kept)
        return child

    def record(self, child: Identity, what: str, *, is_kept: bool = False) -> None:
        """Like `started`, for a child whose identity is known."""
        with suppress(OSError):  # a full disk, as above
            if self._fd >= 0:
                note = _Note(child.pid, child.started, os.fsencode(what).decode(errors="replace"), is_kept)
                os.write(self._fd, msgspec.json.encode(note))
        self._let_go()

    def close(self) -> None:
        """Remove the record: the child and its descendants have ended, or may keep running."""
        self._let_go()
        with suppress(OSError):
            self._path.unlink()

    def _let_go(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class ChildLedger:
    """The ledger of one home. Recording a child takes 60 us in all; only `abandoned` blocks for longer.

    `of` returns the same object again; making one reads /proc.
    """

    def __init__(self, directory: Path) -> None:
        """Use `directory`, which all hosts of a home share and which is created when needed."""
        self.directory = directory
        pid = os.getpid()
        me = identify(pid) or Identity(pid, 0)  # without /proc, children are recorded but cannot be found again
        # With the start time, so that a later process with this pid is another host.
        self._own = directory / f"{world()}.{me.pid}.{me.started}"
        self._has_failed = False
        self._is_clock_right: bool | None = None
        """Whether `clock` tells when children start; None: not compared yet."""

    @classmethod
    def of(cls, directory: str) -> "ChildLedger":
        """Return this process's ledger in `directory`."""
        return _ledger_of(directory, os.getpid())

    def started(self, pid: int, what: str, since: int) -> ChildEntry:
        """Record a child that was started after `clock()` was `since`. Fails no more than `open`.

        Does not read /proc/PID/stat if the clock shows the same tick before and after the start: just after the start
        that read waits until the kernel has loaded the program, which blocks the event loop for up to 1 ms.
        """
        now = clock()
        entry = self.open()
        is_sure = now == since and now > 0
        if is_sure and self._is_clock_right:
            entry.record(Identity(pid, now), what)
            return entry
        child = entry.started(pid, what)
        # Compared once, because not every sandbox that has a /proc has the kernel's clock.
        if is_sure and child is not None and self._is_clock_right is None:
            self._is_clock_right = child.started == now
        return entry

    def open(self) -> ChildEntry:
        """Return an entry for a child that is about to start. Never fails: a disk error is logged, once."""
        path = self._own / secrets.token_hex(8)
        try:
            return ChildEntry(path, self._made(path))
        except OSError as error:
            if not self._has_failed:
                log.warning(
                    "children cannot be recorded in %s and will not be ended after a crash: %s", self._own, error
                )
            self._has_failed = True
            return ChildEntry(path, -1)

    def close(self) -> None:
        """Remove the directory of this host unless it still has children."""
        with suppress(OSError):
            self._own.rmdir()

    def abandoned(self, *, spares_kept: bool = False) -> list[Abandoned]:
        """Return the children of hosts of this home that have ended, without the kept ones if `spares_kept`.

        Blocks; run it in a thread.
        """
        found = []
        for host in _inside(self.directory):
            if not host.name.startswith(f"{world()}."):
                _forget_if_old(host)
            elif not _lives(host):
                children = [_read(path) for path in _inside(host)]
                found += [child for child in children if not (spares_kept and child.is_kept)]
                with suppress(OSError):  # not empty, unless the host was killed between two children
                    host.rmdir()
        return found

    def take_over(self, mark: str, child: Identity, what: str) -> None:
        """Move the record of an earlier host's child to this host, so that `abandoned` does not return it."""
        path = self.path(mark)
        with suppress(OSError):  # as in `ChildEntry.started`
            make_private_dir(str(self._own))
            for host in _inside(self.directory):
                with suppress(OSError):  # at most one of these directories has it
                    # Renamed and not copied, so that there is a record at every moment.
                    (host / mark).rename(path)
                    host.rmdir()
            # The earlier daemon may have failed to write it, e.g. on a full disk.
            if not path.exists():
                ChildEntry(path, self._made(path)).started(child.pid, what, is_kept=True)

    def taken_over(self, mark: str) -> ChildEntry:
        """Return the entry of a child after `take_over`."""
        return ChildEntry(self.path(mark), -1)

    def path(self, mark: str) -> Path:
        """Return the path of the record of a child of this host."""
        return self._own / mark

    def forget(self, abandoned: Abandoned) -> None:
        """Remove the record of a child that has ended with all its descendants."""
        with suppress(OSError):
            abandoned.path.unlink()
        with suppress(OSError):  # not empty: the host has other children
            abandoned.path.parent.rmdir()

    def _made(self, path: Path) -> int:
        # Try without creating the directory first: it usually exists, and each child would pay for the check.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            make_private_dir(str(self._own))
            return os.open(path, flags, 0o600)


def clock() -> int:
    """Return the time in the unit of `Identity.started`; 0 where it cannot be told."""
    if sys.platform != "linux":
        return 0
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * _TICKS_PER_S // 1_000_000_000


@functools.lru_cache(maxsize=16)
def _ledger_of(directory: str, pid: int) -> ChildLedger:
    del pid  # a process that was forked is another host
    return ChildLedger(Path(directory))


def _inside(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _lives(host: Path) -> bool:
    pid, _, started = host.name.removeprefix(f"{world()}.").partition(".")
    # An unknown name counts as alive: rather leave its children alone than end those of another program.
    return not (pid.isdigit() and started.isdigit()) or is_alive(Identity(int(pid), int(started)))


def _read(path: Path) -> Abandoned:
    try:
        note = msgspec.json.decode(path.read_bytes(), type=decodable(_Note))
    except (OSError, msgspec.DecodeError):  # the host was killed after `ChildLedger.open`, before `ChildEntry.started`
        return Abandoned(path, None)
    return Abandoned(path, Identity(note.pid, note.started), note.is_kept)


def _forget_if_old(host: Path) -> None:
    with suppress(OSError):
        if time.time() - host.stat().st_mtime > FORGET_S:
            for path in _inside(host):
                path.unlink()
            host.rmdir()
