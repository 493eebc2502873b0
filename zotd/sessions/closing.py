"""Closing a session while others have commands for it: each of these comes before, or after, and never in between.

    alone ──> aborted, nothing is accepted ──> at rest, all of it on disk ──> the block lets it go, or not ──> over

A command that arrives meanwhile waits and then finds the new session, or none. A command that already holds the session
object is refused with `conflict`, because the object in memory is no longer what the journal holds.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from zotd.sessions.session import Session
from zotd.wire.errors import Code, CommandError

CLOSED = "ended with its session"
"""Why a job ended, as the model reads it if the session goes on."""

STOP_S = 5.0
"""How long a stop waits for runs to end after they were aborted; ending a tool's processes takes under a second."""


class Closing:
    """The sessions that are being closed."""

    def __init__(self, current: Callable[[str], Session | None]) -> None:
        """`current` is the session in memory with an id."""
        self._current = current
        self._under_way: dict[str, asyncio.Event] = {}

    async def over(self, session_id: str) -> None:
        """Wait until the session is not being closed; at once when it is not. Bounded by `STOP_S`, a commit, and a push."""
        while (done := self._under_way.get(session_id)) is not None:
            await done.wait()

    @asynccontextmanager
    async def alone(self, session: Session) -> AsyncIterator[None]:
        """Abort what runs in the session. Inside the block nothing runs, and no other command gets the session.

        Raises CommandError: the run does not end within `STOP_S`, or another client is closing the session.
        """
        if session.is_closed:
            raise CommandError(Code.CONFLICT, f"{session.id} is being closed by another client; send the command again")
        session.is_closed = True
        done = self._under_way[session.id] = asyncio.Event()
        try:
            await _rest(session)
            await session.jobs.end_all(CLOSED)
            await session.checkpoints.settle()  # another daemon may have it next
            yield
        finally:
            session.is_closed = self._current(session.id) is not session
            del self._under_way[session.id]
            done.set()


async def _rest(session: Session) -> None:
    session.abort()
    session.work.early.cancel()
    try:
        async with asyncio.timeout(STOP_S):
            await session.stopped()
            await session.ledger.settled.wait()
    except TimeoutError as error:
        raise CommandError(Code.TIMEOUT, f"the run in {session.id} does not end; try again") from error
