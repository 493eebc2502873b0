"""What git has checked out in a directory, read from `.git/HEAD`: no program is started to look."""

import os
import re
import stat
from pathlib import Path

from msgspec import Struct

from zotd.workspace.file_listing import is_typed

HEAD_BYTES = 4096
"""More than a path; `HEAD` holds a name or a digest."""

SHORT = 7
"""Digits of a commit that people are shown, as git does it."""

_BRANCH = re.compile(r"ref: refs/heads/([^\x00-\x20\x7f~^:?*\[\\]+)\n?")

_COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\n?")


class Checkout(Struct, frozen=True):
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
    # A file is in its place in a worktree or a submodule, and says where the rest is.
    if not os.path.isdir(git):  # noqa: PTH112  (`Path.is_dir` raises for a name that is too long)
        pointer = _read(git)
        if not pointer.startswith("gitdir: "):
            return None
        git = git.parent / pointer.removeprefix("gitdir: ").rstrip("\n")
    head = _read(git / "HEAD")
    if (branch := _BRANCH.fullmatch(head)) and is_typed(branch[1]):
        return Checkout(branch[1], is_detached=False)
    if commit := _COMMIT.fullmatch(head):
        return Checkout(commit[1][:SHORT], is_detached=True)
    return None


def _read(path: Path) -> str:
    """A small text file; empty when there is none, or something else in its place."""
    try:
        with open(path, "rb", opener=_opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(HEAD_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def _opened(path: str, flags: int) -> int:
    # A named pipe would wait for a writer, and a terminal become that of the daemon.
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
