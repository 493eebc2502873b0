"""Runs the author's functions: coroutines on one loop, plain functions in threads.

A `FunctionRun` is one run of one function. It settles exactly once, with a value or an error, whatever happens first: the
function returns, it raises, it is cancelled, or the extension has to end.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import NamedTuple, Optional, Protocol

from .hints import is_coroutine_function
from .pipe import log_error

Settled = Callable[[object, Optional[BaseException]], None]
"""Called with the return value of a function, or with its exception."""


LAST_WORDS_S = 0.2
"""Time for the `finally` blocks of cancelled coroutines. Together with the grace period it stays under the host's 2 s."""


class Cancelled(Exception):  # noqa: N818  an outcome, not a fault
    """The answer is no longer needed, or the extension ends before there is one."""


class FrameOrigin(NamedTuple):
    """The session and call that a function runs for; frames that it sends carry them."""

    session_id: str = ""
    call_id: str = ""
    """Id of the tool call that it answers; empty for commands, events, guards and keys."""


NOWHERE = FrameOrigin()
origin: ContextVar[FrameOrigin] = ContextVar("origin", default=NOWHERE)
"""Origin of the running function; set in the task or thread of each job."""


class Coroutines(Protocol):
    """Interface of `loop.Loop`, which is imported with the first coroutine."""

    def start(
        self, coroutine: Coroutine[object, object, None], started: Callable[[Callable[[], object]], None]
    ) -> None:
        """Run a coroutine; call `started` with a function that cancels it."""

    def close(self, patience_s: float) -> bool:
        """Cancel all coroutines and stop; return False if one does not end in time."""


class FunctionRun:
    """One run of a function. `settled` is called exactly once, in the thread in which the run ends."""

    def __init__(
        self,
        run: Callable[[], object],
        settled: Settled,
        *,
        about: FrameOrigin = NOWHERE,
        lane: deque[FunctionRun] | None = None,
        interruptible: bool = False,
    ) -> None:
        """Prepare a run. Jobs of one `lane` run one after another; cancelling an `interruptible` one cancels its coroutine."""
        self.run = run
        self.about = about
        self.lane = lane
        self.cancelled = False
        self._settled = settled
        self._interruptible = interruptible
        self._interrupt: Callable[[], object] | None = None
        self._lock = threading.Lock()
        self._is_settled = False

    def cancel(self) -> None:
        """Cancel the run if possible. A plain function cannot be stopped; its result is still passed on."""
        self.cancelled = True
        if self._interrupt is not None:
            self._interrupt()

    def settle(self, value: object, error: BaseException | None) -> None:
        """Set the result; later ones are ignored."""
        with self._lock:
            if self._is_settled:
                return
            # Decided under the lock: at the end of the extension, `close` settles jobs that may settle themselves at
            # that moment.
            self._is_settled = True
        try:
            self._settled(value, error)
        except Exception as fault:  # noqa: BLE001  the thread has to continue with other jobs
            log_error(fault)

    async def drive(
        self, result: Awaitable[object], finished: Callable[[FunctionRun, object, BaseException | None], None]
    ) -> None:
        """Wait for the function's coroutine and pass on its result or exception."""
        origin.set(self.about)
        try:
            value = await result
        except BaseException as error:  # noqa: BLE001  the host needs an answer however the coroutine ends
            # A cancelled coroutine may still fail with an ordinary error, which is reported as such.
            interrupted = self.cancelled and not isinstance(error, Exception)
            finished(self, None, Cancelled("cancelled") if interrupted else error)
        else:
            finished(self, value, None)

    def may_interrupt(self, interrupt: Callable[[], object]) -> None:
        """Record how to cancel the running coroutine; do it at once if that was requested before."""
        if self._interruptible:
            self._interrupt = interrupt
            if self.cancelled:
                interrupt()


class Threads:
    """A pool without a limit: one thread for each running function. Idle threads are reused."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    def run(self, work: Callable[[], None]) -> None:
        """Run a function at once, in parallel with all others: a hanging handler must not delay a guard's answer."""
        with self._lock:
            # Reserved under the lock, so that two callers cannot count on the same idle thread.
            spare = self._idle > 0
            self._idle -= spare
        if not spare:
            # A daemon thread, because a handler that hangs must not prevent the exit.
            threading.Thread(target=self._serve, daemon=True).start()
        self._work.put(work)

    def _serve(self) -> None:
        while True:
            self._work.get()()
            with self._lock:
                self._idle += 1


class Workers:
    """Runs jobs and tracks unfinished ones. Thread-safe."""

    def __init__(self) -> None:
        self._threads = Threads()
        self._loop: Coroutines | None = None
        self._unfinished: set[FunctionRun] = set()
        self._changed = threading.Condition()

    def start(self, job: FunctionRun) -> None:
        """Run a job at once, or after the earlier ones of its lane."""
        with self._changed:
            self._unfinished.add(job)
            if job.lane is not None:
                # Appended under the lock, so that the order of the lane is the order of these calls.
                job.lane.append(job)
                if job.lane[0] is not job:
                    return
        self._launch(job)

    def expect_coroutines(self) -> None:
        """Import asyncio and start the loop now, so that the first call is not delayed by it."""
        with self._changed:
            if self._loop is None:
                from .loop import Loop  # noqa: PLC0415  asyncio doubles the start-up time, and not all extensions need it

                self._loop = Loop()

    def background(
        self, coroutine: Coroutine[object, object, None], started: Callable[[Callable[[], object]], None]
    ) -> None:
        """Run a coroutine without waiting for it; it is cancelled when the extension ends."""
        self.expect_coroutines()
        assert self._loop is not None
        self._loop.start(coroutine, started)

    def close(self, patience_s: float) -> bool:
        """Wait for jobs, settle the unfinished ones with `Cancelled`, stop the loop. Return False if something still runs."""
        deadline = time.monotonic() + patience_s
        with self._changed:
            finished = self._changed.wait_for(lambda: not self._unfinished, patience_s)
        while (job := self._take_unfinished()) is not None:  # settling one may start another
            job.settle(None, Cancelled("the extension was stopped before it had an answer"))
        ended = self._loop is None or self._loop.close(max(LAST_WORDS_S, deadline - time.monotonic()))
        return finished and ended

    def _take_unfinished(self) -> FunctionRun | None:
        with self._changed:
            return self._unfinished.pop() if self._unfinished else None

    def _launch(self, job: FunctionRun) -> None:
        if job.cancelled:
            self._finished(job, None, Cancelled("cancelled before it began"))
        elif is_coroutine_function(job.run):
            self._run(job)  # only creates the coroutine, so it needs no thread
        else:
            self._threads.run(lambda: self._run(job))

    def _run(self, job: FunctionRun) -> None:
        origin.set(job.about)
        try:
            value = job.run()
        except BaseException as error:  # noqa: BLE001  also sys.exit(): the host needs an answer
            self._finished(job, None, error)
            return
        if isinstance(value, Awaitable):  # a plain function around a coroutine function
            self._await(job, value)
        else:
            self._finished(job, value, None)

    def _await(self, job: FunctionRun, result: Awaitable[object]) -> None:
        self.background(job.drive(result, self._finished), job.may_interrupt)

    def _finished(self, job: FunctionRun, value: object, error: BaseException | None) -> None:
        # Settled before it counts as finished: `close` must not end the process before the answer is sent.
        job.settle(value, error)
        with self._changed:
            self._unfinished.discard(job)
            self._changed.notify_all()
            if job.lane is None:
                return
            job.lane.popleft()
            following = job.lane[0] if job.lane else None
        if following is not None:
            self._launch(following)
