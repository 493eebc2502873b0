"""The pauses of a run whose model fails: the length of the outage, and a wait that a user may end early."""

import asyncio
from collections.abc import Callable

from zotd.clock import rfc3339
from zotd.core.retry import ModelError
from zotd.wire import events
from zotd.wire.api import Waiting


class Pause:
    """The wait between two model requests of one run.

    failed -> wait -> failed -> wait ... -> passed
    """

    def __init__(self, patience_s: Callable[[], float]) -> None:
        """`patience_s`: how long the model that is asked now is retried, in seconds."""
        self._patience_s = patience_s
        self._error: ModelError | None = None
        self._since = ""
        self._began = 0.0
        self._failures = 0
        self._until = 0.0
        self._ended: asyncio.Event | None = None

    def failed(self, error: ModelError) -> float:
        """A request has failed; seconds since the first failure of this outage."""
        now = asyncio.get_running_loop().time()
        if self._error is None:
            self._began, self._since = now, rfc3339()
        self._error = error
        return now - self._began

    def passed(self) -> None:
        """The outage is over: a request was answered in full, or another model is asked."""
        self._error = None

    def begin(self, failures: int, delay_s: float, session: str | None) -> events.Retry:
        """Begin a pause after that many failures in a row; returns its event. Call `wait` next."""
        assert self._error is not None, "a pause without a failure"
        now = asyncio.get_running_loop().time()
        self._failures, self._until, self._ended = failures, now + delay_s, asyncio.Event()
        return events.Retry(
            failures,
            0,
            round(delay_s, 3),
            self._error.sentence,
            self._error.brief,
            round(self._left(now), 3),
            session=session,
        )

    async def wait(self) -> None:
        """Wait until the pause is over, or `end` is called."""
        assert self._ended is not None, "no pause has begun"
        try:
            async with asyncio.timeout_at(self._until):
                await self._ended.wait()
        except TimeoutError:
            pass
        finally:
            self._ended = None

    def end(self) -> bool:
        """End the wait now; False when there is none."""
        if self._ended is None:
            return False
        self._ended.set()
        return True

    def info(self) -> Waiting | None:
        """The wait as snapshots and lists show it; None: there is none."""
        if self._ended is None or self._error is None:
            return None
        now = asyncio.get_running_loop().time()
        return Waiting(
            failures=self._failures,
            brief=self._error.brief,
            reason=self._error.sentence,
            since=self._since,
            next_s=round(max(0.0, self._until - now), 1),
            left_s=round(self._left(now), 1),
        )

    def _left(self, now: float) -> float:
        return max(0.0, self._patience_s() - (now - self._began))
