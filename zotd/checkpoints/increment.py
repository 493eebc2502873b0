"""Finds the present state of a workspace from an earlier one, by looking only at the paths that may have changed.

It means exactly what a scan means. What it cannot decide without all the others, it leaves to a scan (`ScanNeededError`):
changed ignore rules, repositories in the workspace, recorded files that are ignored or left out from now on, and too
many changes.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from zotd.checkpoints import objects
from zotd.checkpoints.directory_watch import ChangedPaths, DirectoryWatch, ancestors, is_git
from zotd.checkpoints.judging import PresentState, RecordingLimits, check_amount, judged
from zotd.checkpoints.left_out import Omission, Why
from zotd.checkpoints.objects import DIRECTORY, RecordedEntry, Trees
from zotd.checkpoints.shadow import ShadowRepository
from zotd.checkpoints.tree_edits import RecordedTree
from zotd.checkpoints.trees import EXECUTABLE, LINK, REGULAR

MOST_PATHS = 1000
"""Paths that are looked at one by one; with more of them, a scan is quicker."""


class ScanNeededError(Exception):
    """The changes alone do not tell the present state; the message says why."""


@dataclass(slots=True)
class _Found:
    """What is now at the paths that may have changed.

    Attributes:
        files: files and links.
        ignored: those of them that are ignored, and ignored directories, which end with a slash.
        gone: recorded paths at which no file is any more.
        replaced: paths whose omissions do not hold any more; what is below them, too.
    """

    files: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)


class Increment:
    """Looks at changes since an earlier state; its caller holds the lock of the workspace."""

    def __init__(
        self,
        repository: ShadowRepository,
        limits: RecordingLimits,
        earlier: PresentState,
        *,
        watch: DirectoryWatch,
        trees: Trees,
    ) -> None:
        """`earlier`: a state that is recorded; `watch`: has watched the workspace since then."""
        self._repository = repository
        self._limits = limits
        self._earlier = earlier
        self._recorded = RecordedTree(repository, trees, earlier.tree)
        self._watch = watch

    def state(self, changes: ChangedPaths) -> PresentState:
        """Return the present state, of which all differences are in `changes`; watch directories that are new in it.

        Raises:
            ScanNeededError: the changes do not tell.
            UnwatchableError, OSError: a new directory cannot be watched or read.
            CheckpointError: git failed, or the state cannot be recorded.
        """
        found = self._look(changes)
        added = {path: Omission(path, Why.IGNORED) for path in found.ignored}
        edits: dict[str, RecordedEntry | None] = dict.fromkeys(found.gone)
        new_bytes = new_files = 0
        for path in sorted(found.files - found.ignored):
            recorded = self._recorded_file(path)
            judgement = judged(self._repository.workspace, path, self._limits.file_bytes)
            if isinstance(judgement, Omission):
                if recorded is not None:
                    raise ScanNeededError(f"{path} was recorded and is left out now")
                added[path] = judgement
                continue
            entry = self._stored(path)
            if entry != recorded:
                edits[path] = entry
                new_bytes += judgement
                new_files += (entry is not None) - (recorded is not None)
        files = self._earlier.files + new_files - len(found.gone)
        check_amount(self._repository, self._limits, files=files, new_bytes=new_bytes)
        tree = self._recorded.edited(edits) if edits else self._earlier.tree
        return PresentState(tree, self._omissions(found.replaced, added, changes.trees), files, len(edits))

    # --- looking ----------------------------------------------------------------------------------------------

    def _look(self, changes: ChangedPaths) -> _Found:
        found = _Found()
        folders: list[str] = []
        for path in _outermost(changes, self._earlier.omissions):
            if path == ".git":
                continue  # the user's repository: no part of any checkpoint
            if path.rpartition("/")[2] == ".gitignore" or any(map(is_git, path.split("/"))):
                raise ScanNeededError(f"{path} decides what is recorded")
            if self._look_at(path, found, is_tree=path in changes.trees):
                folders.append(path)
        self._enter(folders, found)
        found.gone = {path for path in found.gone - found.files if self._recorded_file(path) is not None}
        if self._ignored(found.gone):
            raise ScanNeededError("a recorded file was ignored, and is gone")
        return found

    def _look_at(self, path: str, found: _Found, *, is_tree: bool) -> bool:
        """Look at a path; return whether it is a directory with contents that must be looked at."""
        try:
            mode = os.lstat(os.path.join(self._repository.workspace, path)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            mode = 0
        is_folder = stat.S_ISDIR(mode)
        if is_folder and not is_tree and self._watch.watches(f"{path}/"):
            if not os.access(os.path.join(self._repository.workspace, path), os.R_OK | os.X_OK):
                raise ScanNeededError(f"{path} cannot be read any more")
            return False
        found.replaced.add(path)
        self._lose(path, found)
        if not is_folder:
            self._take(path, mode, found.files)
        return is_folder

    def _take(self, path: str, mode: int, files: set[str]) -> None:
        """Add what is at a path, and is no directory, to `files`; what git does not see is left."""
        if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            files.add(path)
        elif mode and self._recorded_file(path) is not None:
            raise ScanNeededError(f"{path} was recorded and cannot be any more")

    def _lose(self, path: str, found: _Found) -> None:
        """Take what is recorded at a path, and below it, for gone, until it is found."""
        found.gone.add(path)
        for inner in self._recorded.files_below(path):
            found.gone.add(inner)
            if len(found.gone) > MOST_PATHS:
                raise ScanNeededError("too much is gone")

    def _enter(self, folders: Sequence[str], found: _Found) -> None:
        """Look at everything in directories that are not watched yet, level by level: nothing ignored is entered."""
        files = set(found.files)
        while folders or files:
            new = [path for path in files if self._recorded_file(path) is None]
            ignored = self._ignored([*folders, *new])
            found.ignored |= ignored & files
            files = set()
            inner: list[str] = []
            for folder in folders:
                if folder in ignored:
                    self._leave_out(folder, found)
                else:
                    inner += self._take_files(folder, files)
            found.files |= files
            if len(found.files) > MOST_PATHS or len(inner) > MOST_PATHS:
                raise ScanNeededError("too much is new")
            folders = inner

    def _leave_out(self, folder: str, found: _Found) -> None:
        """Take a directory for ignored."""
        if any(self._recorded.files_below(folder)):
            raise ScanNeededError(f"{folder} is ignored, and something in it is recorded")
        found.ignored.add(f"{folder}/")

    def _take_files(self, folder: str, files: set[str]) -> list[str]:
        """Watch a directory, add what is in it to `files`, and return the directories in it."""
        inner = []
        for entry in self._entries(folder):
            path = f"{folder}/{entry.name}"
            if is_git(entry.name):
                raise ScanNeededError(f"{folder} may be a repository of its own")
            if entry.is_dir(follow_symlinks=False):
                inner.append(path)
            else:
                self._take(path, entry.stat(follow_symlinks=False).st_mode, files)
        return inner

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            return self._watch.enter(f"{folder}/")
        except (FileNotFoundError, NotADirectoryError):  # it has gone since, which the next recording sees
            return []

    def _ignored(self, paths: Iterable[str]) -> set[str]:
        """Return those of some paths that are ignored, also because a directory above them is."""
        asked = b"".join(b"./%s\0" % os.fsencode(path) for path in paths)  # else a colon at its beginning has a meaning
        if not asked:
            return set()
        none_is_ignored = 1
        printed = self._repository.run(
            "check-ignore", "--no-index", "--stdin", "-z", stdin=asked, no_error=none_is_ignored
        )
        return {os.fsdecode(path.removeprefix(b"./")) for path in printed.split(b"\0") if path}

    # --- recording --------------------------------------------------------------------------------------------

    def _recorded_file(self, path: str) -> RecordedEntry | None:
        found = self._recorded.entry(path)
        return None if found is None or found.mode == DIRECTORY else found

    def _stored(self, path: str) -> RecordedEntry | None:
        """Store the content of a file or link, and return its entry; None if it is gone."""
        place = os.path.join(self._repository.workspace, path)
        try:
            mode = os.lstat(place).st_mode
            if stat.S_ISLNK(mode):
                return RecordedEntry(LINK, objects.write(self._repository, "blob", os.fsencode(os.readlink(place))))
            descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            content = file.read(self._limits.file_bytes + 1)
        if found.st_nlink > 1:  # the kernel reports the name that was used, and none of the others
            raise ScanNeededError(f"{path} has another name, under which it has changed, too")
        if not stat.S_ISREG(found.st_mode) or len(content) > self._limits.file_bytes:
            raise ScanNeededError(f"{path} changed while it was looked at")
        kind = EXECUTABLE if found.st_mode & stat.S_IXUSR else REGULAR
        return RecordedEntry(kind, objects.write(self._repository, "blob", content))

    def _omissions(
        self, replaced: Collection[str], added: Mapping[str, Omission], trees: Collection[str]
    ) -> Mapping[str, Omission]:
        kept = dict(self._earlier.omissions)
        for path in replaced:
            kept.pop(path, None)
        if trees:
            kept = {path: one for path, one in kept.items() if not any(above in trees for above in ancestors(path))}
        kept.update(added)
        return self._earlier.omissions if kept == self._earlier.omissions else kept


def _outermost(changes: ChangedPaths, omissions: Collection[str]) -> list[str]:
    """Return the changed paths in order, without those in a directory that is left out or looked at as a whole."""
    if len(changes.paths) > MOST_PATHS:
        raise ScanNeededError("too much has changed")
    return [
        path
        for path in sorted(changes.paths)
        if not any(above != path and (above in changes.trees or f"{above}/" in omissions) for above in ancestors(path))
    ]
