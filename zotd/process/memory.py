"""Measures the memory of services with all their processes."""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from zotd.process.census import KERNEL


def memory_of_sessions(leaders: Collection[int]) -> dict[int, int]:
    """Return the resident memory in bytes of the processes in the sessions of these leaders, which `start_service` has made.

    Pages that processes share are counted for each. Blocks for 10 us for each process of the user; run it in a thread.
    """
    found = dict.fromkeys(leaders, 0)
    for pid in KERNEL.pids() if leaders else ():
        status = KERNEL.status(pid)
        if status is not None and status.session in found:
            found[status.session] += _resident(pid)
    return found


def _resident(pid: int) -> int:
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if Path("/proc/self/statm").exists():
        return 0  # it has ended meanwhile
    import psutil  # noqa: PLC0415  (37 ms that Linux does not pay)

    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0
