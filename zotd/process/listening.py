"""Finds the TCP ports on which processes listen: of those with a mark (`census.MARK`), whatever they have started.

On Linux from /proc: the sockets of a process are links in its `fd`, and the ports of this network namespace are in `net/tcp`.
"""

import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from zotd.process.census import HIDDEN, census

_LISTENS = "0A"
"""TCP_LISTEN in the column `st`."""


def listening_ports(marks: Collection[str]) -> dict[str, list[int]]:
    """Return the ports by mark, in ascending order. Blocks for some ms.

    A process that has hidden its environment is not found, nor is one of another user, or in another network namespace.
    """
    found: dict[str, set[int]] = {mark: set() for mark in marks}
    tables: dict[str, int] = {}
    for process in census():
        if process.mark in found:
            with suppress(*HIDDEN, OSError):
                found[process.mark].update(_ports(process.identity.pid, tables))
    return {mark: sorted(ports) for mark, ports in found.items()}


def _ports(pid: int, tables: dict[str, int]) -> Iterator[int]:
    """Yield the ports of one process; `tables` keeps the sockets that listen for the next ones: inode and port."""
    if sys.platform != "linux":
        yield from _by_psutil(pid)
        return
    if not tables:
        tables.update((inode, port) for version in ("tcp", "tcp6") for inode, port in _table(version))
    # A port of another network namespace, such as that of a jail, cannot be reached from here.
    if Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink():
        return
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(*HIDDEN):
            target = str(descriptor.readlink())
            if target.startswith("socket:[") and (port := tables.get(target[8:-1])) is not None:
                yield port


def _table(version: str) -> Iterator[tuple[str, int]]:
    """Yield the inode and the port of each socket that listens; none where the kernel has no such table."""
    try:
        lines = Path(f"/proc/self/net/{version}").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        # sl, local_address, rem_address, st, queues, timer, retransmits, uid, timeout, inode
        fields = line.split()
        if fields[3] == _LISTENS:
            yield fields[9], int(fields[1].rpartition(":")[2], 16)


def _by_psutil(pid: int) -> Iterator[int]:
    import psutil  # noqa: PLC0415  (37 ms that Linux does not pay)

    with suppress(psutil.Error):
        for connection in psutil.Process(pid).net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr:
                yield connection.laddr.port
