"""Running the author's functions: coroutines on one loop, plain functions in threads, and knowing what is unfinished.

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
"""Gets what a function returned, or what it raised."""


LAST_WORDS_S = 0.2
"""For the `finally` of coroutines that had to be cancelled at the end; with the grace before, under the host's 2 s."""


class Cancelled(Exception):  # noqa: N818  an outcome, not a fault
    """The answer is not wanted any more, or cannot be had: the extension ends."""


class FrameOrigin(NamedTuple):
    """What a run of a function is about; frames that it sends on its way carry it."""

    session_id: str = ""
    call_id: str = ""
    """Of the tool call that it answers; empty for commands, events, guards and keys."""


NOWHERE = FrameOrigin()
origin: ContextVar[FrameOrigin] = ContextVar("origin", default=NOWHERE)
"""The origin of what runs here; set in the task or thread of each job."""


class Coroutines(Protocol):
    """What runs coroutines; `loop.Loop`, which is imported when the first coroutine comes."""

    def start(
        self, coroutine: Coroutine[object, object, None], started: Callable[[Callable[[], object]], None]
    ) -> None:
        """Run it; hand what cancels it to `started`."""

    def close(self, patience_s: float) -> bool:
        """End; False if something would not."""


class FunctionRun:
    """One run of a function; `settled` is called once, in whatever thread the run ends."""

    def __init__(
        self,
        run: Callable[[], object],
        settled: Settled,
        *,
        about: FrameOrigin = NOWHERE,
        lane: deque[FunctionRun] | None = None,
        interruptible: bool = False,
    ) -> None:
        """`lane`: jobs of one lane run one after another. `interruptible`: cancelling it cancels its coroutine."""
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
        """The result is not wanted. A plain function cannot be stopped, and its result is passed on all the same."""
        self.cancelled = True
        if self._interrupt is not None:
            self._interrupt()

    def settle(self, value: object, error: BaseException | None) -> None:
        """Give the result; only the first one counts."""
        with self._lock:
            if self._is_settled:
                return
            self._is_settled = True
        try:
            self._settled(value, error)
        except Exception as fault:  # noqa: BLE001  the thread goes on with other jobs
            log_error(fault)

    async def drive(
        self, result: Awaitable[object], finished: Callable[[FunctionRun, object, BaseException | None], None]
    ) -> None:
        """Wait for the function's coroutine and hand on how it ended."""
        origin.set(self.about)
        try:
            value = await result
        except BaseException as error:  # noqa: BLE001  whatever ends it, the host gets its one answer
            interrupted = self.cancelled and not isinstance(error, Exception)
            finished(self, None, Cancelled("cancelled") if interrupted else error)
        else:
            finished(self, value, None)

    def may_interrupt(self, interrupt: Callable[[], object]) -> None:
        """Learn how to cancel the coroutine that now runs."""
        if self._interruptible:
            self._interrupt = interrupt
            if self.cancelled:
                interrupt()


class Threads:
    """As many threads as there are plain functions at work; idle ones are used again."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    def run(self, work: Callable[[], None]) -> None:
        """Run it at once, beside all others: a handler that hangs must not keep a guard from answering."""
        with self._lock:
            spare = self._idle > 0
            self._idle -= spare
        if not spare:
            threading.Thread(target=self._serve, daemon=True).start()
        self._work.put(work)

    def _serve(self) -> None:
        while True:
            self._work.get()()
            with self._lock:
                self._idle += 1


class Workers:
    """Runs jobs and knows which are unfinished. All methods may be called by any thread."""

    def __init__(self) -> None:
        self._threads = Threads()
        self._loop: Coroutines | None = None
        self._unfinished: set[FunctionRun] = set()
        self._changed = threading.Condition()

    def start(self, job: FunctionRun) -> None:
        """Run a job: at once, or when those before it in its lane have finished."""
        with self._changed:
            self._unfinished.add(job)
            if job.lane is not None:
                job.lane.append(job)
                if job.lane[0] is not job:
                    return
        self._launch(job)

    def expect_coroutines(self) -> None:
        """Import asyncio and start the loop now rather than at the first call."""
        with self._changed:
            if self._loop is None:
                from .loop import Loop  # noqa: PLC0415  asyncio doubles the start-up time of those who don't need it

                self._loop = Loop()

    def background(
        self, coroutine: Coroutine[object, object, None], started: Callable[[Callable[[], object]], None]
    ) -> None:
        """Run a coroutine that nobody waits for, and that ends when the extension does."""
        self.expect_coroutines()
        assert self._loop is not None
        self._loop.start(coroutine, started)

    def close(self, patience_s: float) -> bool:
        """Let jobs finish, settle those that don't with `Cancelled`, end the loop; False if something still runs."""
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
            self._run(job)  # this only makes the coroutine
        else:
            self._threads.run(lambda: self._run(job))

    def _run(self, job: FunctionRun) -> None:
        origin.set(job.about)
        try:
            value = job.run()
        except BaseException as error:  # noqa: BLE001  also sys.exit(): the host gets its one answer
            self._finished(job, None, error)
            return
        if isinstance(value, Awaitable):  # a plain function around a coroutine function
            self._await(job, value)
        else:
            self._finished(job, value, None)

    def _await(self, job: FunctionRun, result: Awaitable[object]) -> None:
        self.background(job.drive(result, self._finished), job.may_interrupt)

    def _finished(self, job: FunctionRun, value: object, error: BaseException | None) -> None:
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
