"""Makes this process the subreaper of its descendants, so that orphans become our children, not init's. Linux only.

Background processes of a service or command then stay in our process tree, which distinguishes them from the user's
own programs. In return, this process has to reap them when they end, as init would.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from zotd.process.exit import reap_orphans

log = logging.getLogger(__name__)

_is_subreaper = False
"""Of the process, as the kernel's flag is."""

PR_SET_CHILD_SUBREAPER = 36
"""`linux/prctl.h`; not inherited by children."""


@contextmanager
def orphans_adopted() -> Iterator[None]:
    """Adopt and reap orphans while the block runs; does nothing if the kernel does not support it.

    Call it in the main thread on the event loop. It affects the whole process, so only our own programs use it: in a
    program that embeds zotd, it could reap children that the program waits for.
    """
    if sys.platform != "linux" or not _set_subreaper(is_one=True):
        yield
        return
    global _is_subreaper  # noqa: PLW0603  (a property of the process)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, reap_orphans)
    _is_subreaper = True
    try:
        yield
    finally:
        _is_subreaper = False
        loop.remove_signal_handler(signal.SIGCHLD)
        _set_subreaper(is_one=False)


def adopts_orphans() -> bool:
    """Return whether `orphans_adopted` is in effect, so that children that nothing waits for are reaped."""
    return _is_subreaper


def _set_subreaper(*, is_one: bool) -> bool:
    import ctypes  # noqa: PLC0415  (6 ms that only a subreaper has to pay)

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    arguments = (ctypes.c_ulong(value) for value in (is_one, 0, 0, 0))  # variadic: an int would leave half undefined
    if prctl(PR_SET_CHILD_SUBREAPER, *arguments) == 0:
        return True
    log.warning("orphans cannot be adopted: prctl: %s", os.strerror(ctypes.get_errno()))
    return False
