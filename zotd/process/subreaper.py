"""Orphans of our descendants become our children instead of init's. Linux only.

What a service or a command leaves behind then stays below us, where it can be told apart from the user's own
programs, as long as we live; and we free its pid when it ends, as init would.
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

PR_SET_CHILD_SUBREAPER = 36
"""`linux/prctl.h`; not inherited by children."""


@contextmanager
def orphans_adopted() -> Iterator[None]:
    """Adopt orphans for as long as the block runs; nothing happens where the kernel cannot do it.

    For a program of our own, in its main thread, inside its event loop: the whole process changes. A program that
    embeds us may start children in ways that we must not interfere with.
    """
    if sys.platform != "linux" or not _set_subreaper(is_one=True):
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, reap_orphans)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCHLD)
        _set_subreaper(is_one=False)


def _set_subreaper(*, is_one: bool) -> bool:
    import ctypes  # noqa: PLC0415  (6 ms that only a subreaper has to pay)

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    arguments = (ctypes.c_ulong(value) for value in (is_one, 0, 0, 0))  # variadic: an int would leave half undefined
    if prctl(PR_SET_CHILD_SUBREAPER, *arguments) == 0:
        return True
    log.warning("orphans cannot be adopted: prctl: %s", os.strerror(ctypes.get_errno()))
    return False
