"""Reads and writes the commits of a shadow repository (`objects`).

A commit names a tree and the commit before it; its message is a checkpoint. The caller holds the lock of the workspace
when it writes.
"""

import os

from zotd.checkpoints import objects
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.objects import NAME_CHARS
from zotd.checkpoints.shadow import REF, ShadowRepository

AUTHOR = "zot <zot@localhost>"


def newest(repository: ShadowRepository) -> str | None:
    """Return the name of the last commit; None if there is none."""
    try:
        with open(os.path.join(repository.folder, REF), encoding="ascii") as file:  # nothing of ours packs references
            name = file.read().strip()
    except FileNotFoundError:
        return None
    if len(name) != NAME_CHARS:
        raise CheckpointError(
            f"the checkpoints of {repository.workspace} are damaged: remove {repository.folder} to begin anew"
        )
    return name


def read(repository: ShadowRepository, name: str) -> tuple[str, bytes] | None:
    """Return tree and message of a commit; None if it has no file of its own, or that cannot be read."""
    content = objects.read(repository, name)
    if content is None:
        return None
    head, _, message = content.partition(b"\n\n")
    key, _, tree = head.partition(b"\n")[0].partition(b" ")
    return (tree.decode(), message) if key == b"tree" and len(tree) == NAME_CHARS else None


def append(repository: ShadowRepository, tree: str, parent: str | None, message: bytes, *, seconds: int) -> str:
    """Add a commit behind the last one, `parent`, and return its name.

    Args:
        repository: where to.
        tree: name of its tree.
        parent: None: it is the first one.
        message: of the commit.
        seconds: its time, since the epoch.
    """
    when = f"{AUTHOR} {max(0, seconds)} +0000"  # git refuses a time before 1970
    before = f"parent {parent}\n" if parent else ""
    body = f"tree {tree}\n{before}author {when}\ncommitter {when}\n\n".encode() + message
    name = objects.write(repository, "commit", body)
    repository.write(REF, f"{name}\n")
    return name
