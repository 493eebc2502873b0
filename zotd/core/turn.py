"""One agent run, from an accepted input to its end, as a state machine without I/O.

    begin -> [tools] -> [compacting] -> calling -> (waiting -> calling)* -> tools -> calling ... -> ended
                                           ^            └─> switching ─┐
                                           └───────────────────────────┘

`receive(input)` returns the actions for the caller, in order. Each action with an answer has an id. Answers with an id
that is no longer awaited (late, repeated, cancelled) are ignored, which makes an abort safe at any moment. A run
produces exactly one `End` or one `Leave`, and no action after it.

With fallback models, a model that is given up is replaced (`Switch`) as long as the caller has another one. A model
that came in its place answers the same step; at each later step the caller may go back to a better one.

Source: `docs/protocol.md` (order of events, abort, step limit), `docs/durability.md` (retries), `docs/models.md`
(fallback).
"""

from collections.abc import Sequence

from msgspec import Struct

from zotd.core import retry
from zotd.core.retry import Failure, ModelError
from zotd.core.turn_inputs import (
    Abort,
    Answer,
    Begin,
    CompactionDone,
    Drain,
    Failed,
    Finished,
    Input,
    NotSwitched,
    Replied,
    ReplyStarted,
    RequestedCall,
    Switched,
    Waited,
)


class Send(Struct, frozen=True):
    """Call the model; answer with ReplyStarted and then Replied, or with Failed."""

    attempt: int
    step: int
    number: int
    """Number of the attempt within this step, from 1."""


class Wait(Struct, frozen=True):
    """Wait for `delay_s` seconds before a retry, then answer Waited."""

    attempt: int
    delay_s: float
    number: int
    """Number of consecutive failures, from 1."""
    reason: str


class RequestCompaction(Struct, frozen=True):
    """Summarise the transcript, then answer CompactionDone or Failed."""

    attempt: int


class Switch(Struct, frozen=True):
    """Choose the model of the next requests, then answer Switched or NotSwitched."""

    attempt: int
    error: ModelError | None
    """Why the current model is given up. None: it works, or none was asked yet, but a better one may be back."""


class Cancel(Struct, frozen=True):
    """Cancel the Send, Wait, RequestCompaction or Switch with this id; its answer is no longer awaited."""

    attempt: int


class StartCalls(Struct, frozen=True):
    """Run these calls concurrently; answer Finished for each."""

    calls: Sequence[str]


class CancelCalls(Struct, frozen=True):
    """Cancel these calls; each still answers Finished."""

    calls: Sequence[str]


class Skip(Struct, frozen=True):
    """Record a result for a call that does not run; no answer."""

    call: str


class End(Struct, frozen=True):
    """The run is over. `stop` is `end_turn`, `error` or `aborted`.

    `open_step`: send a `turn_end` first, because the last step has none yet or the run was aborted. `error` is a
    message for the user.
    """

    stop: str
    open_step: bool
    error: str | None = None


class Leave(Struct, frozen=True):
    """Stop here without an end: nothing is in progress, and a later run resumes from here."""


Action = Send | Wait | RequestCompaction | Switch | Cancel | StartCalls | CancelCalls | Skip | End | Leave


def tokens_limit(context_window: int, part: float) -> int | None:
    """Return the context size in tokens at which to summarise; None if the model's context window is unknown."""
    return int(context_window * part) if context_window else None


