"""Reports when files in some directories may have changed, such as the code of a workspace after a `git pull`.

Linux only, with one inotify queue for all. Where inotify is missing or there are too many directories, `watch`
returns False and the caller has to compare the files itself.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path

from msgspec import Struct, field

from zotd import inotify
from zotd.exthost.directory_events import DirectoryEvents
from zotd.inotify import Inotify

CHANGES = (
    inotify.ATTRIB
    | inotify.CLOSE_WRITE
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.CREATE
    | inotify.DELETE
    | inotify.DELETE_SELF
    | inotify.MOVE_SELF
    | inotify.ONLYDIR
)

MAX_DIRECTORIES = 1_000
"""Limit of one watcher. A larger tree, such as one of dependencies, is compared when a run starts instead."""

QUIET_S = 0.1
"""Delay between the first event and the callback: `git pull` writes many files one after the other."""

PAUSE_S = 1.0
"""Shortest time between two callbacks of one watcher: comparing thousands of files takes up to a second."""

Spawn = Callable[[str, Coroutine[object, object, None]], None]
"""Starts a named task; the callee owns it and logs its failure."""

Places = Mapping[Path, Collection[str] | None]
"""Directories, each with the names in it that are watched; None: all names."""


class _Watcher(Struct, eq=False):
    places: Callable[[], Places]
    changed: Callable[[], Coroutine[object, object, None]]
    names: dict[int, Collection[str] | None] = field(default_factory=dict)
    """Watched names by watch."""
    is_arming: bool = False
    """A thread is adding directories whose watches are not in `names` yet."""
    has_stirred: bool = False
    is_telling: bool = False


class Changes:
    """Watches directories for changed files. Belongs to one event loop."""

    def __init__(self, spawn: Spawn) -> None:
        """Use `spawn` to start the tasks that call back."""
        self._spawn = spawn
        self._events = DirectoryEvents(self._stirred, "changed files are only found when a run starts")
        self._watchers: dict[str, _Watcher] = {}

    async def watch(
        self, key: str, places: Callable[[], Places], changed: Callable[[], Coroutine[object, object, None]]
    ) -> bool:
        """Run `changed` whenever something in `places` may have changed, until `forget`.

        `places` is evaluated again after each change, in a thread. Returns False if the directories cannot be watched.
        """
        queue = self._events.opened()
        if queue is None:
            return False
        watcher = self._watchers[key] = _Watcher(places, changed)
        if await self._arm(watcher, queue):
            return True
        self.forget(key)
        return False

    def forget(self, key: str) -> None:
        """Stop watching for `key`; does nothing if there is no such watcher."""
        gone = self._watchers.pop(key, None)
        if gone is None or self._events.queue is None:
            return
        # Watchers of the same directory share a watch; it is removed with the last of them.
        used = {watch for watcher in self._watchers.values() for watch in watcher.names}
        for watch in gone.names.keys() - used:
            self._events.queue.remove(watch)

    def close(self) -> None:
        """Close the queue of events; no callback is called any more."""
        self._watchers.clear()
        self._events.close()

    async def _arm(self, watcher: _Watcher, queue: Inotify) -> bool:
        """Watch the directories that exist now; return False if there are too many."""
        watcher.is_arming = True
        try:
            found = await asyncio.to_thread(_add, queue, watcher.places)
        finally:
            watcher.is_arming = False
        if found is None:
            return False
        # Watches of removed directories stay until `forget`: the kernel does not reuse their numbers.
        watcher.names.update(found)
        return True

    def _stirred(self, queue: Inotify) -> None:
        found = list(queue.read())
        for watcher in list(self._watchers.values()):
            # After an overflow events are missing, so every watcher has to compare.
            if any(mask & inotify.OVERFLOW or self._concerns(watcher, one, name) for one, mask, name in found):
                self._notice(watcher, queue)

    def _concerns(self, watcher: _Watcher, watch: int, name: str) -> bool:
        if watch not in watcher.names:
            # A directory that is being added: its watcher is not known yet, and one superfluous comparison is cheap.
            return watcher.is_arming and not any(watch in other.names for other in self._watchers.values())
        names = watcher.names[watch]
        # Events about the directory itself have no name; they always count.
        return names is None or not name or name in names

    def _notice(self, watcher: _Watcher, queue: Inotify) -> None:
        watcher.has_stirred = True
        if not watcher.is_telling:
            watcher.is_telling = True
            self._spawn("look at changed files", self._tell(watcher, queue))

    async def _tell(self, watcher: _Watcher, queue: Inotify) -> None:
        try:
            while watcher.has_stirred and watcher in self._watchers.values():
                await asyncio.sleep(QUIET_S)
                watcher.has_stirred = False
                # Watch first and compare afterwards: a change in between causes another event.
                await self._arm(watcher, queue)
                await watcher.changed()
                await asyncio.sleep(PAUSE_S - QUIET_S)
        finally:
            watcher.is_telling = False


def tree(directory: Path) -> list[Path]:
    """Return a directory and its subdirectories without following links, at most `MAX_DIRECTORIES` + 1. Blocks."""
    found: list[Path] = []
    for folder, folders, _ in os.walk(directory):
        found.append(Path(folder))
        # Both change constantly while git and Python work, and are no part of what is trusted.
        folders[:] = [name for name in folders if name not in {".git", "__pycache__"}]
        # One more than allowed is enough for the caller to see that there are too many.
        if len(found) > MAX_DIRECTORIES:
            break
    return found


def _add(queue: Inotify, places: Callable[[], Places]) -> dict[int, Collection[str] | None] | None:
    wanted = places()
    if len(wanted) > MAX_DIRECTORIES:
        return None
    found: dict[int, Collection[str] | None] = {}
    for directory, names in wanted.items():
        try:
            found[queue.add(str(directory), CHANGES)] = names
        except OSError as error:
            # A missing directory is no failure: when it is created, its parent reports a change and it is watched then.
            if error.errno in {errno.ENOSPC, errno.EBADF}:
                return None  # the user's limit of watches, or the queue is closed
    return found
