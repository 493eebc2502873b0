"""One session's approvals: asks people about calls, and records what they decide (`docs/durability.md`, Approvals).

    ask ──> request on disk ──> clients see it ──> waits ─┬─ decide ──> decision on disk ──> the decider is answered
                                                          │             ──> everybody sees it ──> the call goes on
                                                          └─ too late, or no call waits any more: recorded as such

After a restart the same approvals are pending again, except those whose deadline has passed. No call waits for them yet:
a decision is kept until `ask` comes for it, and deadlines are watched here.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Protocol

from msgspec import Struct, field

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.approvals import (
    CANCELLED,
    DENY,
    ApprovalResolution,
    ApprovalTable,
    Lost,
    Stale,
    UnknownQuestion,
    Won,
)
from zotd.core.choices import SAME, Choice, as_toml
from zotd.core.permissions import PermissionRule, digest
from zotd.core.ports import StorageError
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.permissions.decisions import (
    ApprovalAnswer,
    answer_of,
    check_scope,
    decision_of,
    resolution_of,
    resolved_event,
    rules_of,
)
from zotd.wire import api, events
from zotd.wire.content import ToolContent
from zotd.wire.errors import Code, CommandError

HALF_MILLISECOND_S = 0.0005
"""Added before a time is cut to milliseconds, so that it is rounded."""

STOPPED = "the call was aborted"
"""Why an approval ended without a decision."""

COMMAND_ENDED = "the command that asked has ended"
"""The same for one about a host."""

SETTLED = "the call does not wait for it any more"
"""The same for one whose call runs without a decision, or has its result."""


class _Request(Struct, eq=False):
    row: records.ApprovalRow
    stored: asyncio.Future[None]
    """Done when it is on disk."""
    answer: asyncio.Future[ApprovalAnswer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def deadline(self) -> float | None:
        """Deadline in seconds since the epoch; None: it waits for ever."""
        return None if self.row.expires is None else _seconds(self.row.expires)


class ApprovalFollower(Protocol):
    """A client that follows the session."""

    @property
    def can_decide(self) -> bool:
        """It answers questions about calls, and may."""
        ...


class SessionApprovals:
    """The approvals of one session. Methods raise StorageError when the journal cannot write."""

    def __init__(self, ledger: Ledger, *, changed: Callable[[], None]) -> None:
        """`changed` is called whenever the number of pending approvals has changed."""
        self.followers: set[ApprovalFollower] = set()
        """Clients that follow the session; their connections keep it up to date."""
        self.is_frozen = False
        """See `freeze`."""
        self._ledger = ledger
        self._changed = changed
        self._questions = ApprovalTable()
        self.requests: dict[str, _Request] = {}
        """Requests whose answer was not delivered yet, by id."""
        self.shown: dict[str, events.ApprovalRequested] = {}
        """What clients see as pending; changes in one step with the events that say so."""
        self._decided: dict[str, asyncio.Future[None]] = {}
        """Decisions on their way to the disk."""
        self._alarm: asyncio.TimerHandle | None = None
        """Timer for the deadlines of approvals from before a restart; newer ones have a waiting task."""

    def freeze(self) -> None:
        """Leave pending approvals as they are, because the process ends, or another daemon gets the session."""
        self.is_frozen = True
        if self._alarm is not None:
            self._alarm.cancel()

    @property
    def is_attended(self) -> bool:
        """Whether a follower of the session can decide."""
        return any(follower.can_decide for follower in self.followers)

    def pending(self) -> list[events.ApprovalRequested]:
        """What waits for a decision, as clients were told of it, oldest first."""
        return list(self.shown.values())

    def rules_of(self, params: api.Approve) -> tuple[PermissionRule, ...]:
        """What the decision would allow from then on; nothing when it is refused, or about once."""
        request = self.requests.get(params.approval)
        return () if request is None else rules_of(params.scope, params.choice, request.row)

    @property
    def is_due(self) -> bool:
        """Whether an approval has a deadline that must be watched."""
        return self._questions.due is not None

    def restore(self, transcript: Transcript) -> list[Shown]:
        """Start again from what the journal holds; returns the records for those that are over."""
        self._questions, self.requests, self.shown = ApprovalTable(), {}, {}
        late: list[Shown] = []
        for row in transcript.approvals.values():
            request = self.requests[row.id] = _Request(row, _done())
            decision = transcript.decisions.get(row.id)
            if decision is None and (row.while_running or is_over(row)):
                ended = _without_person(row, CANCELLED, COMMAND_ENDED)
                decision = ended if row.while_running else _denial(row)
                late.append(Shown(decision, [resolved_event(decision)]))
            if decision is None:
                self._questions.request(row.id, row.args_digest, expires=request.deadline)
                self.shown[row.id] = asked(row, self._ledger.label)
            else:
                self._questions.resolved(row.id, resolution_of(decision))
                request.answer.set_result(answer_of(decision))
        self._watch()
        return late

    async def expire(self) -> None:
        """End overdue approvals and wait until clients know: no client is shown an approval that is over.

        No timer does for sure: while the machine sleeps, none runs.
        """
        waiting = [request for request in self.requests.values() if request.row.id in self.shown]
        late = [request for request in waiting if is_over(request.row)]
        for request in late:
            self._expire(request)
        ends = [self._decided[request.row.id] for request in late if request.row.id in self._decided]
        if ends:
            await asyncio.wait(ends)

    async def ask(  # noqa: PLR0913  (a record has so many fields, and an object for them would be its copy)
        self,
        key: str,
        tool: str,
        args: dict[str, object],
        *,
        run: str,
        preview: str | None,
        ttl_s: float | None,
        approval: str | None = None,
        choices: tuple[Choice, ...] = (),
        while_running: bool = False,
        result: ToolContent | None = None,
    ) -> ApprovalAnswer:
        """Have a person decide about the call `key`; waits for `ttl_s` at most (None: for ever).

        `approval`: a question that was pending before a restart; it is not recorded again, and its own deadline holds.
        `while_running`: the call has started; it may have several of these. They are not asked again after a restart.
        `result`: the error with which the call has ended; it is recorded with the question.
        `choices`: what the scopes beyond `once` would allow (`choices.choices_for`); none: they cannot be chosen.
        Cancelled, it is over for everybody else, too.
        """
        request = self.requests.get(approval or "")
        if request is None:
            if not while_running:
                self.settle(key)  # what was asked before a restart was about other arguments
            now = rfc3339()
            row = records.ApprovalRow(
                time=now,
                id=ids.new("a"),
                call_id=key,
                tool=tool,
                args=args,
                args_digest=digest(tool, args),
                expires=None if ttl_s is None else rfc3339(_seconds(now) + ttl_s + HALF_MILLISECOND_S),
                run=run,
                preview=preview,
                choices=choices,
                while_running=while_running,
                result=result,
            )
            request = self._request(row)
        return await self._answer(request)

    async def decide(self, params: api.Approve, by: str, accepted: Callable[[], None]) -> None:
        """Take the decision of `by`; `accepted` is called when it is on disk, before anybody sees or feels it.

        Raises CommandError: `already_resolved`, `stale_args`, `not_found`, or `bad_request` when the scope does not
        fit.
        """
        for key in self._questions.overdue(time.time()):  # since the session was looked for
            self._expire(self.requests[key])
        key = params.approval
        decision = decision_of(params, by)
        request = self.requests.get(key)
        if key in self._questions.pending and request is not None:
            check_scope(params, request.row)
        match self._questions.decide(key, params.args_digest, resolution_of(decision)):
            case Won():
                assert request is not None
                await asyncio.shield(self._record(request, decision, accepted))
            case Lost(first):
                if key in self._decided:  # it may not have been stored, and then there is no decision
                    await asyncio.shield(self._decided[key])
                raise CommandError(Code.ALREADY_RESOLVED, first.sentence)
            case Stale():
                raise CommandError(
                    Code.STALE_ARGS, "the arguments have changed since the request was shown; review them again"
                )
            case UnknownQuestion():
                raise CommandError(Code.NOT_FOUND, f'no approval "{key}" is pending in this session; see approval.list')

    def cancel(self) -> None:
        """End all pending approvals: the run was aborted, or will not be resumed."""
        for key in self._questions.pending:
            self._cancel(self.requests[key])
        self._watch()

    def settle(self, call: str) -> None:
        """The call has its result, or needs no decision: what is still asked about it is over, and is forgotten."""
        for request in [one for one in self.requests.values() if one.row.call_id == call]:
            self._cancel(request, SETTLED)
            del self.requests[request.row.id]

    # --- asking -----------------------------------------------------------------------------------------------------

    def _request(self, row: records.ApprovalRow) -> _Request:
        """Put a new question on record; clients see it as soon as it is there."""
        event = asked(row, self._ledger.label)

        def is_stored() -> None:
            if row.id in self._questions.pending:  # else it was cancelled meanwhile
                self._show(row.id, event)

        self._questions.request(row.id, row.args_digest, expires=None if row.expires is None else _seconds(row.expires))
        stored = self._ledger.write([Shown(row, [event])], durable=True, accepted=is_stored)
        request = self.requests[row.id] = _Request(row, stored)
        return request

    async def _answer(self, request: _Request) -> ApprovalAnswer:
        """Wait: ends with a decision, the deadline, the caller's cancellation, or a journal that cannot write."""
        try:
            await asyncio.shield(request.stored)
            left_s = None if request.deadline is None else max(0.0, request.deadline - time.time())
            async with asyncio.timeout(left_s):
                return await asyncio.shield(request.answer)
        except TimeoutError:
            self._expire(request)
            return await asyncio.shield(request.answer)  # as soon as that is on disk; or what was decided just before
        except StorageError:
            self._questions.end(request.row.id, ApprovalResolution(CANCELLED, "", reason=STOPPED))
            raise
        except asyncio.CancelledError:
            self._cancel(request, COMMAND_ENDED if request.row.while_running else STOPPED)
            raise
        finally:
            self.requests.pop(request.row.id, None)

    def _watch(self) -> None:
        """Have the next deadline looked after, if there is one."""
        if self._alarm is not None:
            self._alarm.cancel()
        due, self._alarm = self._questions.due, None
        if due is not None:
            self._alarm = asyncio.get_running_loop().call_later(max(0.0, due - time.time()), self._ring)

    def _ring(self) -> None:
        for key in self._questions.overdue(time.time()):
            self._expire(self.requests[key])
        self._watch()

    def _expire(self, request: _Request) -> None:
        self._end(request, _denial(request.row))

    def _cancel(self, request: _Request, reason: str = STOPPED) -> None:
        if not self.is_frozen:
            self._end(request, _without_person(request.row, CANCELLED, reason))

    def _end(self, request: _Request, decision: records.Decision) -> None:
        """Resolve it without a person, unless a decision came first."""
        if self._questions.end(request.row.id, resolution_of(decision)):
            self._record(request, decision, _nothing).add_done_callback(_seen)

    # --- recording --------------------------------------------------------------------------------------------------

    def _record(
        self, request: _Request, decision: records.Decision, accepted: Callable[[], None]
    ) -> asyncio.Future[None]:
        """Put a decision on record, and let it take effect when it is there."""
        key = request.row.id

        def is_stored() -> None:
            accepted()
            self._show(key, None)

        row = self._ledger.row
        allowed = rules_of(decision.scope, decision.choice, request.row)
        granted = tuple(dict.fromkeys((*row.granted, *allowed)))
        # The row says `waiting` when a crash has cut the run: after the last decision the session is held.
        state = "held" if row.state == "waiting" and not self._questions.pending else row.state
        written = self._ledger.write(
            [Shown(decision, [resolved_event(decision)])],
            durable=True,
            accepted=is_stored,
            granted=granted,
            state=state,
        )
        self._decided[key] = written
        written.add_done_callback(partial(self._take_effect, request, decision))
        return written

    def _take_effect(self, request: _Request, decision: records.Decision, written: asyncio.Future[None]) -> None:
        del self._decided[decision.approval]
        error = written.exception()
        if error is None:
            request.answer.set_result(answer_of(decision))
        else:
            request.answer.set_exception(error)
            _seen(request.answer)  # the waiting call may be gone

    def _show(self, key: str, event: events.ApprovalRequested | None) -> None:
        if event is None:
            self.shown.pop(key, None)
        else:
            self.shown[key] = event
        self._changed()


