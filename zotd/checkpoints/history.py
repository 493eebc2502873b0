"""Reads the checkpoints of a shadow repository: each is a commit whose parent is the checkpoint before it."""

import os

import msgspec

from zotd.checkpoints import commits
from zotd.checkpoints.checkpoint import Checkpoint, decoded
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.shadow import REF, ShadowRepository


def newest(repository: ShadowRepository) -> Checkpoint | None:
    """Return the last checkpoint; None if there is none."""
    name = commits.newest(repository)
    if name is None:
        return None
    found = commits.read(repository, name)
    if found is None:
        return next(iter(checkpoints(repository, limit=1)), None)
    try:
        return decoded(name, *found)
    except msgspec.MsgspecError as error:
        raise _damage(repository) from error


def checkpoints(repository: ShadowRepository, *, limit: int | None = None) -> list[Checkpoint]:
    """Return the checkpoints, newest first, at most `limit`; none if there is no shadow repository yet."""
    if not os.path.exists(os.path.join(repository.folder, REF)):
        return []
    bound = () if limit is None else (f"--max-count={limit}",)
    printed = repository.run("log", "--first-parent", "-z", "--format=%H%n%T%n%B", *bound, REF, "--")
    try:
        return [_of(entry) for entry in printed.split(b"\0") if entry]
    except (ValueError, msgspec.MsgspecError) as error:
        raise _damage(repository) from error


def _damage(repository: ShadowRepository) -> CheckpointError:
    return CheckpointError(
        f"the checkpoints of {repository.workspace} are damaged: remove {repository.folder} to begin anew"
    )


def _of(entry: bytes) -> Checkpoint:
    commit, tree, message = entry.split(b"\n", 2)
    return decoded(commit.decode(), tree.decode(), message)
