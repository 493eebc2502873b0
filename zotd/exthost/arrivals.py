"""Reports when a directory is created that did not exist, such as the first `tools` directory of a project.

Linux only, with one inotify queue for all. Elsewhere nothing is reported, and a reload finds new directories.
Directories are accessed in threads, because one may be on a network mount that does not answer.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from zotd import inotify
from zotd.exthost.directory_events import DirectoryEvents
from zotd.exthost.discovery import is_directory
from zotd.inotify import Inotify

ARRIVALS = inotify.CREATE | inotify.MOVED_TO | inotify.DELETE_SELF | inotify.MOVE_SELF | inotify.ONLYDIR

QUIET_S = 0.1
"""Delay between the first event and the comparison, so that a tree being copied or unpacked is reported once."""

LOOK_S = 5.0
"""Longest wait for one workspace's directories. After that the others are compared; the next event tries again."""

Spawn = Callable[[str, Coroutine[object, object, None]], None]
"""Starts a named task; the callee owns it and logs its failure."""


class _Wanted(Struct, eq=False):
    directories: Sequence[Path]
    there: frozenset[Path] = frozenset()
    """Directories that existed at the last comparison."""
    watches: set[int] = field(default_factory=set)
    """Those that were added for it; the kernel shares one between all that watch the same directory."""


class Arrivals:
    """Watches for new and removed directories. Belongs to one event loop."""

    def __init__(self, spawn: Spawn) -> None:
        """Use `spawn` to start the tasks that compare directories."""
        self._spawn = spawn
        self._events = DirectoryEvents(self._stirred, "new directories are only found by a reload")
        self._wanted: dict[Callable[[], None], _Wanted] = {}
        """By callback, which also identifies the subscriber."""
        self._is_looking = False
        self._has_stirred = False
        """An event arrived after the last comparison began."""

    async def watch(self, directories: Sequence[Path], changed: Callable[[], None]) -> None:
        """Call `changed` whenever one of these is created or removed after this method has returned."""
        queue = self._events.opened()
        if queue is not None:
            wanted = self._wanted[changed] = _Wanted(directories)
            await self._arm(wanted, queue)

    def forget(self, changed: Callable[[], None]) -> None:
        """Stop calling `changed`."""
        gone = self._wanted.pop(changed, None)
        if gone is None or self._events.queue is None:
            return
        # inotify gives the same watch for the same directory, so one that another workspace still needs must stay.
        used = {watch for wanted in self._wanted.values() for watch in wanted.watches}
        for watch in gone.watches - used:
            self._events.queue.remove(watch)

    def close(self) -> None:
        """Close the queue of events; no callback is called any more."""
        self._wanted.clear()
        self._events.close()

    async def _arm(self, wanted: _Wanted, queue: Inotify) -> bool:
        """Watch each directory or its nearest existing parent. Return True if other directories exist than before."""
        before = wanted.there
        # The thread cannot be cancelled. Its result is dropped, and the comparison is repeated with the next event.
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                watches, wanted.there = await asyncio.to_thread(_look, queue, wanted.directories)
                wanted.watches |= watches
        return wanted.there != before

    def _stirred(self, queue: Inotify) -> None:
        # The events themselves are not used: only a comparison tells which of the wanted directories exist now.
        for _ in queue.read():
            pass
        self._has_stirred = True
        if not self._is_looking:
            self._is_looking = True
            self._spawn("look for new directories", self._compare(queue))

    async def _compare(self, queue: Inotify) -> None:
        try:
            # Loops because events may arrive while the threads compare; a second task would compare the same again.
            while self._has_stirred:
                await asyncio.sleep(QUIET_S)
                self._has_stirred = False
                await self._look_at_all(queue)
        finally:
            self._is_looking = False

    async def _look_at_all(self, queue: Inotify) -> None:
        for changed, wanted in list(self._wanted.items()):
            # `forget` may have been called while the thread compared.
            if await self._arm(wanted, queue) and changed in self._wanted:
                changed()


def _look(queue: Inotify, directories: Sequence[Path]) -> tuple[set[int], frozenset[Path]]:
    """Add watches; return them and the directories that exist. Blocks."""
    places = {next(path for path in (one, *one.parents) if is_directory(path)) for one in directories}
    watches = set()
    # Watch first and compare afterwards: a directory created in between causes another event.
    for place in places:
        with suppress(OSError):  # it is gone again, or there are too many watches
            watches.add(queue.add(str(place), ARRIVALS))
    return watches, frozenset(one for one in directories if is_directory(one))
