"""How a prompt of the editor ends: the events of its run, and the stop reason that they come to.

sent ──accepted──> waiting ──user_message──> running ──done──> outcome
  └──refused──> outcome      └──withdrawn──> outcome
"""

import asyncio

from zotd.bridges.acp.jsonrpc import RpcError, RpcErrorCode
from zotd.client.errors import RunFailedError
from zotd.client.runs import Run
from zotd.client.selection import select
from zotd.wire import events

_STEP_LIMIT = "the step limit of "
"""How the sentence of a run begins that has had all its steps; no event has a code for it."""

_DECLINED = " declined to answer; "
"""In the sentence of a run whose model refuses."""


class PromptTurn:
    """One `session/prompt`, until it is answered."""

    def __init__(self) -> None:
        """Sent; nobody has accepted it."""
        self.run: Run | None = None
        """What it has become; None until the daemon has accepted it."""
        self.is_cancelled = False
        """The person has cancelled it: whatever comes of it, that is the answer."""
        self.outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The stop reason, or the `RpcError` that is the answer."""
        self._was_queued = False
        self._stop = "end_turn"
        self._error = ""
        self._cut = ""

    @property
    def is_running(self) -> bool:
        """Its run has begun and is not over."""
        return self.run is not None and not self.outcome.done() and (self.run.started or self.run.run_id is not None)

    def on(self, event: events.AnyEvent) -> None:
        """Something has happened in the session."""
        if self.run is None or self.outcome.done() or self._is_older(event):
            return
        try:
            mine = select(self.run, [event])
        except RunFailedError as error:
            if self.run.held:  # without an answer the editor would wait until the person cancels
                self.fail(RpcError(RpcErrorCode.INTERNAL, str(error)))
            else:
                self.end("cancelled")
            return
        for one in mine:
            self._note(one)
        if self.run.over:
            self._conclude()

    def _is_older(self, event: events.AnyEvent) -> bool:
        """A queue without the prompt, before one with it: from before it was accepted, which another connection says."""
        if not isinstance(event, events.QueueChanged) or self.run is None:
            return False
        self._was_queued |= any(item.id == self.run.input_id for item in event.items)
        return not self._was_queued

    def reports(self, event: events.AnyEvent) -> bool:
        """Whether the answer will say what this error says, so that nothing else has to."""
        if not isinstance(event, events.Error) or not self.is_running or self.is_cancelled:
            return False
        return _known_stop(event.message) is None

    def end(self, reason: str) -> None:
        """Answer with this reason, unless it is answered."""
        if not self.outcome.done():
            self.outcome.set_result("cancelled" if self.is_cancelled else reason)

    def fail(self, error: RpcError) -> None:
        """Answer with this error, unless it is answered, or cancelled."""
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
            case events.Interrupted(what=what, text=text) if what != "reply":  # else the model is asked again
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
    """What ACP calls the reason; None: it has no word for it."""
    if error.startswith(_STEP_LIMIT):
        return "max_turn_requests"
    return "refusal" if _DECLINED in error else None
