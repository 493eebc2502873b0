"""Derives the stop reason of an editor's prompt from the events of its run.

sent ──accepted──> waiting ──user_message──> running ──done──> outcome
  └──refused──> outcome      └──withdrawn──> outcome
"""

import asyncio

from zotd.client.errors import RunFailedError
from zotd.client.runs import Run
from zotd.client.selection import select
from zotd.wire import events
from zotd.wire.jsonrpc import RpcError, RpcErrorCode

_STEP_LIMIT = "the step limit of "
"""Beginning of the error of a run that reached its step limit; events have no code for it."""

HELD = (
    "the previous run failed or was stopped, so this prompt waits in the session's queue; "
    "`/continue` or another prompt starts it"
)
"""Like `zotd.client.runs.HELD`, with the way out that an editor has."""

_DECLINED = " declined to answer; "
"""Part of the error of a run whose model refused."""


class PromptTurn:
    """One `session/prompt`, until it is answered."""

    def __init__(self) -> None:
        """Create a turn that is not accepted yet."""
        self.run: Run | None = None
        """Its run; None until the daemon has accepted the prompt."""
        self.is_cancelled = False
        """The person has cancelled it; the answer is `cancelled`, whatever happens in the run."""
        self.outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The answer: a stop reason or an RpcError."""
        self._was_queued = False
        self._stop = "end_turn"
        self._error = ""
        self._cut = ""

    def accepted(self, run: Run) -> None:
        """The daemon has accepted the prompt as this run."""
        self.run = run

    def cancel(self) -> None:
        """Whatever becomes of the run, the answer is `cancelled`."""
        self.is_cancelled = True

    @property
    def is_running(self) -> bool:
        """True from the start to the end of its run."""
        return self.run is not None and not self.outcome.done() and (self.run.started or self.run.run_id is not None)

    def on(self, event: events.AnyEvent) -> None:
        """Process an event of the session."""
        if self.run is None or self.outcome.done() or self._is_older(event):
            return
        try:
            mine = select(self.run, [event])
        except RunFailedError:
            if (
                self.run.held
            ):  # the prompt stays queued; without an answer the editor would wait until the person cancels
                self.fail(RpcError(RpcErrorCode.INTERNAL, HELD))
            else:
                self.end("cancelled")
            return
        for one in mine:
            self._note(one)
        if self.run.over:
            self._conclude()

    def _is_older(self, event: events.AnyEvent) -> bool:
        """Return True for a queue from before the prompt was accepted.

        Acceptance is reported on another connection, so older events may still arrive here. A queue without the prompt must
        then not be taken for its withdrawal.
        """
        if not isinstance(event, events.QueueChanged) or self.run is None:
            return False
        self._was_queued |= any(item.id == self.run.input_id for item in event.items)
        return not self._was_queued

    def reports(self, event: events.AnyEvent) -> bool:
        """Return True if the answer will contain this error, so that it need not be shown."""
        if not isinstance(event, events.Error) or not self.is_running or self.is_cancelled:
            return False
        return _known_stop(event.message) is None

    def end(self, reason: str) -> None:
        """Answer with this stop reason, unless already answered."""
        if not self.outcome.done():
            self.outcome.set_result("cancelled" if self.is_cancelled else reason)

    def fail(self, error: RpcError) -> None:
        """Answer with this error, unless already answered; a cancelled prompt is answered with `cancelled`."""
        if self.is_cancelled:
            self.end("cancelled")
        elif not self.outcome.done():
            self.outcome.set_exception(error)

    def _note(self, event: events.AnyEvent) -> None:
        match event:
            case events.TurnEnd(stop=stop):
                self._stop = stop
            case events.Error(message=text) | events.Blocked(message=text):
                self._error = text
            case events.Interrupted(what=what, text=text) if (
                what != "reply"
            ):  # after an interrupted reply the model is asked again, so the run continues
                self._cut = text
            case _:
                pass

    def _conclude(self) -> None:
        known = _known_stop(self._error)
        if self._stop == "aborted":
            self.end("cancelled")
        elif known is not None:
            self.end(known)
        elif self._error or self._cut:
            self.fail(RpcError(RpcErrorCode.INTERNAL, self._error or self._cut))
        else:
            self.end("max_tokens" if self._stop == "length" else "end_turn")


def _known_stop(error: str) -> str | None:
    """Return the ACP stop reason for an error; None if there is none."""
    if error.startswith(_STEP_LIMIT):
        return "max_turn_requests"
    return "refusal" if _DECLINED in error else None
