"""Decides in a fork of the template process whether it may become the program of a client, or the client starts it cold.

The program must be what the client would have started: as restricted by the kernel, with the code that is on disk, and
with no more rights than its ancestors give it. A descendant of a daemon may not decide its own approvals
(`zotd.process.descent`), and a fork has lost the parent chain by which the daemon recognises one.
"""

import os
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from zotd.paths import zot_home
from zotd.process.census import HIDDEN, KERNEL
from zotd.process.heritage import MAX_STEPS, Descendants, origins
from zotd.template import thin

RESTRICTIONS = frozenset(
    ["Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
)
"""Lines of /proc/PID/status (proc(5)) that must be those of the template process."""

DAEMONS = frozenset([b"zotd", b"zotd.__main__"])
"""Words in the command line of a daemon."""

_LIMITS = [value for name, value in vars(resource).items() if name.startswith("RLIMIT_")]


class NotForkedError(Exception):
    """The client has to start its program cold; the message says why."""


def check(client: int, environment: Mapping[bytes, bytes]) -> None:
    """Check the process `client`, and take over its resource limits. Takes about 0.5 ms.

    Raises:
        NotForkedError: a fork of this process would be another program than the one that the client wants.
    """
    _check_interpreter(environment)
    try:
        _check_restrictions(client)
        _take_limits(client)
    except HIDDEN as error:
        raise NotForkedError(f"process {client} cannot be examined: {error.strerror}") from error
    except ValueError as error:
        raise NotForkedError(f"the resource limits of process {client} cannot be set: {error}") from error
    home = zot_home({os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()})
    if is_descendant(ancestors(client), Path(home)):
        raise NotForkedError(f"process {client} was started by a daemon")


def _check_interpreter(environment: Mapping[bytes, bytes]) -> None:
    for raw in {**environment, **os.environb}:
        name = os.fsdecode(raw)
        theirs, ours = environment.get(raw, b""), os.environb.get(raw, b"")
        if theirs == ours or name in thin.HARMLESS or not name.startswith(thin.INTERPRETER):
            continue
        if name == "PYTHONPATH" and set(os.fsdecode(theirs).split(os.pathsep)) - {""} <= set(sys.path):
            continue
        raise NotForkedError(f"{name}, which the interpreter reads when it starts, has another value")


def _check_restrictions(client: int) -> None:
    for name in thin.NAMESPACES:
        theirs, ours = Path(f"/proc/{client}/ns/{name}").stat(), Path(f"/proc/self/ns/{name}").stat()
        if (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino):
            raise NotForkedError(f"process {client} is in another {name} namespace")
    theirs_by_name, ours_by_name = _restrictions(str(client)), _restrictions("self")
    for line, value in ours_by_name.items():
        if theirs_by_name.get(line) != value:
            raise NotForkedError(f"{line} of process {client} differs from that of the template process")


def _restrictions(pid: str) -> dict[str, str]:
    lines = (line.partition(":") for line in Path("/proc", pid, "status").read_text(encoding="utf-8").splitlines())
    return {name: value.strip() for name, _, value in lines if name in RESTRICTIONS}


def _take_limits(client: int) -> None:
    for limit in _LIMITS:
        theirs = resource.prlimit(client, limit)
        if theirs != resource.getrlimit(limit):
            resource.setrlimit(limit, theirs)
    nice = os.getpriority(os.PRIO_PROCESS, client)
    if nice != os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    processors = os.sched_getaffinity(client)
    if processors != os.sched_getaffinity(0):
        os.sched_setaffinity(0, processors)


def ancestors(client: int) -> Iterator[int]:
    """Yield the process and those above it, as far as they can be seen; a hidden process is another user's."""
    at = client
    for _ in range(MAX_STEPS):
        status = KERNEL.status(at)
        if status is None or status.parent == 0:
            return
        yield at
        at = status.parent


def is_descendant(pids: Iterable[int], home: Path) -> bool:
    """Return whether any daemon of this user has started the first of these `ancestors`, as far as can be known.

    Also True if one of them has ended meanwhile: what it was cannot be known any more.
    """
    known = Descendants.read(home)
    for number, at in enumerate(pids):
        status = KERNEL.status(at)
        if status is None or known.has(at, status) or origins(at) or (number > 0 and _is_daemon(at)):
            return True
    return False


def _is_daemon(pid: int) -> bool:
    """Return whether the process is a daemon, by the words of its command line, which only it could change."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except HIDDEN:
        return False
    return any(word.rpartition(b"/")[2] in DAEMONS for word in words[:8])
