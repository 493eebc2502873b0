"""What differs between two recorded states of a workspace."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.outcome import LineCount
from zotd.checkpoints.shadow import ShadowRepository

REGULAR = 0o100644
EXECUTABLE = 0o100755
LINK = 0o120000


@dataclass(frozen=True, slots=True)
class FileState:
    """Content and kind of a file.

    Attributes:
        mode: `REGULAR`, `EXECUTABLE` or `LINK`, as git has them; the type bits of anything else that is at a path.
        blob: object name of the content, for a link of its target; empty for anything else.
    """

    mode: int
    blob: str


@dataclass(frozen=True, slots=True)
class PathDifference:
    """A path in two states; None: there is no file in that state."""

    before: FileState | None
    after: FileState | None


def differences(repository: ShadowRepository, before: str, after: str) -> Mapping[str, PathDifference]:
    """Return the paths that differ between two trees, named by tree or commit."""
    if before == after:
        return {}
    printed = repository.run("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after)
    fields = printed.split(b"\0")
    found = {}
    for raw, path in zip(fields[0:-1:2], fields[1::2], strict=True):
        modes = raw.decode().removeprefix(":").split(" ")
        name = _checked(os.fsdecode(path))
        found[name] = PathDifference(_state(modes[0], modes[2]), _state(modes[1], modes[3]))
    return found


def line_counts(repository: ShadowRepository, before: str, after: str) -> Mapping[str, LineCount | None]:
    """Return how many lines differ in each path that differs between two trees, in order; None: it is no text."""
    printed = repository.run("diff-tree", "-r", "-z", "--numstat", "--no-renames", before, after)
    found: dict[str, LineCount | None] = {}
    for row in printed.split(b"\0")[:-1]:
        added, removed, path = row.split(b"\t", 2)
        found[_checked(os.fsdecode(path))] = None if added == b"-" else LineCount(int(added), int(removed))
    return found


def _state(mode: str, blob: str) -> FileState | None:
    number = int(mode, 8)
    if not number:
        return None
    if stat.S_IFMT(number) not in {stat.S_IFREG, stat.S_IFLNK}:
        raise CheckpointError(f"a checkpoint contains an entry of mode {mode}, which zot does not record")
    return FileState(number, blob)


def _checked(path: str) -> str:
    """Refuse a path that would lead out of the workspace, or into its repository; git records none."""
    if any(part in {"", ".", ".."} or part.lower() == ".git" for part in path.split("/")):
        raise CheckpointError(f"a checkpoint contains the path {path!r}, which zot does not record")
    return path
