"""Decides what of a workspace is recorded: which files, and whether there is too much of them."""

import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from zotd.checkpoints.errors import DiskFullError, UnrecordableError
from zotd.checkpoints.left_out import Omission, Why
from zotd.checkpoints.shadow import ShadowRepository

SPARE_BYTES = 256 * 1024 * 1024
"""Space that recording leaves on the file system of `$ZOT_HOME`."""


@dataclass(frozen=True, slots=True)
class RecordingLimits:
    """What is too much to record.

    Attributes:
        file_bytes: size of the largest file that is recorded.
        files: most files of a workspace.
        new_bytes: most that one checkpoint may add.
    """

    file_bytes: int = 10 * 1024 * 1024
    files: int = 600_000
    new_bytes: int = 4 * 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PresentState:
    """The state of a workspace, as it would be recorded now.

    Attributes:
        tree: object name of its tree.
        omissions: what is left out, by path.
        files: how many are in the tree.
        changed: number of paths that differ from the last checkpoint.
    """

    tree: str
    omissions: Mapping[str, Omission]
    files: int
    changed: int


def judged(workspace: str, name: str, file_bytes: int) -> int | Omission:
    """Return the size of a file that can be recorded, 0 if it is gone, or why it is left out.

    Args:
        workspace: the directory.
        name: path in it, as git prints it: a repository of its own ends with a slash.
        file_bytes: size of the largest file that is recorded.
    """
    if name.endswith("/"):
        return Omission(name, Why.REPOSITORY)
    if any(part.lower() == ".git" for part in name.split("/")):
        return Omission(name, Why.NAME)
    place = os.path.join(workspace, name)
    try:
        found = os.lstat(place)
    except OSError:
        return 0
    if stat.S_ISLNK(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return 0
    if not stat.S_ISREG(found.st_mode) or not os.access(place, os.R_OK):
        return Omission(name, Why.UNREADABLE, found.st_size)
    if found.st_size > file_bytes:
        return Omission(name, Why.LARGE, found.st_size)
    return found.st_size


def check_amount(repository: ShadowRepository, limits: RecordingLimits, *, files: int, new_bytes: int) -> None:
    """Raise UnrecordableError if the workspace has too many files or too much to record at once, DiskFullError for a full disk.

    Args:
        repository: where to.
        limits: what is too much.
        files: how many the workspace has.
        new_bytes: size of those that are recorded now.
    """
    workspace = repository.workspace
    if files > limits.files:
        raise UnrecordableError(
            f"{workspace} has more than {limits.files:,} files; name those that need no checkpoints in .gitignore"
        )
    if new_bytes > limits.new_bytes:
        raise UnrecordableError(
            f"{workspace} has more than {limits.new_bytes >> 30} GiB to record; name what needs no checkpoints in .gitignore"
        )
    if new_bytes:
        check_space(repository.folder, new_bytes)


def check_space(folder: str, new_bytes: int = 0) -> None:
    """Raise DiskFullError if the file system of `folder` has less than `SPARE_BYTES` left beside these."""
    free = shutil.disk_usage(folder).free
    if free < new_bytes + SPARE_BYTES:
        raise DiskFullError(f"{folder} has {free >> 20} MiB left, too little for checkpoints; free some space")
