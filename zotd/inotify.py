"""The inotify interface of Linux: what happens in directories, as the kernel reports it.

The kernel queues an event before the system call that causes it returns. So an empty queue means that nothing has
happened, unless the queue has overflowed (`OVERFLOW`).
"""

import ctypes
import fcntl
import os
import struct
import termios
import threading
from collections.abc import Iterator
from typing import NamedTuple

MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x100, 0x200, 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
ONLYDIR, DONT_FOLLOW, ISDIR = 0x01000000, 0x02000000, 0x40000000

READ_BYTES = 64 * 1024

# struct inotify_event: wd, mask, cookie, len; the name of `len` bytes follows, padded with NUL.
_HEAD = struct.Struct("iIII")


class InotifyEvent(NamedTuple):
    """Something that has happened in a watched directory.

    Attributes:
        watch: what `Inotify.add` returned; -1 for `OVERFLOW`.
        mask: the constants above.
        name: in the directory; empty if the event is about the directory itself.
    """

    watch: int
    mask: int
    name: str


class Inotify:
    """A queue of events. Close it after use."""

    def __init__(self) -> None:
        """Raises OSError if the user has too many of them (`fs.inotify.max_user_instances`)."""
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._checked(self._library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK), None)

    def fileno(self) -> int:
        """Return the descriptor, which is readable when events are in the queue; -1 after the end."""
        return self._descriptor

    def add(self, path: str, mask: int) -> int:
        """Watch a path, and return the number of the watch; the same for the same inode.

        Raises OSError: it cannot be read, or the queue is closed; or ENOSPC, the user has too many watches (`fs.inotify.max_user_watches`).
        """
        return self._checked(self._library.inotify_add_watch(self._descriptor, os.fsencode(path), mask), path)

    def remove(self, watch: int) -> None:
        """Stop watching; does nothing if the kernel has removed the watch. Events in the queue stay there."""
        self._library.inotify_rm_watch(self._descriptor, watch)

    def read(self) -> Iterator[InotifyEvent]:
        """Yield the events that are in the queue at the first step, also if more arrive meanwhile."""
        pending = struct.unpack("i", fcntl.ioctl(self._descriptor, termios.FIONREAD, b"\0" * 4))[0]
        while pending > 0:
            data = os.read(self._descriptor, READ_BYTES)
            pending -= len(data)
            yield from _events(data)

    def close(self) -> None:
        """Close it and all watches. Takes up to 15 ms: the kernel waits until no processor reads the list of watches."""
        os.close(self._taken())

    def close_soon(self) -> None:
        """Close it in a thread, which a program that ends does not wait for."""
        threading.Thread(target=os.close, args=(self._taken(),), name="close inotify", daemon=True).start()

    def _taken(self) -> int:
        """Return the descriptor for the last time: its number may then be that of something else."""
        taken, self._descriptor = self._descriptor, -1
        return taken

    def _checked(self, result: int, path: str | None) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return result


def _events(data: bytes) -> Iterator[InotifyEvent]:
    at = 0
    while at + _HEAD.size <= len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield InotifyEvent(watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0")))
        at += length
