"""One process that is to outlive us, as the next daemon finds it in the store.

    ext-MARK            our ends of its stdin, stdout and stderr
    ext-MARK-N          a file in memory: which process this is, and what it has told us that still counts; the highest N

MARK is the process's in the ledger. The file's first line is a byte that says whether a line to its stdin may be cut,
and a `Head`; the others are its own lines. The last word is `READY`, without which nobody can go on with it. A file is
only ever added to; what has grown too long is written anew under the next N, and then the old one is removed: so there
is a whole one at every instant.
"""

import fcntl
import os
import re
import signal
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from zotd.process.census import Identity, identify, is_alive, world
from zotd.process.fdstore import Store

PREFIX = "ext-"
"""How all names of ours begin."""

VERSION = 1
"""Of what is in the file: another version's processes are ended and started again."""

WHOLE, CUT = b" ", b"!"
"""Every line to its stdin was written to its end, or maybe not."""

READY = b"ready"
"""The line that says that a process has been ready; no frame, so that no process can write it."""

MIN_BYTES = 256 * 1024
"""A file is not written anew below this length, and then at twice what was left of it."""

MAX_BYTES = 64 * 1024 * 1024
"""Longest file that is read. We write a third of that: twice the 8 MiB that a process may register, a line of 4 MiB."""

_NAME = re.compile(rf"{PREFIX}([0-9a-f]{{16}})(?:-([0-9]{{1,9}}))?")


class Label(msgspec.Struct, frozen=True):
    """What a process is, for whoever would start it otherwise."""

    place: str
    """Whose it is, such as a workspace's."""
    name: str
    fingerprint: str
    """Equal for all that it makes no difference to have started."""


class Head(msgspec.Struct, frozen=True):
    """Which process this is."""

    version: int
    world: str
    mark: str
    pid: int
    started: int
    pipes: tuple[int, int, int]
    """Inodes of its stdin, stdout and stderr: descriptors come back in any order."""
    label: Label

    @property
    def identity(self) -> Identity:
        """The process."""
        return Identity(self.pid, self.started)


@dataclass(slots=True)
class Survivor:
    """A process that a dead daemon has left, with everything that is needed to go on with it; owns its descriptors."""

    head: Head
    pipes: tuple[int, int, int]
    """Our ends of its stdin, stdout and stderr."""
    file: int
    """Goes over to its `FdHandover`."""
    number: int
    """Of the file, as in its name."""
    lines: list[bytes]
    """What it had told, oldest first."""
    is_cut: bool
    """Its stdin may hold the beginning of a line."""
    pidfd: int

    def close(self) -> None:
        """Close what it owns; the process finds its stdin at an end when the store has let go of it, too."""
        for fd in (*self.pipes, self.pidfd):
            os.close(fd)


class FdHandover:
    """What the next daemon will need about one process."""

    def __init__(self, store: Store, label: Label, survivor: Survivor | None = None) -> None:
        """For a process that is about to start, or for a survivor: its file goes on to be written."""
        self.condensed: Callable[[], Sequence[bytes]] = list
        """What still counts of what was recorded; set by who knows."""
        self.survivor = survivor
        self.is_ready = survivor is not None
        self._store = store
        self._label = label
        self._head = survivor.head if survivor else None
        self._file = survivor.file if survivor else -1
        self._number = survivor.number if survivor else 0
        self._is_torn = survivor is not None and survivor.is_cut
        self._size = os.fstat(self._file).st_size if survivor else 0
        self._limit = max(MIN_BYTES, 2 * self._size)

    def begin(self, mark: str, pid: int, pipes: tuple[int, int, int]) -> None:
        """The process runs; `pipes` are our ends of its stdin, stdout and stderr, which stay the caller's."""
        process = identify(pid)
        if process is None:
            return
        inodes = (os.fstat(pipes[0]).st_ino, os.fstat(pipes[1]).st_ino, os.fstat(pipes[2]).st_ino)
        self._head = Head(VERSION, world(), mark, pid, process.started, inodes, self._label)
        if self._store.put(self._name(), pipes):
            self._write_anew([])

    def record(self, line: bytes) -> None:
        """It has said something (without its newline) that the next daemon has to know.

        To be told before anything is done about it: what is `condensed` need not have it yet.
        """
        if self._file >= 0 and self._size + len(line) > self._limit:
            self._write_anew([*self.condensed(), *([READY] if self.is_ready else [])])
            self._limit = max(MIN_BYTES, 2 * self._size)
        if self._file >= 0:
            self._add(line)

    def ready(self) -> None:
        """From here on the next daemon can go on with it."""
        if not self.is_ready and self._file >= 0:
            self.is_ready = True
            self._add(READY)

    def torn(self, is_cut: bool) -> None:
        """A line is being written to its stdin that may stay a piece, or no more."""
        self._is_torn = is_cut
        if self._file >= 0:
            with suppress(OSError):
                os.pwrite(self._file, self._state(), 0)

    def end(self) -> None:
        """It is nobody's any more: it has ended, or is to go."""
        self.is_ready = False
        if self._head is not None:
            self._store.remove(self._name())
            self._store.remove(self._name(self._number))
            self._head = None
        self._close()

    def leave(self) -> None:
        """Leave it to the next daemon: we have nothing to do with it any more."""
        self._head = None
        self._close()

    # --- inside -----------------------------------------------------------------------------------------------

    def _name(self, number: int | None = None) -> str:
        assert self._head is not None
        return f"{PREFIX}{self._head.mark}" + ("" if number is None else f"-{number}")

    def _state(self) -> bytes:
        return CUT if self._is_torn else WHOLE

    def _add(self, line: bytes) -> None:
        written = 0
        with suppress(OSError):
            written = os.write(self._file, line + b"\n")
        self._size += written
        if written <= len(line):  # no memory for all of it
            self.end()

    def _write_anew(self, lines: Sequence[bytes]) -> None:
        old, self._file = self._file, -1
        try:
            self._file = os.memfd_create(self._name(), os.MFD_CLOEXEC)
            content = b"\n".join([self._state() + msgspec.json.encode(self._head), *lines, b""])
            self._size = os.write(self._file, content)
            is_kept = self._size == len(content) and self._store.put(self._name(self._number + 1), [self._file])
        except OSError:
            is_kept = False
        if old >= 0:
            os.close(old)
            self._store.remove(self._name(self._number))
        self._number += 1
        if not is_kept:
            self.end()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


