"""Makes the kernel show a fork as the program that it has become: /proc/PID/cmdline, /proc/PID/environ, its name.

zotd finds what an extension has left behind by a variable in /proc/PID/environ (`zotd.process.census`), where a fork would
otherwise show the variables of the template process. `ctypes` is imported by the template process, not by its forks.
"""

import ctypes
import mmap
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_MM = 35
_PR_SET_MM_MAP = 14
"""`linux/prctl.h`. Unlike the other subcommands of PR_SET_MM, PR_SET_MM_MAP needs no capability."""

_MAP = struct.Struct("11QQIi")
"""`struct prctl_mm_map`: code, data, break, stack, arguments, environment, auxiliary vector, executable."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.sbrk.restype = ctypes.c_void_p
_STATS = (26, 27, 45, 46, 47, 28)
"""Fields of /proc/PID/stat (proc(5)): code, data, start of the break, stack. A fork has those of its parent."""


def _layout() -> list[int]:
    own = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    return [
        int(own[number - 3]) for number in _STATS
    ]  # proc(5) numbers them from 1, and this list begins with the third


class ShownProcess:
    """What /proc/PID/cmdline and /proc/PID/environ are to show. It is kept as long as the process lives."""

    def __init__(self, arguments: Iterable[bytes], variables: Iterable[bytes]) -> None:
        """Copy them into memory of their own."""
        first, second = (b"".join(one + b"\0" for one in part) for part in (arguments, variables))
        self._memory = mmap.mmap(-1, len(first) + len(second) + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._memory.write(first + second)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._ends = begin, begin + len(first), begin + len(first), begin + len(first) + len(second)

    def take_effect(self) -> None:
        """Have the kernel show it for this process.

        Raises:
            OSError: the kernel was built without CONFIG_CHECKPOINT_RESTORE.
        """
        *parts, stack = _LAYOUT
        packed = _MAP.pack(*parts, _libc.sbrk(0), stack, *self._ends, 0, 0, -1)
        _prctl(_PR_SET_MM, ctypes.c_ulong(_PR_SET_MM_MAP), ctypes.c_char_p(packed), ctypes.c_ulong(len(packed)))
        _in_effect.append(self)


_LAYOUT = _layout()
_in_effect: list[ShownProcess] = []
"""So that their memory stays."""


def rename(name: str) -> None:
    """Set the name that `ps` and `top` show; the kernel keeps 15 bytes."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(os.fsencode(name)))


def end_with_parent(number: int) -> None:
    """Have the kernel send this signal to this process when the thread that is its parent ends. Raises OSError."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number))


def _prctl(option: int, *arguments: object) -> None:
    padded = (
        *arguments,
        *(ctypes.c_ulong(0) for _ in range(4 - len(arguments))),
    )  # variadic: an int leaves half undefined
    if _libc.prctl(option, *padded):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
