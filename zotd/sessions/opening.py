"""Opening a session that is not in memory, while several commands want it: they get it in the order in which they came."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class SessionOpening:
    """The sessions that are being read from the journal."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._wanted: Counter[str] = Counter()
        """How many commands have, or wait for, the lock of a session."""

    @asynccontextmanager
    async def turn(self, session_id: str) -> AsyncIterator[None]:
        """Let one command after the other into the block, whatever the order in which the journal answers them.

        Otherwise an abort could overtake the prompt that it is meant for.
        """
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        self._wanted[session_id] += 1
        try:
            async with lock:  # first come, first served
                yield
        finally:
            self._wanted[session_id] -= 1
            if not self._wanted[session_id]:
                del self._wanted[session_id], self._locks[session_id]