class Turn:
    """State machine of one run."""

    def __init__(
        self,
        *,
        max_steps: int | None,
        context: int,
        compact_from: int | None,
        policy: retry.RetryPolicy | None = None,
        fallbacks: int = 0,
        begins_with_choice: bool = False,
    ) -> None:
        """Create the state machine of a run that has not begun.

        Args:
            max_steps: limit of model calls; None: unlimited.
            context: tokens of the last request.
            compact_from: number of tokens from which the transcript is summarised before the next request; None: never.
            policy: how long to retry failed requests of a model that has answered.
            fallbacks: number of models that may be asked instead of the session's own.
            begins_with_choice: ask for the model (`Switch`) before the first step: the own one has failed lately.
        """
        self._usual = self.policy = policy or retry.RetryPolicy()
        """How long failed requests are retried: `_usual` by a model that has answered, `policy` now."""
        self._fallbacks = fallbacks
        self._switches = 0
        self._chooses = begins_with_choice
        self._gave_up: str | None = None
        """While it awaits another model: what the run ends with if there is none. None: it goes on as it is."""
        self._failures = 0
        self._broken = 0
        self._max_steps = max_steps
        self._context = context
        self._compact_from = compact_from
        self._attempt = 0
        # One id for all awaited actions: a run waits for at most one of reply, pause and summary at a time.
        self._awaited: int | None = None
        self._opened = False
        self._step = 0
        self._number = 0
        self._compacted_for = -1
        self._is_compacting = False
        self._batches: list[list[str]] = []
        self._running: set[str] = set()
        self._begun = False
        self._paused: int | None = None
        self._aborted = False
        self._draining = False
        self._ended = False

    @property
    def step(self) -> int:
        """Number of the current or last model call, from 1; 0 before the first."""
        return self._step

    @property
    def awaited(self) -> int | None:
        """Id of the awaited answer; answers with any other id are stale."""
        return self._awaited

    def receive(self, event: Input) -> list[Action]:
        """Return the actions that follow from `event`, in order."""
        if self._ended:  # late answers to cancelled actions
            return []
        match event:
            case Begin(calls):
                return self._begin(calls)
            case Abort():
                return self._abort()
            case Drain():
                return self._drain()
            case Finished(call):
                return self._finished(call)
            case _:
                # Compared by id, because an answer may already be under way when its action is cancelled.
                return self._answered(event) if event.attempt == self._awaited else []

    def _begin(self, calls: Sequence[RequestedCall]) -> list[Action]:
        if self._begun:
            return []
        self._begun = True
        if not calls:
            return self._next_step()
        self._batches = _batches(calls)
        return self._next_batch()

    def _answered(self, event: Answer) -> list[Action]:
        match event:
            case ReplyStarted():
                self._opened = True
                return []
            case Replied():
                return self._replied(event)
            case Failed():
                return self._failed(event)
            case Waited():
                return [RequestCompaction(self._expect())] if self._is_compacting else self._send()
            case CompactionDone():
                self._is_compacting = False
                self._failures = 0  # the model works again, so the next failure begins a new outage
                return self._send()
            case Switched():
                return self._switched(event)
            case NotSwitched():
                return self._not_switched()

    @property
    def _is_last_step(self) -> bool:
        return self._max_steps is not None and self._step >= self._max_steps

    def _next_step(self) -> list[Action]:
        if self._is_last_step:
            message = f"the step limit of {self._max_steps} is reached; the next prompt continues from here"
            return self._end("error", error=message, open_step=False)
        self._step += 1
        self._number = 0
        if self._chooses and not self._draining:
            return self._choose(None)
        return self._begin_step()

    def _begin_step(self) -> list[Action]:
        # A draining run starts no summary: `_send` leaves instead, and the next daemon summarises.
        is_full = self._compact_from is not None and self._context >= self._compact_from
        return self._compact() if is_full and not self._draining else self._send()

    def _send(self) -> list[Action]:
        if self._draining:
            return self._leave()
        self._number += 1
        self._opened = False
        return [Send(self._expect(), self._step, self._number)]

    def _compact(self) -> list[Action]:
        self._compacted_for = self._step  # at most one summary per step, or a request that stays too long would loop
        self._is_compacting = True
        self._context = 0  # unknown until the next reply reports it
        return [RequestCompaction(self._expect())]

    def _replied(self, reply: Replied) -> list[Action]:
        self._awaited = None
        self._failures = self._broken = self._switches = 0
        self.policy = self._usual
        self._context = reply.context
        if not reply.calls and reply.steered and not self._is_last_step and not self._draining:
            # Inputs that arrived during the last step join this run instead of starting another one.
            return self._next_step()
        if not reply.calls:  # the model is done; inputs that could not join because of the limit get a run of their own
            return self._end("end_turn", open_step=False)
        self._batches = _batches(reply.calls)
        return self._next_batch()

    def _failed(self, failed: Failed) -> list[Action]:
        error = failed.error
        # Too long for the model: summarise and try again. Not after a reply has begun: then the request did fit.
        if error.failure is Failure.CONTEXT and self._compacted_for != self._step and not self._opened:
            return self._leave() if self._draining else self._compact()
        self._failures += 1
        self._broken += error.failure is Failure.CUT
        delay = self.policy.delay_s(error, failures=self._failures, elapsed_s=failed.elapsed_s, random=failed.random)
        # Broken replies have a limit of their own, because the vendor may bill each of them.
        if delay is None or self._broken >= retry.BROKEN_REPLIES:
            sentence = retry.gave_up(error, failures=self._failures, elapsed_s=failed.elapsed_s)
            if not self._may_switch(error):
                return self._end("error", error=sentence, open_step=self._number > 0)
            if self._draining:
                return self._leave()
            self._switches += 1
            return self._choose(error, sentence)
        if self._draining:
            return self._leave()
        self._paused = self._expect()
        return [Wait(self._paused, delay, self._failures, error.sentence)]

    def _may_switch(self, error: ModelError) -> bool:
        """Whether another model may not have this failure, and the caller has not had its turns in this outage."""
        # Each other model once with little patience, then each of all once more with the full one.
        turns = 2 * self._fallbacks + 1 if self._fallbacks else 0
        return retry.is_of_the_model(error) and self._switches < turns

    def _choose(self, error: ModelError | None, gave_up: str | None = None) -> list[Action]:
        self._gave_up = gave_up
        # Like a pause: nothing is asked of a vendor meanwhile, so a draining run leaves at once.
        self._paused = self._expect()
        return [Switch(self._paused, error)]

    def _switched(self, chosen: Switched) -> list[Action]:
        self.policy, self._compact_from, self._chooses = chosen.policy, chosen.compact_from, chosen.is_fallback
        self._failures = self._broken = 0
        self._compacted_for = -1  # what another model could not summarise, or held without, this one may have to
        self._is_compacting = False
        return self._begin_step()

    def _not_switched(self) -> list[Action]:
        if self._gave_up is None:
            return self._begin_step()
        return self._end("error", error=self._gave_up, open_step=self._number > 0)

    def _next_batch(self) -> list[Action]:
        if not self._batches:
            return self._next_step()
        batch = self._batches.pop(0)
        self._running = set(batch)
        return [StartCalls(batch)]

    def _finished(self, call: str) -> list[Action]:
        if call not in self._running:  # repeated, or of an earlier run
            return []
        self._running.remove(call)
        if self._running:
            return []
        # An aborted run ends here and not in `_abort`: the results of cancelled calls precede the end.
        return self._end("aborted", open_step=True) if self._aborted else self._next_batch()

    def _drain(self) -> list[Action]:
        self._draining = True
        if self._awaited is None or self._awaited != self._paused:
            return []
        return [Cancel(self._awaited), *self._leave()]  # during a pause, or a choice of models, nothing is in progress

    def _leave(self) -> list[Action]:
        self._ended = True
        self._awaited = None
        return [Leave()]

    def _abort(self) -> list[Action]:
        if self._aborted:
            return []
        self._aborted = True
        # Calls that have not begun get a result too: vendors reject a transcript in which a call has none.
        skipped: list[Action] = [Skip(call) for batch in self._batches for call in batch]
        self._batches = []
        if self._running:
            return [
                CancelCalls(sorted(self._running)),
                *skipped,
            ]  # sorted: actions must not depend on the order of a set
        cancel: list[Action] = [] if self._awaited is None else [Cancel(self._awaited)]
        return [*cancel, *self._end("aborted", open_step=True)]

    def _end(self, stop: str, *, error: str | None = None, open_step: bool = True) -> list[Action]:
        self._ended = True
        self._awaited = None
        return [End(stop, open_step, error)]

    def _expect(self) -> int:
        self._attempt += 1
        self._awaited = self._attempt
        return self._attempt


def _batches(calls: Sequence[RequestedCall]) -> list[list[str]]:
    """Group adjacent parallel calls into batches; every other call is a batch of its own. Keeps the model's order."""
    # Not all parallel calls of a reply together: one after a `write` may depend on what it wrote.
    batches: list[list[str]] = []
    beside = False
    for call in calls:
        if call.parallel and beside:
            batches[-1].append(call.id)
        else:
            batches.append([call.id])
        beside = call.parallel
    return batches