# --- reading ------------------------------------------------------------------------------------------------------


def survivors(found: Mapping[str, Sequence[int]], store: Store) -> list[Survivor]:
    """Who lives of those that a dead daemon has left in the store; everything else there with names of ours is let go.

    `found`: what was `inherited`; of that, the descriptors with names of ours belong to this call. Blocks for 1 ms.
    """
    ours = {name: fds for name, fds in found.items() if name.startswith(PREFIX)}
    by_mark: dict[str, list[str]] = {}
    for name in ours:
        match = _NAME.fullmatch(name)
        by_mark.setdefault(match[1] if match else "", []).append(name)
    living: list[Survivor] = []
    for mark, names in by_mark.items():
        one = _survivor(mark, ours)
        used = {one.file, one.pidfd, *one.pipes} if one else set()
        kept = {f"{PREFIX}{mark}", f"{PREFIX}{mark}-{one.number}"} if one else set()
        for name in names:
            for fd in set(ours[name]) - used:
                os.close(fd)
            if name not in kept:
                store.remove(name)
        living += [one] if one else []
    return living


def _survivor(mark: str, found: Mapping[str, Sequence[int]]) -> Survivor | None:
    numbers = [int(match[2]) for name in found if (match := _NAME.fullmatch(name)) and match[1] == mark and match[2]]
    for number in sorted(numbers, reverse=True):
        for file in found.get(f"{PREFIX}{mark}-{number}", ()):
            read = _read(file)
            if read is None or read[0].mark != mark:
                continue
            head, lines, is_cut = read
            pipes = _pipes(head, found.get(f"{PREFIX}{mark}", ()))
            pidfd = _hold(head.identity) if pipes else None
            if pipes is not None and pidfd is not None:
                return Survivor(head, pipes, file, number, lines, is_cut, pidfd)
    return None


def _read(file: int) -> tuple[Head, list[bytes], bool] | None:
    """The head, what the process has told, and whether a line to it is cut; None: nobody can go on with this."""
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        content = os.pread(file, MAX_BYTES, 0)
        first, *lines = content.split(b"\n")
        torn = lines.pop() if lines else b""  # we were killed while it was written
        head = msgspec.json.decode(first[1:], type=Head)
        os.ftruncate(file, len(content) - len(torn))
        os.lseek(file, 0, os.SEEK_END)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if head.version != VERSION or head.world != world() or READY not in lines:
        return None
    return head, [line for line in lines if line != READY], not first.startswith(WHOLE)


def _pipes(head: Head, fds: Sequence[int]) -> tuple[int, int, int] | None:
    """Its pipes in their order, if all are there."""
    ends: dict[tuple[int, int], int] = {}
    for fd in fds:
        status = os.fstat(fd)
        if stat.S_ISFIFO(status.st_mode):
            ends[status.st_ino, fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE] = fd
    stdin, stdout, stderr = head.pipes
    try:
        return ends[stdin, os.O_WRONLY], ends[stdout, os.O_RDONLY], ends[stderr, os.O_RDONLY]
    except KeyError:
        return None


def _hold(process: Identity) -> int | None:
    """A pidfd of this very process, while it lives."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except (OSError, OverflowError):  # it is gone; or no process has such a number
        return None
    with suppress(OSError):
        signal.pidfd_send_signal(pidfd, 0)
        if is_alive(process):
            return pidfd
    os.close(pidfd)
    return None
