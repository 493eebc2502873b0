"""Hands a running process over to the next daemon, through the service manager's descriptor store.

    ext-MARK            our ends of its stdin, stdout and stderr
    ext-MARK-N          a memfd: the identity of the process and its lines that are still valid; the highest N counts

MARK is the marker of the process in the ledger. The first line of the file is one byte, which tells whether a line to
stdin may be incomplete, and a `Head`; the other lines are frames of the process. A process without a `READY` line is
not adopted. Files are append-only: one that has grown too long is written again with the next N before the old one is
removed, so a complete file exists at every moment.
"""

import fcntl
import os
import re
import signal
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from zotd.process.census import Identity, identify, is_alive, world
from zotd.process.fdstore import DescriptorStore

PREFIX = "ext-"
"""Prefix of the names in the store that belong to this module."""

VERSION = 1
"""Version of the file format. Processes in another version's files are ended and started again."""

WHOLE, CUT = b" ", b"!"
"""First byte of a file: all lines to stdin were written completely, or the last one may be incomplete."""

READY = b"ready"
"""The line that marks a process as ready. Not a valid frame, so no process can forge it."""

MIN_BYTES = 256 * 1024
"""A file is first rewritten at this length, and later at twice its length after the previous rewrite."""

MAX_BYTES = 64 * 1024 * 1024
"""Longest file that is read; three times what is written: twice the 8 MiB that a process may register, and one line of
4 MiB."""

_NAME = re.compile(rf"{PREFIX}([0-9a-f]{{16}})(?:-([0-9]{{1,9}}))?")


class Label(msgspec.Struct, frozen=True):
    """Identifies what a process runs, so that the next daemon can match it with what it would start."""

    place: str
    """Scope that owns the process, such as a workspace."""
    name: str
    fingerprint: str
    """Digest of everything that affects how the process behaves; equal for interchangeable processes."""


class Head(msgspec.Struct, frozen=True):
    """Identity of a process and its pipes, as in the first line of its file."""

    version: int
    world: str
    mark: str
    pid: int
    started: int
    pipes: tuple[int, int, int]
    """Inodes of its stdin, stdout and stderr; the store returns descriptors in any order."""
    label: Label

    @property
    def identity(self) -> Identity:
        """Identity of the process, to be compared with the one that has its pid now."""
        return Identity(self.pid, self.started)


class Survivor(Struct):
    """A process that an earlier daemon left running, with all that is needed to adopt it. Owns its descriptors."""

    head: Head
    pipes: tuple[int, int, int]
    """Our ends of its stdin, stdout and stderr."""
    file: int
    """Descriptor of its file; ownership passes to its `FdHandover`."""
    number: int
    """N in the name of the file."""
    lines: list[bytes]
    """Lines recorded by the earlier daemon, oldest first."""
    is_cut: bool
    """Whether the last line in its stdin may be incomplete."""
    pidfd: int

    def close(self) -> None:
        """Close the pipes and the pidfd. The process sees the end of its stdin once the store closes its copy."""
        for fd in (*self.pipes, self.pidfd):
            os.close(fd)


