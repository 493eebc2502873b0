"""Places for the subagents that work at once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct


class _Level(Struct, eq=False):
    semaphore: asyncio.Semaphore
    users: int = 0
    """Subagents that have a place, or wait for one."""


class TaskPlaces:
    """Places of all families.

    A subagent that waits for its own subagents keeps its place, so each level of a family has places of its own: otherwise a
    family whose places are all taken by subagents that wait could not go on.
    """

    def __init__(self) -> None:
        self._levels: dict[tuple[str, int], _Level] = {}

    @asynccontextmanager
    async def place(self, root: str, depth: int, at_once: int, waits: Callable[[], None]) -> AsyncIterator[None]:
        """Wait for a place in the family of the session `root`; `waits` is called if none is free. Safe to cancel.

        The first one that asks gets the first place. `at_once` counts when the level has no subagents.
        """
        key = root, depth
        level = self._levels.setdefault(key, _Level(asyncio.Semaphore(at_once)))
        level.users += 1
        try:
            if level.semaphore.locked():
                waits()
            async with level.semaphore:
                yield
        finally:
            level.users -= 1
            if not level.users:
                del self._levels[key]
