"""Tells which paths of a directory may have changed, so that a checkpoint need not look at all of them.

Linux only. The kernel's queue is read when a checkpoint asks, and not before: between checkpoints this costs nothing.
What it cannot tell for sure, it says so: then everything may have changed.
"""

import errno
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from zotd import inotify
from zotd.inotify import Inotify, InotifyEvent

MOST_DIRECTORIES = 20_000
"""Directories that are watched at most; each takes about 1 KiB of the kernel's memory."""

SHARE = 8
"""Which part of the user's watches one directory may take at most: 1 / SHARE. Editors need some, too."""

USERS_WATCHES = "/proc/sys/fs/inotify/max_user_watches"

CHANGES = (
    inotify.MODIFY
    | inotify.CLOSE_WRITE  # also of a file that was written through a mapping
    | inotify.ATTRIB
    | inotify.CREATE
    | inotify.DELETE
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.DELETE_SELF
    | inotify.MOVE_SELF
    | inotify.ONLYDIR
    | inotify.DONT_FOLLOW
)

LEAVE = inotify.UNMOUNT | inotify.DELETE_SELF | inotify.MOVE_SELF | inotify.IGNORED
"""A watched directory is not where it was."""

APPEAR = inotify.CREATE | inotify.DELETE | inotify.MOVED_FROM | inotify.MOVED_TO


class UnwatchableError(Exception):
    """The directory cannot be watched; the message says why."""


@dataclass(slots=True)
class ChangedPaths:
    """Paths that may have changed, relative to the directory.

    Attributes:
        paths: all of them.
        trees: those at which a directory has appeared or disappeared, so that everything below may have changed.
    """

    paths: set[str] = field(default_factory=set)
    trees: set[str] = field(default_factory=set)

    def add(self, more: "ChangedPaths") -> None:
        """Add other paths."""
        self.paths |= more.paths
        self.trees |= more.trees


class DirectoryWatch:
    """Watches a directory with everything in it. Used by one thread at a time."""

    def __init__(self) -> None:
        self._root = ""
        self._inotify: Inotify | None = None
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._place = (0, 0)
        self._most = 0

    def begin(self, root: str, skipped: Collection[str]) -> None:
        """Watch the directory `root`, a real path, from now on.

        Not watched are the directories in `skipped`, which end with a slash.

        Raises UnwatchableError: there are too many directories, another file system or another repository in it, or the
        system has no inotify; then nothing is watched.
        """
        self.end()
        self._root = root
        if sys.platform != "linux":
            raise UnwatchableError("the system has no inotify")
        try:
            self._most = min(MOST_DIRECTORIES, _users_watches() // SHARE)
            self._place = _place(self._root)
            self._inotify = Inotify()
            self._enter_all(skipped)
        except BaseException as error:
            self.end()
            if isinstance(error, OSError):
                raise UnwatchableError(str(error)) from error
            raise

    def end(self) -> None:
        """Watch nothing any more."""
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        self._paths.clear()
        self._watches.clear()

    def watches(self, path: str) -> bool:
        """Return whether the directory `path` is watched."""
        return path in self._watches

    def changed(self) -> ChangedPaths | None:
        """Return what may have changed since the last call, or `begin`; None: everything.

        Directories in `trees` are not watched any more: `enter` those that are there.
        """
        if self._inotify is None:
            return None
        try:
            found = self._read(self._inotify.read())
            is_there = _place(self._root) == self._place
        except OSError:
            found, is_there = None, False
        if found is None or not is_there:
            self.end()
            return None
        self.leave(found.trees)
        return found

    def enter(self, path: str) -> list[os.DirEntry[str]]:
        """Watch a directory, and return what is in it. The order matters: what appears meanwhile is reported.

        Raises UnwatchableError, as `begin`; and OSError: it cannot be read, or is not there any more.
        """
        if self._inotify is None:
            raise UnwatchableError("nothing is watched")
        if len(self._watches) >= self._most:
            raise UnwatchableError(f"{self._root} has more than {self._most:,} directories")
        place = os.path.join(self._root, path)
        try:
            watch = self._inotify.add(place, CHANGES)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise UnwatchableError("the user has too many watches (fs.inotify.max_user_watches)") from error
            raise
        if self._paths.setdefault(watch, path) != path:
            raise UnwatchableError(f"{place} was moved while it was looked at")
        self._watches[path] = watch
        if _place(place)[0] != self._place[0]:
            raise UnwatchableError(f"{place} is on another file system")
        with os.scandir(place) as entries:
            return list(entries)

    def leave(self, trees: Collection[str]) -> None:
        """Stop watching directories with all that is in them, given without a slash at their ends."""
        if not trees or self._inotify is None:
            return
        gone = [path for path in self._watches if any(above in trees for above in ancestors(path))]
        for path in gone:
            watch = self._watches.pop(path)
            self._paths.pop(watch, None)
            self._inotify.remove(watch)

    def _enter_all(self, skipped: Collection[str]) -> None:
        waiting = [""]
        while waiting:
            path = waiting.pop()
            try:
                entries = self.enter(path)
            except (FileNotFoundError, NotADirectoryError):
                if not path:
                    raise
                continue  # it has gone since its parent was listed, which is reported
            for entry in entries:
                if is_git(entry.name) and (path or entry.name != ".git"):
                    raise UnwatchableError(f"{entry.path} may be a repository of its own")
            inner = [f"{path}{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=False)]
            waiting += [one for one in inner if one not in skipped and one != ".git/"]

    def _read(self, events: Iterable[InotifyEvent]) -> ChangedPaths | None:
        found = ChangedPaths()
        for event in events:
            if event.mask & inotify.OVERFLOW:
                return None
            folder = self._paths.get(event.watch)
            if folder is None or any(above in found.trees for above in ancestors(folder)):
                continue  # it was left before, or is looked at as a whole
            if not event.name:
                if not event.mask & LEAVE:
                    continue  # its parent reports what has become of it
                if not folder or event.mask & inotify.UNMOUNT:
                    return None
            path = f"{folder}{event.name}".removesuffix("/")
            found.paths.add(path)
            if not event.name or (event.mask & inotify.ISDIR and event.mask & APPEAR):
                found.trees.add(path)
        return found


def ancestors(path: str) -> Iterator[str]:
    """Yield the directories on the way to a path, the outermost first; and the path itself, without a slash at its end."""
    end = path.find("/")
    while end != -1:
        yield path[:end]
        end = path.find("/", end + 1)
    if path and not path.endswith("/"):
        yield path


def is_git(name: str) -> bool:
    """Return whether git takes a name for that of a repository, in any case."""
    return name.lower() == ".git"


def _place(path: str) -> tuple[int, int]:
    """Return file system and inode of a path."""
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _users_watches() -> int:
    with suppress(OSError, ValueError), open(USERS_WATCHES, encoding="ascii") as file:
        return int(file.read())
    return 0