class FdHandover:
    """Keeps the state of one process that the next daemon needs to adopt it."""

    def __init__(
        self,
        store: DescriptorStore,
        label: Label,
        survivor: Survivor | None = None,
        *,
        condensed: Callable[[], Sequence[bytes]] = list,
    ) -> None:
        """Prepare for a process that is about to start, or continue the file of a `survivor`.

        `condensed` returns the recorded lines that are still valid, for a rewrite of the file.
        """
        self._condensed = condensed
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
        """Store the descriptors of a started process; `pipes` are our ends, which the caller still owns."""
        process = identify(pid)
        if process is None:
            return
        inodes = (os.fstat(pipes[0]).st_ino, os.fstat(pipes[1]).st_ino, os.fstat(pipes[2]).st_ino)
        self._head = Head(VERSION, world(), mark, pid, process.started, inodes, self._label)
        # Pipes first: the file promises the next daemon that they are there.
        if self._store.put(self._name(), pipes):
            self._write_anew([])

    def record(self, line: bytes) -> None:
        """Record a line (without its newline) that the next daemon has to know.

        Call it before the line takes effect: `condensed` need not include it yet.
        """
        if self._file >= 0 and self._size + len(line) > self._limit:
            self._write_anew([*self._condensed(), *([READY] if self.is_ready else [])])
            self._limit = max(MIN_BYTES, 2 * self._size)
        if self._file >= 0:
            self._add(line)

    def ready(self) -> None:
        """Allow the next daemon to adopt the process."""
        if not self.is_ready and self._file >= 0:
            self.is_ready = True
            self._add(READY)

    def torn(self, is_cut: bool) -> None:
        """Record whether a line is being written to stdin that could stay incomplete if this daemon is killed."""
        self._is_torn = is_cut
        if self._file >= 0:
            with suppress(OSError):
                # The first byte; `pwrite` does not move the position at which lines are appended.
                os.pwrite(self._file, self._state(), 0)

    def end(self) -> None:
        """Remove the process from the store: it has ended, or must not be adopted."""
        self.is_ready = False
        if self._head is not None:
            self._store.remove(self._name())
            self._store.remove(self._name(self._number))
            self._head = None
        self._close()

    def leave(self) -> None:
        """Leave the process to the next daemon, and close our descriptors."""
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
        if written <= len(line):  # out of memory; an incomplete file must not be adopted
            self.end()

    def _write_anew(self, lines: Sequence[bytes]) -> None:
        old, self._file = self._file, -1
        try:
            self._file = os.memfd_create(self._name(), os.MFD_CLOEXEC)
            content = b"\n".join([self._state() + msgspec.json.encode(self._head), *lines, b""])
            self._size = os.write(self._file, content)
            # The new file goes into the store before the old one is removed, so that a kill here loses nothing.
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


def survivors(found: Mapping[str, Sequence[int]], store: DescriptorStore) -> list[Survivor]:
    """Return the running processes that an earlier daemon left in the store, and remove its other entries.

    Takes ownership of those descriptors in `found` (from `fdstore.inherited`) whose names start with `PREFIX`. Blocks
    for 1 ms.
    """
    # Other names belong to other users of the store, such as the listening socket.
    ours = {name: fds for name, fds in found.items() if name.startswith(PREFIX)}
    by_mark: dict[str, list[str]] = {}
    for name in ours:
        match = _NAME.fullmatch(name)
        by_mark.setdefault(match[1] if match else "", []).append(name)
    living: list[Survivor] = []
    for mark, names in by_mark.items():
        one = _survivor(mark, ours)
        # Everything of this mark that the survivor does not use is left over from an interrupted rewrite, or useless.
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
    # Newest first; an older file is complete as well if the earlier daemon was killed during a rewrite.
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
    """Return the head, the recorded lines, and whether the last line to stdin may be incomplete; None if unusable."""
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        content = os.pread(file, MAX_BYTES, 0)
        first, *lines = content.split(b"\n")
        torn = lines.pop() if lines else b""  # the earlier daemon was killed while writing it
        head = msgspec.json.decode(first[1:], type=Head)
        # Without the incomplete line, or the next one would be appended to it.
        os.ftruncate(file, len(content) - len(torn))
        os.lseek(file, 0, os.SEEK_END)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if head.version != VERSION or head.world != world() or READY not in lines:
        return None
    return head, [line for line in lines if line != READY], not first.startswith(WHOLE)


def _pipes(head: Head, fds: Sequence[int]) -> tuple[int, int, int] | None:
    """Return stdin, stdout and stderr in this order, or None if one is missing."""
    ends: dict[tuple[int, int], int] = {}
    for fd in fds:
        status = os.fstat(fd)
        if stat.S_ISFIFO(status.st_mode):
            # Both ends of a pipe have the same inode; the access mode tells them apart.
            ends[status.st_ino, fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE] = fd
    stdin, stdout, stderr = head.pipes
    try:
        return ends[stdin, os.O_WRONLY], ends[stdout, os.O_RDONLY], ends[stderr, os.O_RDONLY]
    except KeyError:
        return None


def _hold(process: Identity) -> int | None:
    """Open a pidfd of this process; None if it has ended or its pid is reused."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except (OSError, OverflowError):  # it is gone; or no process has such a number
        return None
    with suppress(OSError):
        signal.pidfd_send_signal(pidfd, 0)
        # Checked after the open: from here on the pidfd refers to this process even if its pid is reused.
        if is_alive(process):
            return pidfd
    os.close(pidfd)
    return None
