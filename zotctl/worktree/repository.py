"""The worktrees of one git repository, made and read by the user's own git."""

import hashlib
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from zotd.client.errors import ClientError

GIT_S = 120.0
"""Time limit of one git command, in seconds: a checkout of a large repository takes tens of seconds."""

PREFIX = "zot/"
"""How the branches of these worktrees begin."""

PLAIN = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
"""Makes a patch that `git apply` takes, whatever the user has configured for reading."""

OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
"""Variables with which a hook of git names its own repository; they would override the directory."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree on a branch of its own.

    Attributes:
        base: commit at which the branch was created.
        ahead: number of commits since the base.
        unmerged: number of commits that the main worktree does not have.
        is_dirty: whether there are uncommitted or untracked files.
    """

    name: str
    path: str
    base: str
    ahead: int
    unmerged: int
    is_dirty: bool


class Worktrees:
    """The worktrees of the repository of a directory; raises ClientError without git, outside of one, and for a bare one."""

    def __init__(self, cwd: str, env: Mapping[str, str]) -> None:
        listed = git(cwd, "worktree", "list", "--porcelain", "-z").split("\0\0")
        records = [record.split("\0") for record in listed if record]
        if "bare" in records[0]:
            raise ClientError("this repository is bare; run the command in a clone with files")
        self.main = records[0][0].removeprefix("worktree ")
        digest = hashlib.sha256(os.fsencode(self.main)).hexdigest()[:12]
        self.folder = os.path.join(worktrees_home(env), f"{os.path.basename(self.main)}-{digest}")
        branches = (
            (record[0].removeprefix("worktree "), line.removeprefix(f"branch refs/heads/{PREFIX}"))
            for record in records[1:]
            for line in record
            if line.startswith(f"branch refs/heads/{PREFIX}")
        )
        self._paths = {name: path for path, name in branches if path == os.path.join(self.folder, name)}

    def create(self, name: str, base: str, cwd: str) -> str:
        """Create the worktree on a new branch at `base`, as seen from `cwd`, and return its directory."""
        branch = PREFIX + name
        if not _succeeds(self.main, "check-ref-format", f"refs/heads/{branch}"):
            raise ClientError(f'git does not take "{name}" as the name of a branch; use letters, digits and "-"')
        if _succeeds(self.main, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}"):
            raise ClientError(f"the branch {branch} exists; use another name, or `zotctl worktree remove {name}`")
        path = os.path.join(self.folder, name)
        if os.path.lexists(path):
            raise ClientError(f"{path} exists; use another name")
        commit = git(cwd, "rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}").strip()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # First: without it, a worktree that a hook or a full disk has interrupted could not be compared.
        git(self.main, "config", f"branch.{branch}.zotBase", commit)
        try:
            git(self.main, "worktree", "add", "--quiet", "-b", branch, "--", path, commit)
        except ClientError:
            self._discard(path, branch)
            raise
        return path

    def names(self) -> list[str]:
        """Return the names of the worktrees, sorted."""
        return sorted(self._paths)

    def worktree(self, name: str) -> Worktree:
        """Return the state of a worktree; raises ClientError if there is none of that name."""
        path = self._paths.get(name)
        if path is None:
            raise ClientError(f"there is no worktree {name}; `zotctl worktree list` prints all")
        branch = f"refs/heads/{PREFIX}{name}"
        start = git(self.main, "config", f"branch.{PREFIX}{name}.zotBase").strip()
        base = git(self.main, "merge-base", start, branch).strip()
        is_dirty = not os.path.isdir(path) or bool(git(path, "status", "--porcelain"))
        return Worktree(name, path, base, self._count(base, branch), self._count("HEAD", branch), is_dirty)

    def diff(self, name: str) -> str:
        """Return all changes since the base as a patch. The worktree's own index stays as it is."""
        worktree = self.worktree(name)
        if not os.path.isdir(worktree.path):
            raise ClientError(
                f"{worktree.path} is gone; `zotctl worktree remove --force {name}` removes the branch, too"
            )
        with TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            git(worktree.path, "read-tree", "HEAD", variables=index)
            git(worktree.path, "add", "--all", variables=index)
            return git(worktree.path, "diff", "--cached", *PLAIN, worktree.base, variables=index)

    def remove(self, name: str, *, force: bool) -> None:
        """Remove the worktree and its branch; raises ClientError if work would be lost and `force` is not set."""
        worktree = self.worktree(name)
        if not force and (worktree.is_dirty or worktree.unmerged):
            what = "uncommitted changes" if worktree.is_dirty else "commits that are not merged"
            raise ClientError(f"{name} has {what}; to discard them, use --force")
        git(self.main, "worktree", "remove", *(["--force"] if force else []), "--", worktree.path)
        git(self.main, "branch", "--quiet", "-D", "--", PREFIX + name)

    def _discard(self, path: str, branch: str) -> None:
        """Remove what an interrupted `git worktree add` has left."""
        for command in (
            ["worktree", "remove", "--force", "--", path],
            ["worktree", "prune"],
            ["branch", "--quiet", "-D", "--", branch],
            ["config", "--remove-section", f"branch.{branch}"],
        ):
            _succeeds(self.main, *command)

    def _count(self, since: str, until: str) -> int:
        return int(git(self.main, "rev-list", "--count", f"{since}..{until}"))


def worktrees_home(env: Mapping[str, str]) -> str:
    """Return the real directory of all worktrees; not in `$ZOT_HOME`, which a jail hides from the commands in it."""
    data = env.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data):
        data = os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "share")
    return os.path.realpath(os.path.join(data, "zot-worktrees"))


def git(cwd: str, *args: str, variables: Mapping[str, str] | None = None) -> str:
    """Return the output of git; raises ClientError with git's last line if it fails or takes longer than `GIT_S`."""
    done = _run(cwd, args, variables or {})
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise ClientError(f"git {args[0]}: {lines[-1].removeprefix('fatal: ')}")
    return done.stdout.decode(errors="surrogateescape")


def _succeeds(cwd: str, *args: str) -> bool:
    return _run(cwd, args, {}).returncode == 0


def _run(cwd: str, args: tuple[str, ...], variables: Mapping[str, str]) -> "subprocess.CompletedProcess[bytes]":
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_HOOK}
    command, env = ["git", *args], {**kept, "LC_ALL": "C", **variables}
    try:
        return subprocess.run(  # noqa: S603  (a list, no shell)
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_S, check=False
        )
    except FileNotFoundError as error:
        raise ClientError("git was not found on PATH; worktrees need it") from error
    except subprocess.TimeoutExpired as error:
        raise ClientError(f"git {args[0]} took longer than {GIT_S:.0f} s and was stopped") from error
