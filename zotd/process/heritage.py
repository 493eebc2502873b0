"""Which processes earlier daemons of a home have started: they decide nothing in the daemon that follows either.

`zotd.process.descent` knows the descendants of the daemon that runs now, by their parents. A restart breaks that chain.
Three witnesses outlast it:

| witness | lost when |
|---|---|
| `ZOT_STARTED_BY` in the environment of a process, or of one above it | a program drops it (`env -i`) and all above it have ended |
| the list of processes that lived when a daemon stopped, or that a command left behind | the daemon is killed before it looks, within `PAUSE_S` |
| the session (`setsid`) of a process on that list, or of a command that ran when the daemon was killed | it begins a session of its own |

A program that loses all three becomes a stranger; `docs/security.md` says so. Nothing here needs a service manager.
"""

import asyncio
import hashlib
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from zotd.paths import make_private_dir
from zotd.process import descent
from zotd.process.census import HIDDEN, KERNEL, Identity, Kernel, Status, world
from zotd.process.exit import is_watched

log = logging.getLogger(__name__)

ORIGIN = "ZOT_STARTED_BY"
"""Names the homes whose daemons have started a process, or one above it, separated by blanks."""

MAX_ORIGINS = 16
"""Homes in that variable; a longer line of daemons that start each other forgets its oldest."""

MAX_REMEMBERED = 4096
"""Processes on the list; the oldest are dropped first."""

MAX_STEPS = 256
"""Generations that are looked at, 25 us each."""

PAUSE_S = 1.0
"""Shortest time between two looks for what commands left behind; a look takes 10 us for each process of the user."""

FILE = "run/descendants"

_INIT = 1


class _Entry(msgspec.Struct, frozen=True):
    """A process on the list."""

    world: str
    pid: int
    started: int


def origin_of(home: Path) -> str:
    """What stands for this home in `ORIGIN`."""
    return hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]


class Heritage:
    """What a daemon knows about the processes of its predecessors. Used on one event loop."""

    def __init__(self, home: Path, kernel: Kernel = KERNEL) -> None:
        """Nothing is read before `load`."""
        self._origin = origin_of(home)
        self._path = home / FILE
        self._kernel = kernel
        self._remembered: dict[int, int] = {}
        """Pid to start time, oldest first."""
        self._ended = asyncio.Event()

    def load(self, running: Iterable[Identity] = ()) -> None:
        """Read the list, and add the commands that were `running` when a daemon was killed. Blocks."""
        try:
            entries = msgspec.json.decode(self._path.read_bytes(), type=list[_Entry])
        except FileNotFoundError:
            entries = []
        except (OSError, msgspec.DecodeError) as error:
            log.warning(
                "%s cannot be read; processes of earlier daemons are recognised by other means: %s", FILE, error
            )
            entries = []
        found = [Identity(entry.pid, entry.started) for entry in entries if entry.world == world()]
        sessions = {status.session for pid in self._kernel.pids() if (status := self._kernel.status(pid))}
        for one in (*found, *running):
            status = self._kernel.status(one.pid)
            is_there = status is not None and status.started == one.started
            if is_there or (status is None and one.pid in sessions):
                self._remembered[one.pid] = one.started
        self._save()

    def begin(self, env: Mapping[str, str]) -> None:
        """Mark what this process starts from now on, as what this home's daemon has started. `env`: our own."""
        names = [name for name in env.get(ORIGIN, "").split() if name != self._origin]
        descent.mark_children(ORIGIN, [*names, self._origin][-MAX_ORIGINS:], ended=self._ended.set)

    def has(self, pid: int) -> bool:
        """Whether a daemon of this home has started this process, or one above it. Blocks for 25 us a generation."""
        at = pid
        for _ in range(MAX_STEPS):
            status = self._kernel.status(at)
            if status is None:
                return False
            if self._is_remembered(at, status) or self._origin in _origins(at):
                return True
            at = status.parent
            if at in {0, _INIT, os.getpid()}:
                return False
        return True  # nobody needs a line as long as this one

    async def watch(self) -> None:
        """Keep noting what commands leave behind; run it in a task."""
        while True:
            await self._ended.wait()
            self._ended.clear()
            self._note(await asyncio.to_thread(self._orphans))
            await asyncio.sleep(PAUSE_S)

    def close(self) -> None:
        """Note every living descendant, for the daemon that follows. Blocks: 20 us for each process of the user."""
        descent.mark_children("", (), ended=lambda: None)
        found = []
        for pid in self._kernel.pids():
            status = self._kernel.status(pid)
            if status is not None and status.is_alive and pid != os.getpid() and descent.descent(pid) is not None:
                found.append(Identity(pid, status.started))
        self._note(found)

    # --- inside -----------------------------------------------------------------------------------------------

    def _orphans(self) -> list[Identity]:
        """Children of ours that we have not started: they lost their parents."""
        me = os.getpid()
        us = self._kernel.status(me)
        found = []
        for pid in self._kernel.pids():
            status = self._kernel.status(pid)
            if us is None or status is None or status.parent != me or status.session == us.session:
                continue
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
            draft.replace(self._path)  # not synced: after a power cut none of these processes is there
        except OSError as error:
            log.warning("processes of this daemon cannot be recorded in %s: %s", self._path, error.strerror)

    def _is_remembered(self, pid: int, status: Status) -> bool:
        if self._remembered.get(pid) == status.started:
            return True
        began = self._remembered.get(status.session)
        if began is None or began > status.started:
            return False
        leader = self._kernel.status(status.session)
        return leader is None or leader.started == began


def _origins(pid: int) -> list[str]:
    """The homes in the environment that a process was started with; none when we may not read that."""
    if sys.platform != "linux":
        return _portable_origins(pid)
    try:
        data = Path("/proc", str(pid), "environ").read_bytes()
    except HIDDEN:
        return []
    _, _, rest = (b"\0" + data).partition(f"\0{ORIGIN}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]).split()


def _portable_origins(pid: int) -> list[str]:
    import psutil  # noqa: PLC0415  (37 ms that Linux does not pay)

    with suppress(psutil.Error, *HIDDEN):
        return psutil.Process(pid).environ().get(ORIGIN, "").split()
    return []
