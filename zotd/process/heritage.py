"""Recognises processes that earlier daemons of this home started, so that a restart gives them no additional rights.

`zotd.process.descent` follows the parent chain, which ends at the daemon that runs now. Three signs outlast a restart:

| sign | lost when |
|---|---|
| `ZOT_STARTED_BY` in the environment of a process, or of one above it | a program drops it (`env -i`) and all above it have ended |
| the list of processes that lived when a daemon stopped, or that a command left behind | the daemon is killed before it looks, within `PAUSE_S` |
| the session (`setsid`) of a process on that list, or of a command that ran when the daemon was killed | it begins a session of its own |

A program that loses all three is treated as a client that a person has started (see `docs/security.md`). No service
manager is needed.
"""

import asyncio
import hashlib
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from zotd.decodable import decodable
from zotd.paths import make_private_dir
from zotd.process import descent
from zotd.process.census import HIDDEN, KERNEL, Identity, Kernel, ProcessStatus, world
from zotd.process.exit import is_watched

log = logging.getLogger(__name__)

ORIGIN = "ZOT_STARTED_BY"
"""Variable with the digests, separated by spaces, of the homes whose daemons started a process or its ancestors."""

MAX_ORIGINS = 16
"""Maximum number of homes in that variable; the oldest are dropped when daemons start daemons more deeply."""

MAX_REMEMBERED = 4096
"""Maximum length of the list; the oldest processes are dropped first."""

MAX_STEPS = 256
"""Generations that are followed, at 25 us each."""

PAUSE_S = 1.0
"""Pause between two scans for orphans of commands, in seconds; a scan takes 10 us for each process of the user."""

FILE = "run/descendants"

_INIT = 1


class _Entry(msgspec.Struct, frozen=True):
    """A process on the list."""

    world: str
    pid: int
    started: int


def origin_of(home: Path) -> str:
    """Return the digest of this home that `ORIGIN` contains."""
    return hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]


class Descendants:
    """The processes on the stored list of a home, and the members of their sessions."""

    def __init__(self, started: dict[int, int], kernel: Kernel = KERNEL) -> None:
        """Start with start times by pid, oldest first; the caller may add more."""
        self._started = started
        self._kernel = kernel

    @classmethod
    def read(cls, home: Path) -> Self:
        """Return the list as stored; empty if there is none or if it is not readable. Blocks."""
        return cls({one.pid: one.started for one in _stored(home / FILE)})

    def has(self, pid: int, status: ProcessStatus) -> bool:
        """Return whether the process with this status is on the list, or in the session of one that is."""
        if self._started.get(pid) == status.started:
            return True
        # A member of a remembered session, unless another process has the pid of its leader by now.
        began = self._started.get(status.session)
        if began is None or began > status.started:
            return False
        leader = self._kernel.status(status.session)
        return leader is None or leader.started == began