def asked(row: records.ApprovalRow, session: str | None) -> events.ApprovalRequested:
    """The question as clients see it, in the session with this id."""
    return events.ApprovalRequested(
        approval=row.id,
        tool_id=row.call_id,
        tool=row.tool,
        args=row.args,
        args_digest=row.args_digest,
        preview=row.preview,
        expires=row.expires,
        rule=next((as_toml(choice) for choice in row.offered if choice.id == SAME), None),
        choices=[events.ApprovalChoice(one.id, one.text, list(one.scopes), as_toml(one)) for one in row.offered],
        session=session,
    )


def is_over(row: records.ApprovalRow) -> bool:
    """Whether it should have been decided by now."""
    return row.expires is not None and _seconds(row.expires) <= time.time()


def _denial(row: records.ApprovalRow) -> records.Decision:
    """Return the record for an approval whose deadline has passed."""
    within_s = round(_seconds(row.expires or row.time) - _seconds(row.time), 3)
    return _without_person(row, DENY, f"there was no decision within {within_s:g} s")


def _without_person(row: records.ApprovalRow, decision: str, reason: str) -> records.Decision:
    return records.Decision(time=rfc3339(), approval=row.id, decision=decision, scope="once", by="", reason=reason)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _done() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future


def _seen(future: "asyncio.Future[None] | asyncio.Future[ApprovalAnswer]") -> None:
    """Mark the exception as retrieved: it was reported elsewhere, and asyncio would log it again."""
    if future.done() and not future.cancelled():
        future.exception()


def _nothing() -> None:
    """No client waits for an answer."""
