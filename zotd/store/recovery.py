"""Detects when a journal that could not be written becomes writable again, and notifies the waiting sessions.

    writable --(a session waits)--> trial after FIRST_S --(fails)--> next trial after twice the time, at most LONGEST_S
      ^                                  |
      +----------(succeeds)--------------+    and the waiting callbacks are called

A trial is a real, synced write through the writer. It is large enough that a disk with room for it has room for some
steps as well. All waiting sessions share one series of trials (`docs/decisions/0013-storage-recovery.md`).
"""

import asyncio
import logging
import secrets
from collections.abc import Callable

from zotd.core.ports import StorageError
from zotd.store.connection import SqlConnection, Write

FIRST_S = 0.5
"""Delay before the first trial: short, because a disk is often full for a moment only."""

LONGEST_S = 5.0
"""Longest delay between two trials: sessions resume soon after the user has made room, and 12 writes of `TRIAL_BYTES`
a minute are no load."""

TRIAL_BYTES = 256 * 1024
"""Size of a trial, which is that of the records of some steps. After a smaller trial, sessions might resume only to
fail again at once."""

_KEY = "trial"

_FILL = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

log = logging.getLogger(__name__)


class Recovery:
    """The trials of one database; made and used on the event loop."""

    def __init__(self, submit: Callable[[Write], None]) -> None:
        """`submit` hands a write to the writer."""
        self._submit = submit
        self._waiting: list[Callable[[], None]] = []
        self._asked: list[asyncio.Future[bool]] = []
        self._delay_s = FIRST_S
        self._timer: asyncio.TimerHandle | None = None
        self._is_trying = False
        self._is_closed = False
        self._trouble: str | None = None

    @property
    def trouble(self) -> str | None:
        """Why the journal cannot be written at present; None if it can, as far as is known."""
        # A session has met an error, but no trial has failed yet: the reason is known only to that session.
        if self._trouble is None and self._waiting:
            return "the journal could not be written"
        return self._trouble

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, when a trial that starts after this call has succeeded.

        The callback must return at once and must not raise.
        """
        self._waiting.append(callback)
        self._plan()

    async def attempt(self) -> bool:
        """Make a trial now; return whether it succeeded. Waiting callbacks have been called by then."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._try()
        return await answer

    def close(self) -> None:
        """Make no more trials and drop the waiting callbacks."""
        self._is_closed = True
        self._waiting.clear()
        self._cancel()

    def _plan(self) -> None:
        if self._timer is None and not self._is_trying and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._try)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _try(self) -> None:
        self._cancel()
        if not self._is_trying:
            self._is_trying = True
            # Callbacks registered during a trial have to wait for the next one: their failure may be newer.
            waiting, self._waiting = self._waiting, []
            self._submit(Write(_fill, lambda error: self._tried(error, waiting), durable=True, size_bytes=TRIAL_BYTES))

    def _tried(self, error: StorageError | None, waiting: list[Callable[[], None]]) -> None:
        self._is_trying = False
        asked, self._asked = self._asked, []
        if error is None:
            if self._trouble is not None:
                log.warning("the journal can be written again")
            self._trouble = None
            self._submit(Write(_empty, _ignore))  # give the trial's pages back
            # Before the callbacks: each of them may register again at once, and must not wait for a long delay.
            self._delay_s = FIRST_S
            if not self._is_closed:
                for callback in waiting:
                    callback()
        else:
            if self._trouble is None:  # once, not for every trial
                log.warning("%s; retrying until it succeeds", error)
            self._trouble = str(error)
            self._delay_s = min(2 * self._delay_s, LONGEST_S)
            # In front, because they have waited for longer than those added during the trial.
            self._waiting = waiting + self._waiting
        for answer in asked:
            if not answer.done():
                answer.set_result(error is None)
        if self._waiting:
            self._plan()


def _fill(connection: SqlConnection) -> None:
    # Random: a compressing file system stores zeros even when it has no room for real data. Text, of four characters for
    # three bytes, because not every database takes bytes as a value of a setting.
    connection.execute(_FILL, (_KEY, secrets.token_urlsafe(TRIAL_BYTES * 3 // 4)))


def _empty(connection: SqlConnection) -> None:
    # In a separate transaction: an insertion and deletion in one transaction would write nothing.
    connection.execute("DELETE FROM settings WHERE key = ?", (_KEY,))


def _ignore(_: StorageError | None) -> None:
    pass  # the next trial replaces what is left
