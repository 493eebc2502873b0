"""Takes the work of a worktree back into the main one, or the main one's into it: merge, rebase, patch.

Each does all of it or nothing: what git has begun and cannot finish is undone before the error is raised.
"""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from zotctl.worktree.git_command import HOOK_REFUSED, GitError, git, git_succeeds
from zotctl.worktree.repository import PLAIN, Worktree, Worktrees
from zotd.client.errors import ClientError

SHOWN_FILES = 5
"""Most files that a sentence about a conflict names."""

WHOLE = (*PLAIN, "--no-renames")
"""Makes a patch that names each file which it touches."""


def merge(worktrees: Worktrees, name: str) -> str:
    """Merge the commits of a worktree into the branch of the main one; return what was done, as a sentence.

    Raises:
        ClientError: there are uncommitted changes in one of the two, there is a conflict, or git or one of its hooks
            refuses. The main worktree is as before.
    """
    worktree, into = _clean(worktrees, name), _main_branch(worktrees)
    if not worktree.unmerged:
        return f"{into} has all commits of {name}"
    way = f"cd {shlex.quote(worktree.path)} && git merge {shlex.quote(into)}"
    with _undone_on_failure(worktrees.main, "merge", f"{name} cannot be merged into {into}", way):
        git(worktrees.main, "merge", "--no-edit", "--no-autostash", "--commit", "--no-squash", "--", worktree.branch)
    return f"merged {_commits(worktree.unmerged)} of {name} into {into}"


def rebase(worktrees: Worktrees, name: str) -> str:
    """Move the commits of a worktree onto the commit of the main one; return what was done, as a sentence.

    Raises:
        ClientError: the worktree has uncommitted changes, there is a conflict, or git or one of its hooks refuses. The
            worktree is as before.
    """
    path, worktree = worktrees.path(name), _own_branch(worktrees.worktree(name))
    if worktree.is_dirty:
        raise ClientError(f"{name} has uncommitted changes; commit them first")
    commit = git(worktrees.main, "rev-parse", "--verify", "HEAD").strip()
    where = git(worktrees.main, "rev-parse", "--abbrev-ref", "HEAD").strip()
    # First: what counts as base is the newest commit that both have in common, also when this is killed in between.
    worktrees.move_base(name, commit)
    way = f"cd {shlex.quote(path)} && git rebase {commit[:10]}"
    try:
        with _undone_on_failure(path, "rebase", f"{name} cannot be rebased onto {where}", way):
            git(path, "rebase", "--quiet", "--no-autostash", commit)
    except BaseException:
        worktrees.move_base(name, worktree.base)
        raise
    return f"rebased {_commits(worktrees.worktree(name).ahead)} of {name} onto {where} ({commit[:10]})"


def patch(worktrees: Worktrees, name: str) -> str:
    """Apply all changes of a worktree, also uncommitted ones, to the files of the main one; return a sentence.

    They are uncommitted there; index and branch stay as they are. Changes of the user in the same files are merged.

    Raises:
        ClientError: there is a conflict. The main worktree is as before.
    """
    main, changes = worktrees.main, worktrees.diff(name, "--no-renames")
    if not changes:
        return f"{name} has no changes"
    touched = git(main, "apply", "--numstat", "-z", piped=changes)
    names = [line.split("\t")[2] for line in touched.split("\0") if line]
    with worktrees.snapshot_index(main) as index:
        # The files as they are in the main worktree; the changes are merged into them in the index.
        listed = "".join(f"{name}\0" for name in names)
        git(main, "update-index", "--add", "--remove", "-z", "--stdin", variables=index, piped=listed)
        before = git(main, "write-tree", variables=index).strip()
        try:
            git(main, "apply", "--cached", "--3way", "--whitespace=nowarn", variables=index, piped=changes)
        except GitError as error:
            found = git(main, "ls-files", "--unmerged", "-z", variables=index)
            way = f"commit them in the worktree, then: zotctl worktree rebase {shlex.quote(name)}"
            raise _conflict(f"the changes of {name} cannot be applied", found, error, way) from error
        after = git(main, "write-tree", variables=index).strip()
    # Between two trees of which the first is what is there, so this applies as a whole or is refused as a whole.
    exact = git(main, "diff", *WHOLE, before, after)
    if not exact:
        return f"the main worktree has all changes of {name}"
    git(main, "apply", "--whitespace=nowarn", piped=exact)
    return f"applied the changes of {name} to {len(names)} file{'s' * (len(names) != 1)}, uncommitted"


def _clean(worktrees: Worktrees, name: str) -> Worktree:
    worktrees.path(name)
    worktree = _own_branch(worktrees.worktree(name))
    if worktree.is_dirty:
        raise ClientError(
            f"{name} has uncommitted changes, which a merge would leave out; commit them there, or take everything over "
            f"without a commit: zotctl worktree patch {name}"
        )
    if git(worktrees.main, "status", "--porcelain", "--untracked-files=no"):
        raise ClientError(f"{worktrees.main} has uncommitted changes; commit or stash them, then merge again")
    return worktree


def _own_branch(worktree: Worktree) -> Worktree:
    if not worktree.branch:
        raise ClientError(
            f"{worktree.name} is on no branch; finish its rebase, or switch to a branch in {worktree.path}"
        )
    return worktree


def _main_branch(worktrees: Worktrees) -> str:
    if not git_succeeds(worktrees.main, "symbolic-ref", "--quiet", "HEAD"):
        raise ClientError(f"{worktrees.main} is on no branch; switch to the one to merge into")
    return git(worktrees.main, "symbolic-ref", "--short", "HEAD").strip()


@contextmanager
def _undone_on_failure(path: str, command: str, trouble: str, way: str) -> Iterator[None]:
    """If the block raises, abort the merge or rebase that it has begun at `path`; say which files conflict."""
    if _is_begun(path):
        raise ClientError(f"{trouble}: a merge or rebase has begun in {path}; finish or abort it there")
    try:
        yield
    except BaseException as error:
        found = git(path, "ls-files", "--unmerged", "-z")
        if _is_begun(path):
            git(path, command, "--abort")
        if isinstance(error, GitError):
            raise _conflict(trouble, found, error, way) from error
        raise


def _is_begun(path: str) -> bool:
    folder = git(path, "rev-parse", "--absolute-git-dir").rstrip("\n")
    return any(os.path.lexists(os.path.join(folder, mark)) for mark in ("MERGE_HEAD", "rebase-merge", "rebase-apply"))


def _conflict(trouble: str, unmerged: str, error: GitError, way: str) -> ClientError:
    """Return the error that names the files of `git ls-files --unmerged -z`, or git's own reason if there are none."""
    names = sorted({row.partition("\t")[2] for row in unmerged.split("\0") if row})
    if names:
        more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
        files = f"{', '.join(names[:SHOWN_FILES])}{more}"
        return ClientError(f"{trouble}: both have changed {files}; nothing was changed; to solve it: {way}")
    reason = f"a hook refused it: {error.hint}" if HOOK_REFUSED in str(error) and error.hint else str(error)
    return ClientError(f"{trouble}; nothing was changed; {reason}")


def _commits(number: int) -> str:
    return f"{number} commit{'s' * (number != 1)}"
