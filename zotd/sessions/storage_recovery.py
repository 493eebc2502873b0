"""The stored sessions that the journal has failed: what brings them back, without anybody's command.

    a commit fails -> blocked: nothing of it is shown, its run ends, commands that would write are refused
    the journal can write again -> each begins anew from what is stored, as after a crash, and says so

Followers, environment and keys stay. What was accepted waits, held: going on is a person's decision, so that a disk
with room for little does not make a session ask the model again and again.
"""

import logging
from collections.abc import Callable, Coroutine

from zotd.core.ports import StorageError
from zotd.sessions.announcements import moved
from zotd.sessions.session import Session
from zotd.store.errors import UnreadableSessionError
from zotd.store.journal import StoredJournal
from zotd.store.ownership import OwnedElsewhereError
from zotd.wire import events

STORED_AGAIN = "the journal can be written again; the session continues from what is stored"

log = logging.getLogger(__name__)


class StorageRecovery:
    """Waits for the journal on behalf of all sessions."""

    def __init__(
        self,
        journal: StoredJournal,
        *,
        current: Callable[[str], Session | None],
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        changed: Callable[[Session], None],
        moved: Callable[[Session], None],
    ) -> None:
        """`current` is the session in memory with an id, `changed` is told when one is blocked or no longer is.

        `moved` removes a session from memory that another daemon has now.
        """
        self._journal = journal
        self._current = current
        self._spawn = spawn
        self._changed = changed
        self._moved = moved
        self._waiting: dict[str, Session] = {}

    def add(self, session: Session) -> None:
        """A commit of the session has failed; harmless when it waits already. Returns at once and never raises."""
        self._changed(session)
        if not self._waiting:
            self._journal.recovery.when_writable(self._writable)
        self._waiting[session.id] = session

    async def try_now(self, session: Session) -> None:
        """A command is about the session: bring it back at once, if the journal can be written.

        Raises:
            UnreadableSessionError: what is stored of it is damaged.
        """
        if await self._journal.recovery.attempt():
            await self._bring_back(session)

    def _writable(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for session in waiting.values():
            self._spawn(f"recovery of session {session.id}", self._recover(session))

    async def _recover(self, session: Session) -> None:
        try:
            await self._bring_back(session)
        except UnreadableSessionError as error:  # the disk is well, and what is on it is not: no trial changes that
            log.warning("%s", error)

    async def _bring_back(self, session: Session) -> None:
        failure = session.ledger.failure
        if failure is None:
            return
        await session.stopped()  # the run that could not be stored is ending: its tools' processes are
        try:
            if self._current(session.id) is not session:
                return  # it has left memory
            await self._journal.ownership.take(session.id)
            row = await self._journal.row(session.id)
            if self._current(session.id) is None:
                self._journal.ownership.release(session.id)
            if row is None or session.ledger.failure is not failure or self._current(session.id) is not session:
                return  # it was never stored, was recovered by another task, or has left memory
            await session.reload(row)
        except UnreadableSessionError:
            raise
        except OwnedElsewhereError as error:
            log.warning("session %s is not here any more: %s", session.id, error)
            session.ledger.live([moved(session, str(error))])
            self._moved(session)
            return
        except StorageError:
            self.add(session)
            return
        session.ledger.live([events.Notice("info", STORED_AGAIN, session=session.ledger.label)])
        self._changed(session)


async def repair(session: Session) -> None:
    """Load it, and record what became of what a crash cut off; one that cannot be repaired now is `blocked`."""
    try:
        await session.load()
    except UnreadableSessionError:
        pass  # it is read-only, and says so itself
    except StorageError:
        if session.ledger.failure is None:  # it could not even be read
            raise
