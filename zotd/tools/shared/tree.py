"""Walks a directory tree without the files that git ignores."""

import os
import threading
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from zotd.tools.shared.ignore import Rules, is_ignored, rules_above, rules_in

WALK_ENTRIES = 200_000
"""Limit of directory entries in one walk, which takes a few seconds."""


class DirectoryWalk:
    """Iterates over the files and symbolic links of a directory, relative to `root`, sorted by the names in their path.

    Does not follow symbolic links; skips `.git` and unreadable directories. A root that is itself ignored was named on
    purpose, so only `.gitignore` files inside it are applied.
    """

    def __init__(
        self,
        root: Path,
        *,
        hidden: bool,
        abandoned: threading.Event,
        max_entries: int = WALK_ENTRIES,
        skipped: Collection[str] = (),
    ) -> None:
        """Prepare a walk.

        Args:
            root: the directory to walk.
            hidden: include names with a leading dot.
            abandoned: ends the iteration early when it is set.
            max_entries: limit of directory entries.
            skipped: names of directories that are never entered.
        """
        self.cut = False
        """The walk ended early because of `max_entries`."""
        self._root = root
        self._hidden = hidden
        self._abandoned = abandoned
        self._left = max_entries
        self._skipped = skipped
        # Rules of parent directories apply too, up to the root of the repository.
        top = repository_of(root) or root
        self._above = root.relative_to(top).parts
        self._rules = rules_above(self._above, top)

    def __iter__(self) -> Iterator[str]:
        # A stack instead of recursion, because a path may have two thousand names. Paths of folders end with a slash.
        stack: list[tuple[str, tuple[Rules, ...]]] = [("", self._rules)]
        while stack:
            path, rules = stack.pop()
            if path and not path.endswith("/"):
                yield path
            elif self._abandoned.is_set() or self.cut:
                return
            else:
                rules = (*rules_in(self._root / path, len(self._above) + path.count("/")), *rules)
                stack += [(child, rules) for child in self._children(path, rules)]

    def _children(self, folder: str, rules: tuple[Rules, ...]) -> list[str]:
        """List a folder without excluded entries, in reverse order for the stack."""
        try:
            with os.scandir(self._root / folder) as entries:
                # Bounded before sorting, because a directory may have millions of entries.
                listed = list(islice(entries, self._left))
        except OSError:
            return []
        self._left -= len(listed)
        self.cut = self._left <= 0
        listed.sort(key=lambda entry: entry.name, reverse=True)
        above = (*self._above, *folder.split("/")[:-1])
        children: list[str] = []
        for entry in listed:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and entry.name in self._skipped:
                continue
            if self._is_wanted(entry.name) and not is_ignored((*above, entry.name), rules, is_folder=is_folder):
                children.append(f"{folder}{entry.name}/" if is_folder else folder + entry.name)
        return children

    def _is_wanted(self, name: str) -> bool:
        return name != ".git" and (self._hidden or not name.startswith("."))


def repository_of(path: Path) -> Path | None:
    """Return the root of the git repository that contains `path`, or None."""
    return next((folder for folder in (path, *path.parents) if os.path.lexists(folder / ".git")), None)
