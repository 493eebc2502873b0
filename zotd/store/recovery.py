"""Finds out when a journal that could not write can write again, and tells everybody who waits for it.

    well --(somebody waits)--> a trial after FIRST_S --(it fails)--> another after twice the time, LONGEST_S at most
      ^                                  |
      +----------(it is on disk)---------+    and those who wait are called

A trial is a real write through the writer, synced, and large enough that a disk with room for it has room for some
steps as well. There is one series of trials, however many sessions wait (`docs/decisions/0013-storage-recovery.md`).
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from zotd.core.ports import StorageError
from zotd.store.writer import Write

FIRST_S = 0.5
"""Before the first trial: a disk that was full for a moment costs hardly more than that moment."""

LONGEST_S = 5.0
"""Between two trials, in the end: a person who has made room is not kept waiting, and 12 writes a minute of
`TRIAL_BYTES` cost nothing."""

TRIAL_BYTES = 256 * 1024
"""Of a trial: the records of some steps. With less, sessions would go on where there is no room to get anywhere."""

_KEY = "trial"

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
        """What keeps the journal from being written now; None: nothing is known to."""
        if self._trouble is None and self._waiting:
            return "the journal could not be written"
        return self._trouble

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call it once, as soon as a trial that begins after now is on disk; it returns at once and never raises."""
        self._waiting.append(callback)
        self._plan()

    async def attempt(self) -> bool:
        """Make a trial now; whether it is on disk. Those who wait have been called then."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._try()
        return await answer

    def close(self) -> None:
        """Make no more trials; nobody is called any more."""
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
            waiting, self._waiting = self._waiting, []
            self._submit(Write(_fill, lambda error: self._tried(error, waiting), durable=True, size_bytes=TRIAL_BYTES))

    def _tried(self, error: StorageError | None, waiting: list[Callable[[], None]]) -> None:
        self._is_trying = False
        asked, self._asked = self._asked, []
        if error is None:
            if self._trouble is not None:
                log.warning("the journal can be written again")
            self._trouble = None
            self._submit(Write(_empty, _ignore))
            self._delay_s = FIRST_S
            if not self._is_closed:
                for callback in waiting:
                    callback()
        else:
            if self._trouble is None:  # once, and not with every trial
                log.warning("%s; retrying until it succeeds", error)
            self._trouble = str(error)
            self._delay_s = min(2 * self._delay_s, LONGEST_S)
            self._waiting = waiting + self._waiting
        for answer in asked:
            if not answer.done():
                answer.set_result(error is None)
        if self._waiting:
            self._plan()


def _fill(connection: sqlite3.Connection) -> None:
    # Random: a file system that compresses has room for zeros when it has room for nothing else.
    connection.execute("INSERT OR REPLACE INTO settings VALUES (?, randomblob(?))", (_KEY, TRIAL_BYTES))


def _empty(connection: sqlite3.Connection) -> None:
    # In a transaction of its own, or nothing would ever be written.
    connection.execute("DELETE FROM settings WHERE key = ?", (_KEY,))


def _ignore(_: StorageError | None) -> None:
    """What is left of a trial is replaced by the next one."""
