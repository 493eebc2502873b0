"""Reports when files in some directories may have changed, such as the code of a workspace after a `git pull`.

Linux only, with one inotify descriptor for all. Where inotify is missing or there are too many directories, `watch`
returns False and the caller has to compare the files itself.
"""

import asyncio
import ctypes
import errno
import logging
import os
import struct
import sys
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from zotd.process import descriptors

log = logging.getLogger(__name__)

IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO = 0x4, 0x8, 0x40, 0x80
IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF = 0x100, 0x200, 0x400, 0x800
IN_Q_OVERFLOW, IN_ONLYDIR = 0x4000, 0x01000000
CHANGES = (
    IN_ATTRIB
    | IN_CLOSE_WRITE
    | IN_MOVED_FROM
    | IN_MOVED_TO
    | IN_CREATE
    | IN_DELETE
    | IN_DELETE_SELF
    | IN_MOVE_SELF
    | IN_ONLYDIR
)

MAX_DIRECTORIES = 1_000
"""Limit of one watcher. A larger tree, such as one of dependencies, is compared when a run starts instead."""

QUIET_S = 0.1
"""Delay between the first event and the callback: `git pull` writes many files one after the other."""

PAUSE_S = 1.0
"""Shortest time between two callbacks of one watcher: comparing thousands of files takes up to a second."""

READ_BYTES = 64 * 1024

# struct inotify_event: wd, mask, cookie, len; the name of `len` bytes follows, padded with NUL.
_HEAD = struct.Struct("iIII")

Spawn = Callable[[str, Coroutine[object, object, None]], None]
"""Starts a named task; the callee owns it and logs its failure."""

Places = Mapping[Path, Collection[str] | None]
"""Directories, each with the names in it that are watched; None: all names."""


@dataclass(slots=True, eq=False)
class _Watcher:
    places: Callable[[], Places]
    changed: Callable[[], Coroutine[object, object, None]]
    names: dict[int, Collection[str] | None] = field(default_factory=dict)
    """Watched names by inotify watch descriptor."""
    is_arming: bool = False
    """A thread is adding directories whose descriptors are not in `names` yet."""
    has_stirred: bool = False
    is_telling: bool = False


class Changes:
    """Watches directories for changed files. Belongs to one event loop."""

    def __init__(self, spawn: Spawn) -> None:
        """Use `spawn` to start the tasks that call back."""
        self._spawn = spawn
        self._fd = -1
        self._watchers: dict[str, _Watcher] = {}
        self._is_closed = False

    async def watch(
        self, key: str, places: Callable[[], Places], changed: Callable[[], Coroutine[object, object, None]]
    ) -> bool:
        """Run `changed` whenever something in `places` may have changed, until `forget`.

        `places` is evaluated again after each change, in a thread. Returns False if the directories cannot be watched.
        """
        if sys.platform != "linux" or self._is_closed or not self._open():
            return False
        watcher = self._watchers[key] = _Watcher(places, changed)
        if await self._arm(watcher):
            return True
        self.forget(key)
        return False

    def forget(self, key: str) -> None:
        """Stop watching for `key`; does nothing if there is no such watcher."""
        gone = self._watchers.pop(key, None)
        if gone is None or self._fd < 0:
            return
        # Watchers of the same directory share a descriptor; it is removed with the last of them.
        used = {descriptor for watcher in self._watchers.values() for descriptor in watcher.names}
        for descriptor in gone.names.keys() - used:
            ctypes.CDLL(None).inotify_rm_watch(self._fd, descriptor)

    def close(self) -> None:
        """Close the inotify descriptor; no callback is called any more."""
        self._is_closed = True
        self._watchers.clear()
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            descriptors.close_soon(self._fd)
            self._fd = -1

    def _open(self) -> bool:
        if self._fd < 0:
            self._fd = ctypes.CDLL(None, use_errno=True).inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
            if self._fd < 0:
                log.warning("changed files are only found when a run starts: %s", os.strerror(ctypes.get_errno()))
                return False
            asyncio.get_running_loop().add_reader(self._fd, self._stirred)
        return True

    async def _arm(self, watcher: _Watcher) -> bool:
        """Watch the directories that exist now; return False if there are too many."""
        watcher.is_arming = True
        try:
            found = await asyncio.to_thread(_add, self._fd, watcher.places)
        finally:
            watcher.is_arming = False
        if found is None:
            return False
        # Descriptors of removed directories stay until `forget`: the kernel does not reuse their numbers.
        watcher.names.update(found)
        return True

    def _stirred(self) -> None:
        with suppress(BlockingIOError):
            found = list(_events(os.read(self._fd, READ_BYTES)))
            for watcher in list(self._watchers.values()):
                # After an overflow events are missing, so every watcher has to compare.
                if any(mask & IN_Q_OVERFLOW or self._concerns(watcher, one, name) for one, mask, name in found):
                    self._notice(watcher)

    def _concerns(self, watcher: _Watcher, descriptor: int, name: str) -> bool:
        if descriptor not in watcher.names:
            # A directory that is being added: its watcher is not known yet, and one superfluous comparison is cheap.
            return watcher.is_arming and not any(descriptor in other.names for other in self._watchers.values())
        names = watcher.names[descriptor]
        # Events about the directory itself have no name; they always count.
        return names is None or not name or name in names

    def _notice(self, watcher: _Watcher) -> None:
        watcher.has_stirred = True
        if not watcher.is_telling:
            watcher.is_telling = True
            self._spawn("look at changed files", self._tell(watcher))

    async def _tell(self, watcher: _Watcher) -> None:
        try:
            while watcher.has_stirred and watcher in self._watchers.values():
                await asyncio.sleep(QUIET_S)
                watcher.has_stirred = False
                # Watch first and compare afterwards: a change in between causes another event.
                await self._arm(watcher)
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


def _add(fd: int, places: Callable[[], Places]) -> dict[int, Collection[str] | None] | None:
    wanted = places()
    if len(wanted) > MAX_DIRECTORIES or fd < 0:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    found: dict[int, Collection[str] | None] = {}
    for directory, names in wanted.items():
        descriptor = library.inotify_add_watch(fd, os.fsencode(directory), CHANGES)
        # A missing directory is no failure: when it is created, its parent reports a change and it is watched then.
        if descriptor < 0 and ctypes.get_errno() == errno.ENOSPC:
            return None  # the user's limit of watches
        if descriptor >= 0:
            found[descriptor] = names
    return found


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at + _HEAD.size <= len(data):
        descriptor, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield descriptor, mask, os.fsdecode(data[at : at + length].rstrip(b"\0"))
        at += length
