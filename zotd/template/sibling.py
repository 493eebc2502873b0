"""Forks a process that is a child of this process's parent: a sibling.

`fork` of the C library makes children only, and a second fork, whose parent ends, takes as long as the first: 1.5 ms. So
this makes the library's own system call with one flag more. What the library does around it concerns threads: this is
for processes that have one. Python's part, such as the locks of imports and the seed of `random`, is done as by `os.fork`.
"""

import ctypes
import os
import platform
import signal
from typing import Final

_CLONE_PARENT: Final = 0x00008000
_CLONE_CHILD_CLEARTID: Final = 0x00200000
_CLONE_CHILD_SETTID: Final = 0x01000000
"""`linux/sched.h`."""

_PR_GET_TID_ADDRESS: Final = 40
"""`linux/prctl.h`; needs CONFIG_CHECKPOINT_RESTORE."""

_CALLS: Final = {"x86_64": (56, 3), "aarch64": (220, 4)}
"""By machine: the number of clone(2), and the position of the address at which the kernel stores the thread id. clone3(2)
is the same everywhere, but containers forbid it."""

# Keeps the interpreter's lock, as `os.fork` does: the fork continues as the thread that holds it.
_api = ctypes.PyDLL(None, use_errno=True)
_api.syscall.restype = ctypes.c_long


def fork_sibling() -> int:
    """Return 0 in the fork, and its pid in this process, which must have one thread.

    Raises:
        OSError: no process can be made; on this machine perhaps never.
    """
    if platform.machine() not in _CALLS:
        raise OSError(f"a fork cannot become a sibling on {platform.machine()}")
    number, position = _CALLS[platform.machine()]
    arguments = [_CLONE_PARENT | _CLONE_CHILD_CLEARTID | _CLONE_CHILD_SETTID | signal.SIGCHLD, 0, 0, 0, 0]
    # The C library's own note of the thread's id, of which the kernel has the address since the start of the thread.
    arguments[position] = _thread_id_address()
    words = [ctypes.c_ulong(word) for word in arguments]
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(_api.syscall(ctypes.c_long(number), *words))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    error = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(error, os.strerror(error))
    return pid


def _thread_id_address() -> int:
    address = ctypes.c_ulong()
    zeros = (ctypes.c_ulong(0) for _ in range(3))
    if _api.prctl(ctypes.c_int(_PR_GET_TID_ADDRESS), ctypes.byref(address), *zeros):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return address.value
