"""Calls to one process that wait for their answers: `core.correlation` with futures and a timer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from zotd.core.correlation import Correlation, Dropped
from zotd.core.ports import Ancestor
from zotd.wire import ext

PROGRESS_CHARS = 64 * 1024
"""Of one piece of progress: it is for eyes, and its event may not be longer than 4 MiB."""

PATIENCE_S = 6 * 3600.0
"""Longest that progress keeps a call waiting, so that a server which only reports progress does not keep it for ever."""

Answer = ext.ToolResult | ext.CommandResponse | ext.EventInterceptResponse


class ExtensionCallError(Exception):
    """A call has no answer; the message goes on from the extension's name."""


class CallTimeoutError(ExtensionCallError):
    """The extension did not answer in time."""


@dataclass(slots=True)
class PendingCall:
    """A pending call to the process."""

    kind: type[Answer]
    answer: asyncio.Future[Answer]
    limit_s: float | None
    session: str | None
    progress: Callable[[str], None] | None
    lineage: tuple[Ancestor, ...] = ()
    """Of a tool call: those that led to it, and itself last."""
    until: float | None = None
    """Progress sets the limit back until then, in the loop's time; None: it does not."""
    cwd: str | None = None
    """As its frame carries it: only to an extension of scope `daemon`."""


class Calls:
    """The open calls of one process."""

    def __init__(self, label: str, *, idle: Callable[[], None], given_up: Callable[[str, PendingCall], None]) -> None:
        """`label` makes ids unlike any other process's.

        `idle` is called when the last open call has ended, `given_up` when nobody waits for a call's answer any more.
        """
        self.guard_timeouts = 0
        """Interceptions in a row that had no answer in time; any answer, a late one too, sets it back."""
        self.is_patient = False
        """Progress sets a call's limit back."""
        self._open: Correlation[PendingCall] = Correlation(label)
        self._idle = idle
        self._given_up = given_up
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def dropped(self) -> Dropped:
        """How many answers nobody waited for."""
        return self._open.dropped

    @property
    def session(self) -> str | None:
        """The session of the newest open call that has one."""
        return next((call.session for call in reversed(list(self._open)) if call.session is not None), None)

    def find(self, key: str) -> PendingCall | None:
        """The open call with this id."""
        return self._open.peek(key)

    def is_asked(self, session: str) -> bool:
        """Whether a tool call or a question to a guard is open that is about this session."""
        return any(call.session == session and call.kind is not ext.CommandResponse for call in self._open)

    async def call(
        self,
        kind: type[Answer],
        send: Callable[[str], None],
        *,
        limit_s: float | None,
        session: str | None = None,
        progress: Callable[[str], None] | None = None,
        lineage: tuple[Ancestor, ...] = (),
        cwd: str | None = None,
    ) -> Answer:
        """Send something with a new id and wait for an answer of this kind. Safe to cancel: the answer is dropped.

        Raises:
            CallError: it was not sent, the process ended, or the answer makes no sense.
            CallTimeoutError: no answer within `limit_s` seconds (None: no limit); if `is_patient`, neither an
                answer nor progress within them, or no answer within `PATIENCE_S`.
        """
        until = self._loop.time() + PATIENCE_S if self.is_patient else None
        call = PendingCall(kind, self._loop.create_future(), limit_s, session, progress, lineage, until, cwd)
        key = self._open.open(call, None if limit_s is None else self._loop.time() + limit_s)
        try:
            send(key)
        except ExtensionCallError:
            self._open.cancel(key)
            raise
        self._arm()
        try:
            return await call.answer
        finally:
            if self._open.cancel(key):
                self._given_up(key, call)
                self._check_idle()

    def answered(self, frame: Answer) -> bool:
        """Complete the call that this frame answers; return False if there is none."""
        if isinstance(frame, ext.EventInterceptResponse) and self._was_asked(frame.id):
            self.guard_timeouts = 0
        call = self._open.peek(frame.id)
        if call is not None and not isinstance(frame, call.kind):
            return self.reject(frame.id, "answered with a frame of the wrong type")
        if self._open.answer(frame.id) is None or call is None:
            return False
        if not call.answer.done():
            call.answer.set_result(frame)
        self._check_idle()
        return True

    def progress(self, frame: ext.ToolProgress) -> None:
        """Show the progress of an open call."""
        call = self._open.peek(frame.id)
        if call is None:
            return
        if call.until is not None and call.limit_s is not None:
            self._open.postpone(frame.id, min(self._loop.time() + call.limit_s, call.until))
        if call.progress is not None:
            call.progress(frame.text[:PROGRESS_CHARS])

    def reject(self, key: str, reason: str) -> bool:
        """Fail the open call with this id; False when there is none."""
        call = self._open.answer(key) if self._open.peek(key) is not None else None
        if call is None:
            return False
        _refuse(call, ExtensionCallError(reason))
        self._check_idle()
        return True

    def reject_only(self, reason: str) -> None:
        """Fail the only open call; nothing happens when there are several."""
        key = self._open.the_only()
        if key is not None:
            self.reject(key, reason)

    def fail_all(self, reason: str) -> None:
        """Fail every open call with `reason`."""
        for call in self._open.fail_all():
            _refuse(call, ExtensionCallError(reason))
        self._check_idle()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _was_asked(self, key: str) -> bool:
        return self._open.peek(key) is not None or self._open.was_open(key)

    def _arm(self) -> None:
        """Wake up at the next deadline."""
        due = self._open.wake_at
        if due is None or (self._timer is not None and self._timer.when() <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        for key, call in self._open.expire(self._loop.time()):
            if call.kind is ext.EventInterceptResponse:
                self.guard_timeouts += 1
            _refuse(call, CallTimeoutError(f"did not answer within {call.limit_s:g} s"))
            self._given_up(key, call)
        self._check_idle()
        self._arm()

    def _check_idle(self) -> None:
        if not len(self._open):
            self._idle()


def _refuse(call: PendingCall, error: ExtensionCallError) -> None:
    if not call.answer.done():
        call.answer.set_exception(error)
