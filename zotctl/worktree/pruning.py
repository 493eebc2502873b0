"""Removes worktrees in which there is nothing to lose."""

import os
from collections.abc import Sequence

from zotctl.worktree.repository import Worktree, Worktrees
from zotctl.worktree.sessions_there import SessionThere
from zotd.client.errors import ClientError


def prune(
    worktrees: Worktrees, sessions: Sequence[SessionThere], *, only_shown: bool
) -> tuple[list[str], list[tuple[str, str]]]:
    """Remove the worktrees that are merged, clean and not used; with `only_shown` remove none.

    Returns:
        The names of those that were, or would be, removed; and those that are kept, each with the reason.
    """
    removed: list[str] = []
    kept: list[tuple[str, str]] = []
    for name in worktrees.names():
        reason = _reason(worktrees.worktree(name), sessions)
        if not reason and not only_shown:
            reason = _failure(worktrees, name)
        if reason:
            kept.append((name, reason))
        else:
            removed.append(name)
    return removed, kept


def _reason(worktree: Worktree, sessions: Sequence[SessionThere]) -> str:
    """Return why it must stay; empty if it may go."""
    if not os.path.isdir(worktree.path):
        return "its directory is gone; `zotctl worktree remove --force` removes the branch, too"
    if worktree.is_dirty:
        return "it has uncommitted changes"
    if worktree.unmerged:
        return f"it has {worktree.unmerged} commit{'s' * (worktree.unmerged != 1)} not merged"
    used = [one.id for one in sessions if one.is_used and one.is_in(worktree.path)]
    return f"it is in use by {' '.join(used)}" if used else ""


def _failure(worktrees: Worktrees, name: str) -> str:
    """Remove it; return git's reason if that fails, for example because it is locked."""
    try:
        worktrees.remove(name, force=False)
    except ClientError as error:
        return str(error)
    return ""
