"""The worktrees of one git repository, made and read by the user's own git."""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from zotctl.worktree.git_command import GIT_S, GitError, git, git_succeeds
from zotd.client.errors import ClientError
from zotd.client.worktree_names import worktrees_home

PREFIX = "zot/"
"""How the branches of these worktrees begin."""

PLAIN = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
"""Makes a patch that `git apply` takes, whatever the user has configured for reading."""

RETRY_S = 0.02
"""Pause between two attempts to get the lock of a repository, in seconds."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """The state of a worktree.

    Attributes:
        branch: branch that it is on, usually `zot/NAME`; empty during a rebase, or if a commit is checked out.
        base: commit at which the branch began, or onto which it was rebased.
        ahead: number of commits since the base.
        unmerged: number of commits that the main worktree does not have.
        is_dirty: whether there are uncommitted or untracked files.
    """

    name: str
    path: str
    branch: str
    base: str
    ahead: int
    unmerged: int
    is_dirty: bool


class Worktrees:
    """The worktrees of the repository of a directory; raises ClientError without git, outside of one, and for a bare one."""

    def __init__(self, cwd: str, env: Mapping[str, str]) -> None:
        try:
            listed = git(cwd, "worktree", "list", "--porcelain", "-z").split("\0\0")
        except GitError as error:
            if "not a git repository" not in str(error):
                raise
            raise ClientError(f"{cwd} is not a git repository; a worktree needs one with a commit") from error
        records = [record.split("\0") for record in listed if record]
        if "bare" in records[0]:
            raise ClientError("this repository is bare; run the command in a clone with files")
        self.main = _main_worktree(records[0][0].removeprefix("worktree "), cwd)
        """The real path of the repository's main worktree."""
        digest = hashlib.sha256(os.fsencode(self.main)).hexdigest()[:12]
        self.folder = os.path.join(worktrees_home(env), f"{os.path.basename(self.main)}-{digest}")
        self._records = {
            os.path.relpath(record[0].removeprefix("worktree "), self.folder): record
            for record in records[1:]
            if record[0].startswith(f"worktree {self.folder}{os.sep}")
        }

    def names(self) -> list[str]:
        """Return the names of the worktrees, sorted."""
        return sorted(self._records)

    def path(self, name: str) -> str:
        """Return the directory of a worktree; raises ClientError if there is none of that name, or it was deleted."""
        path = os.path.join(self.folder, name)
        if name not in self._records:
            raise ClientError(f"there is no worktree {name}; `zotctl worktree list` prints all")
        if not os.path.isdir(path):
            raise ClientError(f"{path} is gone; `zotctl worktree remove --force {name}` removes the branch, too")
        return path

    def is_free(self, name: str) -> bool:
        """Return whether there is neither a branch nor a directory of that name."""
        has_directory = os.path.lexists(os.path.join(self.folder, name))
        return not has_directory and PREFIX + name not in self._branches()

    def create(self, name: str, base: str, cwd: str) -> str:
        """Create the worktree on a new branch at `base`, as seen from `cwd`, and return its directory."""
        if not git_succeeds(self.main, "check-ref-format", f"refs/heads/{PREFIX}{name}"):
            raise ClientError(f'git does not take "{name}" as the name of a branch; use letters, digits and "-"')
        commit = self._commit(base, cwd)
        with self._alone():
            self._check_free(name)
            return self._create(name, commit)

    def worktree(self, name: str) -> Worktree:
        """Return the state of a worktree; raises ClientError if there is none of that name."""
        if name not in self._records:
            raise ClientError(f"there is no worktree {name}; `zotctl worktree list` prints all")
        path = os.path.join(self.folder, name)
        fields = dict(line.partition(" ")[::2] for line in self._records[name])
        tip = fields["HEAD"]
        base = self._base(name, tip)
        is_dirty = not os.path.isdir(path) or bool(git(path, "status", "--porcelain"))
        branch = fields.get("branch", "").removeprefix("refs/heads/")
        own = [f"refs/heads/{PREFIX}{name}"] if PREFIX + name in self._branches() else []
        unmerged = self._count(tip, *own, "^HEAD")
        return Worktree(name, path, branch, base, self._count(tip, f"^{base}"), unmerged, is_dirty)

    def diff(self, name: str, *options: str) -> str:
        """Return all changes since the base as a patch. The worktree's own index stays as it is."""
        path = self.path(name)
        with self.snapshot_index(path) as index:
            git(path, "add", "--all", variables=index)
            return git(path, "diff", "--cached", *PLAIN, *options, self.worktree(name).base, variables=index)

    @contextmanager
    def snapshot_index(self, path: str) -> Iterator[dict[str, str]]:
        """Make an index of the commit that is checked out at `path`; yield the variables with which git uses it."""
        with TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            git(path, "read-tree", "HEAD", variables=index)
            yield index

    def move_base(self, name: str, commit: str) -> None:
        """Record another commit as the base."""
        git(self.main, "config", f"branch.{PREFIX}{name}.zotBase", commit)

    def remove(self, name: str, *, force: bool) -> None:
        """Remove the worktree and its branch; raises ClientError if work would be lost and `force` is not set."""
        worktree = self.worktree(name)
        if not force and (worktree.is_dirty or worktree.unmerged):
            what = "uncommitted changes" if worktree.is_dirty else "commits that are not merged"
            raise ClientError(f"{name} has {what}; to discard them, use --force")
        # git removes none with submodules without --force; that they have no changes was looked at above.
        forced = ["--force"] if force or self._has_submodules(worktree.path) else []
        git(self.main, "worktree", "remove", *forced, "--", worktree.path)
        if PREFIX + name in self._branches():
            git(self.main, "branch", "--quiet", "-D", "--", PREFIX + name)

    # --- inside -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process is in this block for the same repository; waits at most `GIT_S` for one that is.

        Else two commands that create a worktree of one name would both find it free, and the one that fails would
        discard that of the other.
        """
        path = f"{self.folder}.lock"
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise ClientError(f"no worktree can be created: {path}: {error.strerror}") from error
        try:
            _lock(descriptor, path)
            yield
        finally:
            os.close(descriptor)

    def _commit(self, base: str, cwd: str) -> str:
        try:
            return git(cwd, "rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}").strip()
        except GitError as error:
            if base == "HEAD":
                raise ClientError("this repository has no commit yet; a worktree needs one to begin at") from error
            raise ClientError(f'git rev-parse: "{base}" names no commit of this repository') from error

    def _check_free(self, name: str) -> None:
        branch = PREFIX + name
        for other in self._branches():
            if other == branch:
                raise ClientError(f"the branch {branch} exists; use another name, or `zotctl worktree remove {name}`")
            one, two = other.casefold(), branch.casefold()
            if one == two:  # one file and one directory, where the file system does not tell capitals
                raise ClientError(f"the branch {other} exists, which differs only in capitals; use another name")
            if one.startswith(f"{two}/") or two.startswith(f"{one}/"):
                raise ClientError(f"git cannot have the branch {branch} beside {other}; use another name")
        path = os.path.join(self.folder, name)
        if os.path.lexists(path):
            raise ClientError(f"{path} exists; use another name")

    def _create(self, name: str, commit: str) -> str:
        branch, path = PREFIX + name, os.path.join(self.folder, name)
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        except OSError as error:
            raise ClientError(f"no worktree can be created in {self.folder}: {error.strerror}") from error
        # First: without it, a worktree that a hook or a full disk has interrupted could not be compared.
        self.move_base(name, commit)
        try:
            git(self.main, "worktree", "add", "--quiet", "-b", branch, "--", path, commit)
        except BaseException:
            self._discard(path, branch)
            raise
        return path

    def _discard(self, path: str, branch: str) -> None:
        """Remove what an interrupted `git worktree add` has left."""
        for command in (
            ["worktree", "remove", "--force", "--", path],
            ["worktree", "prune"],
            ["branch", "--quiet", "-D", "--", branch],
            ["config", "--remove-section", f"branch.{branch}"],
        ):
            git_succeeds(self.main, *command)

    def _base(self, name: str, tip: str) -> str:
        """Return the newest commit that the worktree has in common with its base; main's, if none is recorded."""
        recorded = self._ask("config", f"branch.{PREFIX}{name}.zotBase") or "HEAD"
        return self._ask("merge-base", recorded, tip) or tip

    def _ask(self, *args: str) -> str:
        """Return what git prints; empty if it fails."""
        try:
            return git(self.main, *args).strip()
        except GitError:
            return ""

    def _branches(self) -> list[str]:
        return git(self.main, "for-each-ref", "--format=%(refname:lstrip=2)", f"refs/heads/{PREFIX}").splitlines()

    def _has_submodules(self, path: str) -> bool:
        return os.path.isdir(path) and git(path, "ls-files", "--", ".gitmodules") != ""

    def _count(self, *revisions: str) -> int:
        return int(git(self.main, "rev-list", "--count", *revisions))


def _main_worktree(listed: str, cwd: str) -> str:
    """Return the main worktree. For a submodule git lists its git directory instead."""
    if os.path.lexists(os.path.join(listed, ".git")):
        return listed
    try:
        return git(listed, "rev-parse", "--show-toplevel").rstrip("\n")
    except GitError:
        folders = git(cwd, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")
        own, common, top = folders.splitlines()
        if own != common:
            raise ClientError(f"{listed} is not the main worktree; run the command in that one") from None
        return top


def _lock(descriptor: int, path: str) -> None:
    until = time.monotonic() + GIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise ClientError(f"another command has held {path} for {GIT_S:.0f} s; try again later") from None
            time.sleep(RETRY_S)
        except OSError as error:
            raise ClientError(f"{path} cannot be locked: {error.strerror}") from error
        else:
            return
