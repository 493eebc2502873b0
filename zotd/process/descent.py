"""Determines whether a process descends from this one, and which sessions own the child that it descends from.

    the process ──> its parent ──> … ──> a child of ours ──> us        `belongs` registers the owners of that child

Only the parent chain in the kernel is reliable: a process can drop variables and leave its group and session. With a
subreaper (`process.subreaper`), an orphan becomes our child, without an owner; without one (macOS) it is not
recognised.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from zotd.process.census import KERNEL, Identity, Kernel, ProcessStatus

OUTSIDE = 0
"""The pid that the kernel reports for a process outside our pid namespace; none of our descendants can be there."""

MAX_STEPS = 256
"""Generations that are followed, 2 ms in all; bounds the work that a deep chain of shells can cause. A terminal session
has about ten."""


MAX_INHERITED = 64
"""Number of inherited values that the marker variable of a child keeps."""


class Descent(Struct, frozen=True):
    """The result for a process that descends from this one."""

    owners: Collection[str]
    """Sessions for which the child at the top of its chain was started. Empty if the chain is broken."""


_UNKNOWN = Descent(())

_owners: dict[int, Collection[str]] = {}
"""Owners by pid, of children (the pid is not reused before we reap it) and of adopted processes."""

_unit = ""
"""Our cgroup as in /proc/self/cgroup, if it contains only our descendants; else empty."""

_adopted: dict[int, int] = {}
"""Start time by pid of adopted processes: their pids can be reused as soon as their parents reap them."""


_mark: tuple[str, str] = ("", "")
"""Name and value of the variable that all our children get."""

_on_end: Callable[[], None] = lambda: None  # noqa: E731  (replaced by `mark_children`)
"""Called after each child that was reaped."""


def mark_children(name: str, values: Sequence[str], *, ended: Callable[[], None]) -> None:
    """Set an environment variable for all children started from now on; an empty name stops that.

    `ended` is called after each child that was reaped.
    """
    global _mark, _on_end
    _mark, _on_end = (name, " ".join(values)), ended


def marked(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a child: `env` with the values of `mark_children` added to those already there."""
    name, value = _mark
    if not name:
        return dict(env)
    values = dict.fromkeys([*env.get(name, "").split()[:MAX_INHERITED], *value.split()])
    return {**env, name: " ".join(values)}


def belongs(pid: int, owners: Collection[str]) -> None:
    """Register the owners of our child `pid`, until it is reaped.

    Call it before the next await after the start. The collection is kept, not copied, so the caller may change it.
    """
    _owners[pid] = owners


def adopted(process: Identity, owners: Collection[str]) -> None:
    """Register the owners of a process that an earlier daemon started, and of its whole session, until `forget`.

    Orphans that have left that session are not reparented to us; `in_unit` recognises them by their cgroup.
    """
    _owners[process.pid] = owners
    _adopted[process.pid] = process.started


def in_unit(unit: str) -> None:
    """Count all processes in the cgroup of this systemd unit as descendants of ours or of an earlier daemon.

    Recognises the orphans of `adopted` processes, which are not reparented to us. Does nothing if this process is in
    another cgroup, such as that of a terminal.
    """
    global _unit  # noqa: PLW0603  (of the process, as a cgroup is)
    own = _cgroup("self")
    _unit = own if unit and own.endswith(f"/{unit}\n") else ""


def forget(pid: int) -> None:
    """Remove the owners of a child; to be called when it is reaped. Does nothing if it has none."""
    _owners.pop(pid, None)
    _adopted.pop(pid, None)
    _on_end()


def descent(pid: int, kernel: Kernel = KERNEL) -> Descent | None:
    """Return how the process with this pid descends from us, or None if it does not. Blocks for 8 us a generation.

    This process itself does not count, nor does a child in our own session: `spawn` and `start_service` start each
    child in a new session, and a process cannot return to ours. A process that has ended counts as a descendant
    without known owners, so that it gets fewer rights rather than more. Without /proc the result is always None.
    """
    found = _line(pid, kernel)
    # Asked last, because a cgroup does not tell the owners.
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
        # Before the comparison of ages: adopted processes are older than this daemon.
        if _is_adopted(here, kernel):
            return Descent(_owners[here.session])
        # Parents are older than their children, so that most strangers are known by their shell, or by themselves.
        if here.started < us.started or here.session == us.session:
            return None
        if here.parent == me:
            return Descent(_owners.get(at, ()))
        above = kernel.status(here.parent)
        if above is None or above.started > here.started:
            # The parent may have ended since, and its pid may be reused: then the kernel reports a new parent now.
            again = kernel.status(at)
            if again is None or again.parent != here.parent:
                # From the bottom again: any process of the chain may have been replaced.
                at, here = pid, kernel.status(pid)
                continue
            if above is None:
                return None  # the parent runs and is hidden from us (hidepid), so it is another user's
        at, here = here.parent, above
    return _UNKNOWN


def _is_adopted(here: ProcessStatus, kernel: Kernel) -> bool:
    """Return whether the session leader is an adopted process, and not another one with its pid."""
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
