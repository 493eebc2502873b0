"""The copies whose state a directory had: what its files were before others changed them at another place."""

import os
from collections.abc import Mapping
from contextlib import suppress

from zotd.checkpoints import objects, workspace_copy
from zotd.checkpoints.shadow import ShadowRepository
from zotd.checkpoints.workspace_copy import WorkspaceCopy

FOLDER = "refs/zot/known"
"""Where a shadow repository has them: a reference for each, named by its commit."""

MOST = 32
"""Copies that a directory remembers: enough for its sessions, and each keeps the contents of its files."""

NAME = "zot-name"
"""File with the random name of the directory."""


class KnownCopies:
    """Those of one directory, and its name in them; the caller holds the lock of the workspace when it changes them."""

    def __init__(self, repository: ShadowRepository) -> None:
        """`repository`: the shadow repository of the directory."""
        self._repository = repository
        self._folder = os.path.join(repository.folder, FOLDER)

    @property
    def is_empty(self) -> bool:
        """The directory had none, as far as is known."""
        return not os.path.isdir(self._folder)

    def all(self) -> list[WorkspaceCopy]:
        """Return the copies, the newest last; forgets all but `MOST`."""
        try:
            names = sorted(os.listdir(self._folder), key=lambda name: os.stat(self._place(name)).st_mtime_ns)
        except FileNotFoundError:
            return []
        names = [name for name in names if len(name) == objects.NAME_CHARS]
        for name in names[:-MOST]:
            os.unlink(self._place(name))
        return [workspace_copy.read(self._repository, name) for name in names[-MOST:]]

    def add(self, copy: WorkspaceCopy) -> None:
        """Remember that the directory had the state of this copy."""
        os.makedirs(self._folder, exist_ok=True)
        self._repository.write(os.path.join(FOLDER, copy.commit), f"{copy.commit}\n")

    def base_of(self, copy: WorkspaceCopy) -> WorkspaceCopy | None:
        """Return the newest one that is part of the history of `copy`; None if none is."""
        return next((one for one in reversed(self.all()) if copy.facts.contains(one.facts)), None)

    def next_versions(self) -> Mapping[str, int]:
        """Return the versions of a copy of the present state."""
        versions: dict[str, int] = {}
        for one in self.all():
            for name, number in one.facts.versions.items():
                versions[name] = max(number, versions.get(name, 0))
        own = self.own_name()
        versions[own] = versions.get(own, 0) + 1
        return versions

    def own_name(self) -> str:
        """Return the random name of this directory of this home."""
        with (
            suppress(FileNotFoundError),
            open(os.path.join(self._repository.folder, NAME), encoding="ascii") as file,
        ):
            return file.read().strip()
        name = os.urandom(8).hex()
        self._repository.write(NAME, f"{name}\n")
        return name

    def _place(self, name: str) -> str:
        return os.path.join(self._folder, name)
