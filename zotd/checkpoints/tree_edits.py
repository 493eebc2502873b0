"""Makes the tree of a workspace from that of an earlier state: only the directories on the way to changes are written."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from zotd.checkpoints.objects import DIRECTORY, RecordedEntry, Trees
from zotd.checkpoints.shadow import EMPTY_TREE, ShadowRepository


@dataclass(slots=True)
class _Edited:
    """What changes in a directory."""

    files: dict[bytes, RecordedEntry | None] = field(default_factory=dict)
    """None: it is gone."""
    folders: "dict[bytes, _Edited]" = field(default_factory=dict)


class RecordedTree:
    """The tree of a recorded state."""

    def __init__(self, repository: ShadowRepository, trees: Trees, name: str) -> None:
        """`name`: of the tree's object."""
        self._repository = repository
        self._trees = trees
        self._name = name

    def entry(self, path: str) -> RecordedEntry | None:
        """Return what is recorded at a path: a file, a link or a directory; None: nothing."""
        found: RecordedEntry | None = RecordedEntry(DIRECTORY, self._name)
        for part in path.split("/"):
            if found is None or found.mode != DIRECTORY:
                return None
            found = self._trees.get(self._repository, found.name).get(os.fsencode(part))
        return found

    def files_below(self, path: str) -> Iterator[str]:
        """Yield the paths of the files and links that are recorded in a directory."""
        found = self.entry(path)
        if found is None or found.mode != DIRECTORY:
            return
        for name, entry in self._trees.get(self._repository, found.name).items():
            inner = f"{path}/{os.fsdecode(name)}"
            if entry.mode == DIRECTORY:
                yield from self.files_below(inner)
            else:
                yield inner

    def edited(self, edits: Mapping[str, RecordedEntry | None]) -> str:
        """Store the tree with these files and links at these paths, and without those that are None; return its name."""
        top = _Edited()
        for path, entry in edits.items():
            *folders, name = map(os.fsencode, path.split("/"))
            inside = top
            for folder in folders:
                inside = inside.folders.setdefault(folder, _Edited())
            inside.files[name] = entry
        return self._edited(self._name, top) or self._trees.put(self._repository, {})

    def _edited(self, name: str, changes: _Edited) -> str | None:
        """Return the name of the tree with the changes; None if it is empty, and not recorded then."""
        entries = dict(self._trees.get(self._repository, name))
        for part, folder in changes.folders.items():
            present = entries.pop(part, None)
            inner = self._edited(present.name if present and present.mode == DIRECTORY else EMPTY_TREE, folder)
            if inner is not None:
                entries[part] = RecordedEntry(DIRECTORY, inner)
        for part, entry in changes.files.items():
            if entry is not None:
                entries[part] = entry
            elif part not in changes.folders:
                entries.pop(part, None)
        return self._trees.put(self._repository, entries) if entries else None
