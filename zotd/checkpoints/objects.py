"""Reads and writes the objects of a shadow repository without git, each as a file: starting git takes longer.

What is in a pack is left to git. The caller holds the lock of the workspace when it writes.
"""

import hashlib
import os
import zlib
from collections.abc import Mapping
from typing import Literal, NamedTuple

from zotd.checkpoints.shadow import EMPTY_TREE, ShadowRepository

NAME_CHARS = 40
"""Length of an object's name, in hexadecimal."""

NAME_BYTES = NAME_CHARS // 2

KNOWN_ENTRIES = 20_000
"""Entries of trees that are kept in memory at most, about 4 MB."""

Kind = Literal["blob", "tree", "commit"]


class RecordedEntry(NamedTuple):
    """An entry of a tree: its mode, as git has it, and the name of its object."""

    mode: int
    name: str


Tree = Mapping[bytes, RecordedEntry]
"""A directory: its entries by their names."""

DIRECTORY = 0o040000


def read(repository: ShadowRepository, name: str) -> bytes | None:
    """Return the content of an object; None if it has no file of its own, or that cannot be read."""
    try:
        with open(_place(repository, name), "rb") as file:
            return zlib.decompress(file.read()).partition(b"\0")[2]
    except (OSError, zlib.error):
        return None


def write(repository: ShadowRepository, kind: Kind, content: bytes) -> str:
    """Store an object, and return its name; a file that is there is kept."""
    head = b"%s %d\0" % (kind.encode(), len(content))
    digest = hashlib.sha1(head, usedforsecurity=False)
    digest.update(content)
    name = digest.hexdigest()
    place = _place(repository, name)
    if not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        draft = f"{place}.draft"
        with open(draft, "wb") as file:
            file.write(zlib.compress(head + content, 1))
        os.replace(draft, place)
    return name


class Trees:
    """The trees of shadow repositories; keeps in memory what was used last."""

    def __init__(self) -> None:
        self._known: dict[str, Tree] = {}
        """By name, what was used last at the end."""
        self._entries = 0

    def get(self, repository: ShadowRepository, name: str) -> Tree:
        """Return the tree with this name; raises CheckpointError if it is lost."""
        found = self._known.get(name)
        if found is None:
            content = b"" if name == EMPTY_TREE else read(repository, name)
            found = _entries(repository.run("cat-file", "tree", name) if content is None else content)
        self._keep(name, found)
        return found

    def put(self, repository: ShadowRepository, tree: Tree) -> str:
        """Store a tree, and return its name."""
        ordered = sorted(tree.items(), key=lambda one: one[0] + b"/" if one[1].mode == DIRECTORY else one[0])
        content = b"".join(b"%o %s\0%s" % (entry.mode, name, bytes.fromhex(entry.name)) for name, entry in ordered)
        made = write(repository, "tree", content)
        self._keep(made, tree)
        return made

    def _keep(self, name: str, tree: Tree) -> None:
        self._entries += len(tree) - len(self._known.pop(name, ()))
        self._known[name] = tree
        while self._entries > KNOWN_ENTRIES and len(self._known) > 1:
            self._entries -= len(self._known.pop(next(iter(self._known))))


def _entries(content: bytes) -> Tree:
    found = {}
    start = 0
    while start < len(content):
        end = content.index(b"\0", start)
        mode, _, name = content[start:end].partition(b" ")
        start = end + 1 + NAME_BYTES
        found[name] = RecordedEntry(int(mode, 8), content[end + 1 : start].hex())
    return found


def _place(repository: ShadowRepository, name: str) -> str:
    return os.path.join(repository.folder, "objects", name[:2], name[2:])
