"""Decides what a restore changes and what it leaves alone. Pure.

A restore knows three states: the present one, the one to return to, and the known one, in which the workspace was last
recorded. A file that differs between known and present was changed by the user since.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from zotd.checkpoints.left_out import LeftOut
from zotd.checkpoints.outcome import Kept, WhyKept
from zotd.checkpoints.trees import FileState, PathDifference


@dataclass(frozen=True, slots=True)
class PathChange:
    """What a restore does to a path: None before: it appears; None after: it is removed."""

    path: str
    before: FileState | None
    after: FileState | None


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore changes, in this order, and what it leaves alone."""

    changes: Sequence[PathChange]
    kept: Sequence[Kept]


def plan(
    wanted: Mapping[str, PathDifference],
    *,
    users: Collection[str],
    left_out: LeftOut,
    only: Collection[str] | None = None,
    under: Sequence[str] = (),
    force: bool = False,
) -> RestorePlan:
    """Return what turns the present state into the wanted one.

    Args:
        wanted: what differs between the present state and the one to return to.
        users: paths that differ between the known and the present state.
        left_out: what the state to return to does not contain.
        only: paths that may be changed; None: all.
        under: files and directories that may be changed; empty: all.
        force: change also what the user has changed.
    """
    changes: list[PathChange] = []
    kept: list[Kept] = []
    for path in sorted(wanted):
        if (only is not None and path not in only) or not _is_under(path, under):
            continue
        difference = wanted[path]
        if difference.after is None and left_out.covers(path):
            kept.append(Kept(path, WhyKept.NOT_RECORDED_THEN))
        elif path in users and not force:
            kept.append(Kept(path, WhyKept.CHANGED))
        else:
            changes.append(PathChange(path, difference.before, difference.after))
    # Removals first, the deepest before its directories: a file may have become a directory, or the other way round.
    removals = [change for change in changes if change.after is None]
    return RestorePlan([*reversed(removals), *(change for change in changes if change.after is not None)], kept)


def _is_under(path: str, under: Sequence[str]) -> bool:
    return not under or any(place in {"", path} or path.startswith(f"{place}/") for place in under)
