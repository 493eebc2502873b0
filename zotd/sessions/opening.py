"""Opening a session that is not in memory: commands that want it get it in the order in which they came, and only one daemon."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from zotd.core.ports import SessionRow
from zotd.store.journal import StoredJournal
from zotd.store.ownership import OwnedElsewhereError
from zotd.wire.errors import Code, CommandError


class SessionElsewhereError(CommandError):
    """Another daemon has the session."""

    def __init__(self, error: OwnedElsewhereError) -> None:
        super().__init__(Code.CONFLICT, str(error))
        self.session = error.session
        self.member = error.member


async def taken(journal: StoredJournal | None, session: str) -> SessionRow:
    """Return the row of a stored session, which no other daemon can have from then on.

    Raises CommandError if there is no such session, and SessionElsewhereError. The caller releases it.
    """
    try:
        if journal is not None:
            await journal.ownership.take(session)
    except OwnedElsewhereError as error:
        raise SessionElsewhereError(error) from error
    try:
        row = None if journal is None else await journal.row(session)
    except BaseException:
        if journal is not None:
            journal.ownership.release(session)
        raise
    if row is None:
        raise CommandError(Code.NOT_FOUND, f'no session "{session}"; `zotctl sessions` lists them')
    return row


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