class Heritage:
    """Knows the processes that earlier daemons of this home started. Used on one event loop."""

    def __init__(self, home: Path, kernel: Kernel = KERNEL) -> None:
        """Start with an empty list; `load` reads the stored one."""
        self._origin = origin_of(home)
        self._path = home / FILE
        self._kernel = kernel
        self._remembered: dict[int, int] = {}
        """Pid to start time, oldest first."""
        self._descendants = Descendants(self._remembered, kernel)
        self._ended = asyncio.Event()

    def load(self, running: Iterable[Identity] = ()) -> None:
        """Read the list, and add the commands that were `running` when a daemon was killed. Blocks."""
        found = _stored(self._path)
        sessions = {status.session for pid in self._kernel.pids() if (status := self._kernel.status(pid))}
        for one in (*found, *running):
            status = self._kernel.status(one.pid)
            is_there = status is not None and status.started == one.started
            # A leader that has ended counts as long as its session has members: until then its pid is not reused.
            if is_there or (status is None and one.pid in sessions):
                self._remembered[one.pid] = one.started
        self._save()

    def begin(self, env: Mapping[str, str]) -> None:
        """Add this home to `ORIGIN` of all children started from now on. `env` is the environment of this process."""
        # This home last, because the oldest names are dropped first.
        names = [name for name in env.get(ORIGIN, "").split() if name != self._origin]
        descent.mark_children(ORIGIN, [*names, self._origin][-MAX_ORIGINS:], ended=self._ended.set)

    def has(self, pid: int) -> bool:
        """Return whether a daemon of this home started this process or an ancestor. Blocks for 25 us a generation."""
        at = pid
        for _ in range(MAX_STEPS):
            status = self._kernel.status(at)
            if status is None:
                return False
            if self._descendants.has(at, status) or self._origin in origins(at):
                return True
            at = status.parent
            # The top of the process tree, or this daemon, whose own children are found by `descent`.
            if at in {0, _INIT, os.getpid()}:
                return False
        return True  # when in doubt, grant fewer rights: a chain this long is no ordinary program

    async def watch(self) -> None:
        """Add orphans of commands to the list as they appear. Runs until cancelled."""
        while True:
            await self._ended.wait()
            self._ended.clear()
            self._note(await asyncio.to_thread(self._orphans))
            await asyncio.sleep(PAUSE_S)

    def close(self) -> None:
        """Store all running descendants for the next daemon. Blocks for 20 us for each process of the user."""
        descent.mark_children("", (), ended=lambda: None)
        found = []
        for pid in self._kernel.pids():
            status = self._kernel.status(pid)
            if status is not None and status.is_alive and pid != os.getpid() and descent.descent(pid) is not None:
                found.append(Identity(pid, status.started))
        self._note(found)

    # --- inside -----------------------------------------------------------------------------------------------

    def _orphans(self) -> list[Identity]:
        """Return the children that were reparented to us."""
        me = os.getpid()
        us = self._kernel.status(me)
        found = []
        for pid in self._kernel.pids():
            status = self._kernel.status(pid)
            # Children in our own session were started by other code of this process, not by `spawn`.
            if us is None or status is None or status.parent != me or status.session == us.session:
                continue
            # A watched child is still under our control; it is remembered when the daemon stops.
            if status.is_alive and not is_watched(pid):
                found.append(Identity(pid, status.started))
        return found

    def _note(self, found: Iterable[Identity]) -> None:
        new = {one.pid: one.started for one in found if self._remembered.get(one.pid) != one.started}
        if new:
            self._remembered.update(new)
            self._save()

    def _save(self) -> None:
        for pid in list(self._remembered)[:-MAX_REMEMBERED]:
            del self._remembered[pid]
        entries = [_Entry(world(), pid, started) for pid, started in self._remembered.items()]
        draft = self._path.with_name(f".descendants.{os.getpid()}")
        try:
            make_private_dir(str(self._path.parent))
            draft.write_bytes(msgspec.json.encode(entries))
            draft.replace(self._path)  # not synced: after a power failure none of these processes exists
        except OSError as error:
            log.warning("processes of this daemon cannot be recorded in %s: %s", self._path, error.strerror)


def _stored(path: Path) -> list[Identity]:
    try:
        entries = msgspec.json.decode(path.read_bytes(), type=decodable(list[_Entry]))
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        log.warning("%s cannot be read; processes of earlier daemons are recognised by other means: %s", FILE, error)
        return []
    return [Identity(entry.pid, entry.started) for entry in entries if entry.world == world()]


def origins(pid: int) -> list[str]:
    """Return the values of `ORIGIN` in the environment with which a process was started; empty if it is not readable."""
    if sys.platform != "linux":
        return _portableorigins(pid)
    try:
        data = Path("/proc", str(pid), "environ").read_bytes()
    except HIDDEN:
        return []
    _, _, rest = (b"\0" + data).partition(f"\0{ORIGIN}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]).split()


def _portableorigins(pid: int) -> list[str]:
    import psutil  # noqa: PLC0415  (37 ms that Linux does not pay)

    with suppress(psutil.Error, *HIDDEN):
        return psutil.Process(pid).environ().get(ORIGIN, "").split()
    return []
