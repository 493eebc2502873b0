"""Which worktree of `zot -w` a directory belongs to, by its path alone: for lists of sessions, without running git."""

import os
from collections.abc import Mapping
from typing import NamedTuple


def worktrees_home(env: Mapping[str, str]) -> str:
    """Return the real directory of all worktrees; not in `$ZOT_HOME`, which a jail hides from the commands in it."""
    data = env.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data):
        data = os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "share")
    return os.path.realpath(os.path.join(data, "zot-worktrees"))


class WorktreeName(NamedTuple):
    """What the path of a worktree says."""

    repository: str
    """Name of the directory of the main worktree."""
    name: str

    @property
    def label(self) -> str:
        """The worktree in a list of all sessions."""
        return f"{self.repository}: worktree {self.name}"


def worktree_of(cwd: str, home: str) -> WorktreeName | None:
    """Return the worktree that `cwd` is in; None if it is in none, or that was removed.

    `home` is that of `worktrees_home`. Worktrees are at `home/REPOSITORY-HASH/NAME`, and a name may have slashes, so the
    first directory with a `.git` ends it.
    """
    if not cwd.startswith(home + os.sep):
        return None
    folder, *parts = cwd[len(home) + 1 :].split(os.sep)
    for length in range(1, len(parts) + 1):
        if os.path.lexists(os.path.join(home, folder, *parts[:length], ".git")):
            return WorktreeName(folder.rpartition("-")[0], "/".join(parts[:length]))
    return None
