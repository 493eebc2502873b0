"""What git has checked out in a directory, read from `.git/HEAD`: no program is started to look."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

HEAD_BYTES = 4096
"""More than a path; `HEAD` holds a name or a digest."""

SHORT = 7
"""Digits of a commit that people are shown, as git does it."""

_BRANCH = re.compile(r"ref: refs/heads/([^\x00-\x20\x7f~^:?*\[\\]+)\n?")

_COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\n?")


@dataclass(frozen=True, slots=True)
class Checkout:
    """What is checked out."""

    name: str
    """A branch, or the beginning of a commit."""
    is_detached: bool
    """It is a commit."""


def checkout(cwd: str) -> Checkout | None:
    """What is checked out there; None: it lies in no repository, or in one that is not as git makes it. Blocks."""
    for folder in (Path(cwd), *Path(cwd).parents):
        if os.path.lexists(git := folder / ".git"):
            return _of(git)
    return None


def _of(git: Path) -> Checkout | None:
    if not git.is_dir():  # a worktree, or a submodule: it says where the rest is
        pointer = _read(git)
        if not pointer.startswith("gitdir: "):
            return None
        git = git.parent / pointer.removeprefix("gitdir: ").rstrip("\n")
    head = _read(git / "HEAD")
    if branch := _BRANCH.fullmatch(head):
        return Checkout(branch[1], is_detached=False)
    if commit := _COMMIT.fullmatch(head):
        return Checkout(commit[1][:SHORT], is_detached=True)
    return None


def _read(path: Path) -> str:
    """A small text file; empty when there is none, or something else in its place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a named pipe would wait for a writer
    except (OSError, ValueError):
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return file.read(HEAD_BYTES).decode(errors="replace")
