"""Reads and writes the commits of a shadow repository without git, each as a file: starting git takes longer.

A commit names a tree and the commit before it; its message is a checkpoint. The caller holds the lock of the workspace
when it writes. What is in a pack is left to git.
"""

import hashlib
import os
import zlib

from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.shadow import REF, ShadowRepository

AUTHOR = "zot <zot@localhost>"

NAME_CHARS = 40
"""Length of an object's name, in hexadecimal."""


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
    try:
        with open(_place(repository, name), "rb") as file:
            content = zlib.decompress(file.read())
    except (OSError, zlib.error):
        return None
    head, _, message = content.partition(b"\0")[2].partition(b"\n\n")
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
    content = b"commit %d\0" % len(body) + body
    name = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    place = _place(repository, name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    draft = f"{place}.draft"
    with open(draft, "wb") as file:
        file.write(zlib.compress(content, 1))
    os.replace(draft, place)
    repository.write(REF, f"{name}\n")
    return name


def _place(repository: ShadowRepository, name: str) -> str:
    return os.path.join(repository.folder, "objects", name[:2], name[2:])
