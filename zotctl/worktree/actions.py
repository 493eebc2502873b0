"""What `zotctl worktree` does."""

import os
import sys
from collections.abc import Callable
from dataclasses import asdict

from zotctl import output
from zotctl.worktree import taking_back
from zotctl.worktree.pruning import prune as pruned
from zotctl.worktree.repository import Worktrees
from zotctl.worktree.sessions_there import sessions_there
from zotctl.worktree.set_up import set_up
from zotd.sanitize import one_line


def create(name: str, base: str) -> int:
    """Create a worktree, prepare it and print its directory."""
    worktrees = _here()
    with output.progress(f"creating the worktree {name}"):
        path = worktrees.create(name, base, os.getcwd())
    set_up(name, path, worktrees.main, os.environ)
    print(one_line(path))
    return 0


def show(*, as_json: bool) -> int:
    """Print the worktrees, and the sessions in each."""
    worktrees = _here()
    found = [worktrees.worktree(name) for name in worktrees.names()]
    sessions = sessions_there(os.environ) if found else []
    working = {one.name: [session.id for session in sessions if session.is_in(one.path)] for one in found}
    if as_json:
        rows = [{**asdict(one), "sessions": working[one.name]} for one in found]
        output.print_json({"v": 1, "worktrees": rows})
        return 0
    output.print_table(
        ["NAME", "BASE", "AHEAD", "UNCOMMITTED", "SESSIONS", "DIRECTORY"],
        [
            [
                one.name,
                one.base[:10],
                str(one.ahead),
                "yes" if one.is_dirty else "",
                " ".join(working[one.name]),
                one.path,
            ]
            for one in found
        ],
    )
    return 0


def diff(name: str) -> int:
    """Print the changes of a worktree since its base, as bytes of the files: a patch must stay one."""
    sys.stdout.flush()
    sys.stdout.buffer.write(_here().diff(name).encode(errors="surrogateescape"))
    return 0


def merge(name: str) -> int:
    """Merge the commits of a worktree into the branch of the main one."""
    return _done(taking_back.merge, name)


def rebase(name: str) -> int:
    """Move the commits of a worktree onto the commit of the main one."""
    return _done(taking_back.rebase, name)


def patch(name: str) -> int:
    """Apply all changes of a worktree to the files of the main one."""
    return _done(taking_back.patch, name)


def remove(name: str, *, force: bool) -> int:
    """Remove a worktree and its branch."""
    _here().remove(name, force=force)
    return 0


def prune(*, only_shown: bool, as_json: bool) -> int:
    """Remove the worktrees without work that is not merged, and print the others with the reason; or only print both."""
    removed, kept = pruned(_here(), sessions_there(os.environ), only_shown=only_shown)
    if as_json:
        rows = [{"name": name, "reason": reason} for name, reason in kept]
        output.print_json({"v": 1, "dry_run": only_shown, "removed": removed, "kept": rows})
        return 0
    verb = "would remove" if only_shown else "removed"
    output.print_lines([one_line(f"{verb} {name}") for name in removed])
    output.print_lines([one_line(f"kept {name}: {reason}") for name, reason in kept])
    return 0


def _done(work: Callable[[Worktrees, str], str], name: str) -> int:
    print(one_line(work(_here(), name)))
    return 0


def _here() -> Worktrees:
    return Worktrees(os.getcwd(), os.environ)
