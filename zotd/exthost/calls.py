"""Pending calls to one process: `core.correlation` with futures and a timer."""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from zotd.core.correlation import Correlation, Dropped
from zotd.core.ports import Ancestor
from zotd.wire import ext

PROGRESS_CHARS = 64 * 1024
"""Longest progress text that is kept: it is only displayed, and its event is limited to 4 MiB."""

PATIENCE_S = 6 * 3600.0
"""Longest time that progress can extend a call: a server that only reports progress must not block it for ever."""

Answer = ext.ToolResult | ext.CommandResponse | ext.EventInterceptResponse

Asked = ext.AskUser | ext.AskModel
"""What a program asks during a call."""

UserOrModelAnswer = ext.UserAnswer | ext.ModelAnswer
"""The answer to it."""


class ExtensionCallError(Exception):
    """A call failed without an answer. The message continues a sentence that begins with the extension's name."""


class CallTimeoutError(ExtensionCallError):
    """The extension did not answer in time."""


class PendingCall(Struct):
    """A pending call to the process."""

    kind: type[Answer]
    answer: asyncio.Future[Answer]
    limit_s: float | None
    session: str | None
    progress: Callable[[str], None] | None
    lineage: tuple[Ancestor, ...] = ()
    """For a tool call: the calls that led to it, outermost first, and the call itself last."""
    until: float | None = None
    """Progress restarts the limit until this time of the event loop; None: progress does not restart it."""
    cwd: str | None = None
    """The `cwd` of its frame; only set for an extension of scope `daemon`."""
    asked: Callable[[Asked], None] | None = None
    """Gets questions to a person, and to the model."""


class Calls:
    """The pending calls of one process, with their time limits."""

    def __init__(
        self,
        label: str,
        *,
        idle: Callable[[], None],
        given_up: Callable[[str, PendingCall], None],
        is_patient: bool = False,
    ) -> None:
        """Create the calls of a process without any pending call.

        Args:
            label: prefix of call ids, unique among all processes.
            idle: called when the last pending call has ended.
            given_up: called when a call has timed out or its caller was cancelled.
            is_patient: progress restarts the limit of a call.
        """
        self.guard_timeouts = 0
        """Consecutive interceptions without an answer in time. Any answer resets it, even a late one."""
        self._is_patient = is_patient
        self._open: Correlation[PendingCall] = Correlation(label)
        self._idle = idle
        self._given_up = given_up
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def dropped(self) -> Dropped:
        """Numbers of dropped answers: late, repeated, or to an unknown id."""
        return self._open.dropped

    @property
    def session(self) -> str | None:
        """The session of the newest open call that has one."""
        return next((call.session for call in reversed(list(self._open)) if call.session is not None), None)

    def find(self, key: str) -> PendingCall | None:
        """Return the pending call with this id, or None."""
        return self._open.peek(key)

    def is_asked(self, session: str) -> bool:
        """Return True if a tool call or a question to a guard about this session is pending."""
        return any(call.session == session and call.kind is not ext.CommandResponse for call in self._open)

    async def call(  # noqa: PLR0913  (what a pending call consists of)
        self,
        kind: type[Answer],
        send: Callable[[str], None],
        *,
        limit_s: float | None,
        session: str | None = None,
        progress: Callable[[str], None] | None = None,
        lineage: tuple[Ancestor, ...] = (),
        cwd: str | None = None,
        asked: Callable[[Asked], None] | None = None,
    ) -> Answer:
        """Send a frame with a new id and wait for an answer of this kind. Safe to cancel: the answer is then dropped.

        Raises:
            CallError: it was not sent, the process ended, or the answer makes no sense.
            CallTimeoutError: no answer within `limit_s` seconds (None: no limit); if `is_patient`, neither an
                answer nor progress within them, or no answer within `PATIENCE_S`.
        """
        until = self._loop.time() + PATIENCE_S if self._is_patient else None
        call = PendingCall(kind, self._loop.create_future(), limit_s, session, progress, lineage, until, cwd, asked)
        # Opening the call creates the id that its frame contains.
        key = self._open.open(call, None if limit_s is None else self._loop.time() + limit_s)
        try:
            send(key)
        except Exception:
            self._open.cancel(key)
            raise
        self._arm()
        try:
            return await call.answer
        finally:
            # Still open means that the caller was cancelled; an answered or expired call has been removed already.
            if self._open.cancel(key):
                self._given_up(key, call)
                self._check_idle()

    def answered(self, frame: Answer) -> bool:
        """Complete the call that this frame answers; return False if there is none."""
        # A late answer counts here too: it shows that the guard responds again, so that it is asked again.
        if isinstance(frame, ext.EventInterceptResponse) and self._was_asked(frame.id):
            self.guard_timeouts = 0
        call = self._open.peek(frame.id)
        if call is not None and not isinstance(frame, call.kind):
            # The caller must not wait for its timeout: an extension that mixes up its frames will not answer
            # correctly later.
            return self.reject(frame.id, "answered with a frame of the wrong type")
        if self._open.answer(frame.id) is None or call is None:
            return False
        if not call.answer.done():
            call.answer.set_result(frame)
        self._check_idle()
        return True

    def progress(self, frame: ext.ToolProgress) -> None:
        """Pass the progress on to the call's listener and, for a patient process, restart its time limit."""
        call = self._open.peek(frame.id)
        if call is None:
            return
        if call.until is not None and call.limit_s is not None:
            self._open.postpone(frame.id, min(self._loop.time() + call.limit_s, call.until))
        if call.progress is not None:
            call.progress(frame.text[:PROGRESS_CHARS])

    def asked(self, frame: Asked) -> bool:
        """Pass a question to the call that it is about; return False if there is none, or nobody can be asked in it."""
        call = self._open.peek(frame.tool_call)
        if call is None or call.asked is None:
            return False
        call.asked(frame)
        return True

    def reject(self, key: str, reason: str) -> bool:
        """Fail the pending call with this id; return False if there is none."""
        call = self._open.answer(key) if self._open.peek(key) is not None else None
        if call is None:
            return False
        _refuse(call, ExtensionCallError(reason))
        self._check_idle()
        return True

    def reject_only(self, reason: str) -> None:
        """Fail the pending call if there is exactly one. Used when the id of a bad answer is unreadable."""
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
        # The id may belong to a question that has already timed out.
        return self._open.peek(key) is not None or self._open.was_open(key)

    def _arm(self) -> None:
        """Set the timer to the next deadline."""
        due = self._open.wake_at
        # An earlier timer stays: when it fires and finds nothing expired, it is set again. Most calls end before.
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


def unanswered(question: Asked, reason: str = "no such call is running") -> UserOrModelAnswer:
    """Return the answer that there is none; only a question to the model gets the reason."""
    if isinstance(question, ext.AskUser):
        return ext.UserAnswer(question.id, "cancel", {})
    return ext.ModelAnswer(question.id, "cancel", reason=reason)


def _refuse(call: PendingCall, error: ExtensionCallError) -> None:
    # The caller may have been cancelled, which has ended its future.
    if not call.answer.done():
        call.answer.set_exception(error)
