"""Whether a process descends from this one, and for whom the first of its line was started.

    the process ──> its parent ──> … ──> a child of ours ──> us        `belongs` has told for whom that child runs

The kernel's parents are the only witness: variables can be dropped, groups and sessions be left. With orphans adopted
(`process.subreaper`), a process that loses its parent becomes our child, and nobody's; without (macOS), a stranger.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zotd.process.census import KERNEL, Identity, Kernel, Status

OUTSIDE = 0
"""What the kernel gives as the pid of a process outside of our pid namespace, where no descendant of ours can be."""

MAX_STEPS = 256
"""Generations that are looked at, 2 ms in all: a chain of shells may be as long as its author likes. Login, terminal,
shell and program are ten."""


MAX_INHERITED = 64
"""Words of a marked child's variable that are kept of what it would inherit anyhow."""


@dataclass(frozen=True, slots=True)
class Descent:
    """A process descends from this one."""

    owners: Collection[str]
    """For whom the child of ours was started that it descends from. Empty: nobody can tell, for its line is broken."""


_UNKNOWN = Descent(())

_owners: dict[int, Collection[str]] = {}
"""By the pid of our child, which is nobody else's until we have reaped it; and of what was adopted."""

_unit = ""
"""Our cgroup, if all that is in it is ours; as /proc tells it."""

_adopted: dict[int, int] = {}
"""When each adopted process was started: its pid is somebody else's as soon as its parent has reaped it."""


_mark: tuple[str, str] = ("", "")
"""A variable that all our children get, and its value."""

_on_end: Callable[[], None] = lambda: None  # noqa: E731  (until somebody wants to know)
"""Told of each child that was reaped."""


def mark_children(name: str, values: Sequence[str], *, ended: Callable[[], None]) -> None:
    """Give all children that we start from now on a variable; an empty name stops that.

    `ended` is called whenever one of them was reaped.
    """
    global _mark, _on_end
    _mark, _on_end = (name, " ".join(values)), ended


def marked(env: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child, with the variable of `mark_children`; what stands there already is kept."""
    name, value = _mark
    if not name:
        return dict(env)
    values = dict.fromkeys([*env.get(name, "").split()[:MAX_INHERITED], *value.split()])
    return {**env, name: " ".join(values)}


def belongs(pid: int, owners: Collection[str]) -> None:
    """Our child `pid` runs for these, until it is reaped.

    To be said before anything else can happen on the event loop. The collection is kept, and may change meanwhile.
    """
    _owners[pid] = owners


def adopted(process: Identity, owners: Collection[str]) -> None:
    """A process that an earlier daemon has started runs for these, and so does its whole session, until `forget`.

    What has left that session and lost its parents is handed to who started us, and not to us: see `in_unit`.
    """
    _owners[process.pid] = owners
    _adopted[process.pid] = process.started


def in_unit(unit: str) -> None:
    """We run as this unit of systemd: whatever else is in its cgroup descends from us, or from who ran as it before.

    So also an orphan of what was `adopted` is known, which is not handed to us. Nothing changes where our own cgroup is
    another one, such as that of a terminal.
    """
    global _unit  # noqa: PLW0603  (of the process, as a cgroup is)
    own = _cgroup("self")
    _unit = own if unit and own.endswith(f"/{unit}\n") else ""


def forget(pid: int) -> None:
    """Our child was reaped: for whoever reaps. Harmless for one that belongs to nobody."""
    _owners.pop(pid, None)
    _adopted.pop(pid, None)
    _on_end()


def descent(pid: int, kernel: Kernel = KERNEL) -> Descent | None:
    """How the process that has this pid descends from us; None: not at all. Blocks for 8 us a generation.

    We are no descendant of our own, nor is a child that has stayed in our session: what `spawn` and `start_service`
    start leads another one, and no process can come back. A process that has ended counts as a descendant of unknown
    line. Without /proc nobody does.
    """
    found = _line(pid, kernel)
    if found is None and _unit and pid not in {OUTSIDE, os.getpid()} and _cgroup(str(pid)) == _unit:
        return _UNKNOWN
    return found


def _line(pid: int, kernel: Kernel) -> Descent | None:
    me = os.getpid()
    us, here = kernel.status(me), kernel.status(pid)
    if pid in {OUTSIDE, me} or us is None:
        return None
    at = pid
    for _ in range(MAX_STEPS):
        if here is None:
            return _UNKNOWN
        if _is_adopted(here, kernel):
            return Descent(_owners[here.session])
        # Parents are older than their children, so that most strangers are known by their shell, or by themselves.
        if here.started < us.started or here.session == us.session:
            return None
        if here.parent == me:
            return Descent(_owners.get(at, ()))
        above = kernel.status(here.parent)
        if above is None or above.started > here.started:
            # Has the parent ended in between, and maybe somebody else got its pid? Then there is another one now.
            again = kernel.status(at)
            if again is None or again.parent != here.parent:
                at, here = pid, kernel.status(pid)
                continue
            if above is None:
                return None  # it lives, and is hidden from us: somebody else's
        at, here = here.parent, above
    return _UNKNOWN


def _is_adopted(here: Status, kernel: Kernel) -> bool:
    """Whether this process is in the session that an adopted one leads."""
    started = _adopted.get(here.session)
    if started is None:
        return False
    leader = kernel.status(here.session)
    return leader is not None and leader.started == started


def _cgroup(pid: str) -> str:
    try:
        return Path("/proc", pid, "cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
