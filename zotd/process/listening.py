"""Finds the TCP ports on which groups of processes listen, and what has left them but has their mark (`census.MARK`).

On Linux from /proc: the sockets of a process are links in its `fd`, and the ports of this network namespace are in `net/tcp`.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from zotd.process.census import HIDDEN, census

_LISTENS = "0A"
"""TCP_LISTEN in the column `st`."""


def listening_ports(wanted: Mapping[int, str]) -> dict[int, list[int]]:
    """Return the ports of groups of processes by their leaders, in ascending order. Blocks for some ms.

    `wanted` has the mark of each group by its leader's process id; what has left the group is known by it. Empty: none.

    A process of another user is not found, nor is one in another network namespace.
    """
    found: dict[int, set[int]] = {pid: set() for pid in wanted}
    leaders = {mark: pid for pid, mark in wanted.items() if mark}
    tables: dict[str, int] = {}
    for process in census():
        leader = leaders.get(process.mark, process.group)
        if leader in found:
            with suppress(*HIDDEN, OSError):
                found[leader].update(_ports(process.identity.pid, tables))
    return {pid: sorted(ports) for pid, ports in found.items()}


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
