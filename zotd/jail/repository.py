"""The git directory that a working directory uses, and what in it decides which programs git runs.

A `.git` file and a link are content of the working directory, which commands in a jail may write. They are followed
only when the place that they name points back, as git itself records it.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zotd.jail.policy import JailPolicy

POINTER_BYTES = 4096
"""Longest content of a `.git` file that is read: a path."""

SET_ASIDE = ".set-aside"
"""What is added to the name of a file that a command may not make, and has made."""

CONFIG_BYTES = 1024 * 1024
"""Longest configuration that is looked at."""


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """What a jail has to know of a repository. All paths are real and exist."""

    writable: tuple[str, ...] = ()
    """Directories outside of the working directory that git writes, with nothing in them that decides what it runs."""
    carved: tuple[str, ...] = ()
    """Git directories that git writes, and that also contain what it runs: `protected`."""
    protected: tuple[str, ...] = ()
    """Hooks, configuration, and pointers to other git directories."""


def git_places(cwd: str) -> GitPlaces:
    """Return what git needs to commit in `cwd`, a real path. Blocks for some system calls.

    Makes an empty `hooks` in a git directory that has none: an absent one could not be kept from being made.
    """
    folder = cwd
    while (kind := _kind(f"{folder}/.git")) is None:
        above = os.path.dirname(folder)
        if above == folder:
            return GitPlaces()
        folder = above
    entry = Path(folder, ".git")
    if stat.S_ISDIR(kind):
        return _of_directory(entry)
    return _of_file(entry) if stat.S_ISREG(kind) else GitPlaces()


def steering_git(folder: str) -> GitPlaces:
    """Return what decides which programs git runs in a directory that commands may change: in its own `.git`.

    Blocks for some system calls. Makes an empty `hooks`, as `git_places` does.
    """
    kind = _kind(f"{folder}/.git")
    if kind is None or stat.S_ISLNK(kind):
        return GitPlaces()
    entry = Path(folder, ".git")
    if not stat.S_ISDIR(kind):
        return GitPlaces(protected=(str(entry),))
    return _of_directory(entry)


def set_aside_pointers(policy: JailPolicy) -> list[str]:
    """Rename each `commondir` that a command has put into a git directory: git would read another configuration by it.

    A jail cannot keep a command from making one, because git makes other files beside it. Call it when the command has
    ended with all that it had started. Blocks for some system calls.

    Returns:
        What was refused in this way, as clauses that follow "it may not".
    """
    found = []
    for protected in policy.protected:
        git, name = os.path.split(protected)
        pointer = f"{git}/commondir"
        # With one that was there before, `_protected` does not name the configuration.
        if name == "config" and os.path.lexists(pointer):
            with suppress(OSError):
                os.replace(pointer, f"{pointer}{SET_ASIDE}")
            found.append(f"make {pointer}, by which git would read another configuration")
    return found


def _kind(path: str) -> int | None:
    # Not with pathlib, and without following links: most working directories are looked at for every command.
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None


def _of_directory(git: Path) -> GitPlaces:
    """A repository with its own git directory. Anything unusual about it leaves it unwritable as a whole."""
    if not (git / "HEAD").is_file():
        return GitPlaces()
    protected = _protected(git)
    if protected is None:
        return GitPlaces(carved=(str(git),), protected=(str(git),))
    return GitPlaces(carved=(str(git),), protected=protected)


def _protected(git: Path) -> tuple[str, ...] | None:
    """Return what must not be written in a git directory; None if that cannot be named."""
    hooks, config = git / "hooks", git / "config"
    if not os.path.lexists(hooks):
        try:
            hooks.mkdir()
        except OSError:
            return None
    if hooks.is_symlink() or config.is_symlink() or not config.is_file() or os.path.lexists(git / "commondir"):
        return None
    found = [hooks, config]
    per_worktree = git / "config.worktree"
    if per_worktree.is_file() and not per_worktree.is_symlink():
        found.append(per_worktree)
    elif _wants_config_of_worktree(config):
        return None  # it would be read as soon as it is there
    # The git directories of submodules and of other worktrees have hooks, configuration and pointers of their own.
    found += [inner for name in ("modules", "worktrees") if (inner := git / name).is_dir()]
    return tuple(map(str, found))


def _of_file(entry: Path) -> GitPlaces:
    """A worktree or a submodule: `.git` is a file that names the git directory."""
    git = _pointed(entry, "gitdir: ")
    unusable = GitPlaces(protected=(str(entry),))
    if git is None or not (git / "HEAD").is_file():
        return unusable
    if (git / "commondir").is_file():
        return _of_worktree(entry, git) or unusable
    return _of_submodule(entry, git) or unusable


def _of_worktree(entry: Path, git: Path) -> GitPlaces | None:
    common = _pointed(git / "commondir")
    back = _pointed(git / "gitdir")
    # `MAIN/.git/worktrees/NAME`, which names this worktree.
    if common is None or back != Path(os.path.realpath(entry)) or git.parent != common / "worktrees":
        return None
    protected = [entry, git / "commondir", git / "gitdir"]
    per_worktree = git / "config.worktree"
    if per_worktree.is_file():
        protected.append(per_worktree)
    elif _wants_config_of_worktree(common / "config"):
        return None
    shared = (common / name for name in ("objects", "refs", "logs"))
    writable = tuple(str(place) for place in shared if place.is_dir() and not place.is_symlink())
    return GitPlaces(writable, (str(git),), tuple(map(str, protected)))


def _of_submodule(entry: Path, git: Path) -> GitPlaces | None:
    """Its git directory lies in that of a repository above it, where nothing in the working directory has put it."""
    for above in entry.parent.parents:
        modules = above / ".git" / "modules"
        if git.is_relative_to(modules) and modules.resolve() == modules:
            protected = _protected(git)
            return None if protected is None else GitPlaces(carved=(str(git),), protected=(str(entry), *protected))
    return None


def _wants_config_of_worktree(config: Path) -> bool:
    """Return whether git may read a configuration of the worktree: also if that is not sure."""
    try:
        with config.open("rb") as opened:
            content = opened.read(CONFIG_BYTES + 1)
    except OSError:
        return True
    return len(content) > CONFIG_BYTES or b"worktreeconfig" in content.lower()


def _pointed(file: Path, prefix: str = "") -> Path | None:
    """Return the real path that a file names, relative to its directory; None if it names nothing that exists."""
    try:
        with file.open("rb") as opened:
            text = os.fsdecode(opened.read(POINTER_BYTES)).removesuffix("\n")
    except OSError:
        return None
    if not text.startswith(prefix) or "\0" in text:
        return None
    found = Path(os.path.realpath(file.parent / text.removeprefix(prefix)))
    return found if found.exists() else None
