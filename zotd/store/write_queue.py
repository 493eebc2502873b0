"""The queue of a writer thread: writes go in on the event loop, groups of them come out, and their outcomes go back in order.

event loop    submit(write) ..............................> write.done(None | StorageError)
                   | bounded by QUEUE_BYTES                       ^ one call_soon_threadsafe per group
thread        all that waits, as a group -> commit ---------------+
              nothing waits for a while  -> spare work, a slice at a time
"""

import asyncio
import logging
import queue
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from zotd.core.ports import StorageError

QUEUE_BYTES = 64 * 1024 * 1024
"""Limit of queued writes. Sessions wait for their commits, so only a stalled disk or server fills the queue. A write above the
limit fails, in its turn; a single write of any size is accepted if the queue is empty."""

CLOSE_S = 5.0
"""Longest time to write the queue at the end. A disk that takes longer does not respond at all, and the service
manager's patience is limited. Unwritten records were not acknowledged, so giving up breaks no promise."""

PAUSE_S = 1.0
"""Idle time before spare work starts. A run commits every few milliseconds while its tools run, and a commit that
arrives during a slice of spare work has to wait for the slice."""

log = logging.getLogger(__name__)


class QueuedWrite(Protocol):
    """A write on its way to the thread."""

    @property
    def done(self) -> Callable[[StorageError | None], None]:
        """Called with the outcome, on the event loop."""
        ...

    @property
    def size_bytes(self) -> int:
        """How much of the limit it takes."""
        ...


W = TypeVar("W", bound=QueuedWrite)


class WriteQueue(Generic[W]):
    """Create it on the event loop on which `done` is to be called. The thread that calls `work` belongs to the caller."""

    def __init__(
        self, slow: str, refused: Callable[[W, str], W], *, reporting: Callable[[], None] | None = None
    ) -> None:
        """Prepare an empty queue.

        Args:
            slow: what is too slow if the queue is full, for a sentence: `the disk`.
            refused: returns a write of no size that fails with this reason when it is applied.
            reporting: called on the event loop before the outcomes of each group are reported.
        """
        self._slow = slow
        self._refused = refused
        self._reporting = reporting
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[W | None] = queue.SimpleQueue()  # bounded by _held_bytes; None ends
        self._held_bytes = 0
        self._is_closed = False
        self._ended = asyncio.Event()

    def submit(self, write: W) -> None:
        """Queue a write behind those submitted before. Returns at once; never raises."""
        if self._is_closed:
            # The thread no longer reads the queue. `call_soon`, because callers do not expect `done` inside `submit`.
            self._loop.call_soon(write.done, StorageError("the journal is closed"))
            return
        if self._held_bytes and self._held_bytes + write.size_bytes > QUEUE_BYTES:
            # The refusal passes through the queue as well, so that outcomes are reported in the order of submission.
            waiting = f"{self._held_bytes >> 20} MiB are already waiting to be written"
            write = self._refused(write, f"{self._slow} is too slow: {waiting}")
        self._held_bytes += write.size_bytes
        self._queue.put(write)

    async def perform(self, make: Callable[[Callable[[StorageError | None], None]], W]) -> None:
        """Submit the write that `make` returns for its `done`, and wait until it is committed.

        Cancelling the call does not cancel the write.

        Raises:
            StorageError: the write failed.
        """
        written: asyncio.Future[StorageError | None] = self._loop.create_future()
        # Without effect if the caller was cancelled meanwhile.
        self.submit(make(lambda error: None if written.done() else written.set_result(error)))
        if (error := await written) is not None:
            raise error

    async def close(self) -> None:
        """Have the queue written and the thread ended; give up after `CLOSE_S`. May be called twice."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._ended.wait()
        except TimeoutError:
            log.warning("the journal was not closed within %s s: %s does not answer", CLOSE_S, self._slow)

    # --- in the thread ---

    def work(
        self, commit: Callable[[Sequence[W]], Sequence[StorageError | None]], spare: Callable[[], float | None] | None
    ) -> None:
        """Commit group after group until `close`; call `end` behind it.

        Args:
            commit: returns the outcome of each write of a group; never raises.
            spare: does a slice of background work, and returns after how many seconds to do the next one; None: there is
                nothing left. It is called when the queue has been empty for `PAUSE_S`. Never raises.
        """
        while group := self._next_group(spare):
            # One call per group, because each call wakes the event loop.
            self.tell(partial(self._report, group, commit(group)))

    def end(self) -> None:
        """Let `close` return: the thread has nothing more to do."""
        self.tell(self._ended.set)

    def tell(self, call: Callable[[], None]) -> None:
        """Have something called on the event loop, if there still is one."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed, and with it every receiver of the report
            log.debug("the event loop ended before the journal")

    def _next_group(self, spare: Callable[[], float | None] | None) -> list[W]:
        """Take all queued writes, waiting for the first one; empty when the thread is to end."""
        group: list[W] = []
        write = self._next_write(spare)
        while write is not None:
            group.append(write)
            try:
                write = self._queue.get_nowait()
            except queue.Empty:
                return group
        if group:
            self._queue.put(None)  # the end mark came with a last group; the next call has to see it again
        return group

    def _next_write(self, spare: Callable[[], float | None] | None) -> W | None:
        """Wait for the next write; do spare work meanwhile."""
        pause_s = None if spare is None else PAUSE_S
        while spare is not None and pause_s is not None:
            try:
                return self._queue.get(timeout=pause_s)
            except queue.Empty:
                pause_s = spare()
        # Without spare work an idle daemon blocks here and never wakes up. Only a write can cause new spare work.
        return self._queue.get()

    # --- on the event loop ---

    def _report(self, group: Sequence[W], outcomes: Sequence[StorageError | None]) -> None:
        if self._reporting is not None:
            self._reporting()
        for write, error in zip(group, outcomes, strict=True):
            self._held_bytes -= write.size_bytes
            try:
                write.done(error)
            except Exception:  # boundary: an error in one session must not affect the others of the group
                log.exception("a session failed after its commit")
