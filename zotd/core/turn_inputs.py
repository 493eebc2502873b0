"""What a run's state machine (`core.turn`) is told: that it begins, how its actions ended, and what clients ask for."""

from collections.abc import Sequence

from msgspec import Struct

from zotd.core import retry
from zotd.core.retry import ModelError


class ReplyStarted(Struct, frozen=True):
    """The provider has begun to answer."""

    attempt: int


class RequestedCall(Struct, frozen=True):
    """A tool call of a reply."""

    id: str
    parallel: bool


class Begin(Struct, frozen=True):
    """The run starts. `calls`: calls that an earlier run left without a result; they run first."""

    calls: Sequence[RequestedCall] = ()


class Replied(Struct, frozen=True):
    """The reply is complete and recorded.

    `context`: tokens of the request and the reply. `steered`: inputs are waiting to join the run at its next step.
    """

    attempt: int
    calls: Sequence[RequestedCall]
    context: int
    steered: bool = False


class Failed(Struct, frozen=True):
    """The request for a reply or a summary failed.

    `random` in [0, 1) spreads the retries; `elapsed_s` is the time since the first failure of the same outage.
    """

    attempt: int
    error: ModelError
    random: float
    elapsed_s: float = 0.0


class Waited(Struct, frozen=True):
    """The delay before a retry is over."""

    attempt: int


class Finished(Struct, frozen=True):
    """A call has its result, which is recorded."""

    call: str


class CompactionDone(Struct, frozen=True):
    """The compaction that `RequestCompaction` requested is done."""

    attempt: int


class Switched(Struct, frozen=True):
    """The model of the next requests is chosen, as `Switch` asked; it may be the one before, with another patience."""

    attempt: int
    compact_from: int | None
    """As in `Turn`, for this model."""
    policy: retry.RetryPolicy
    """How long to retry its failures, until it has answered."""
    is_fallback: bool
    """There is a better model: ask again (`Switch`) before the next step."""


class NotSwitched(Struct, frozen=True):
    """There is no other model that could go on."""

    attempt: int


class Abort(Struct, frozen=True):
    """A client ends the run now."""


class Drain(Struct, frozen=True):
    """The process is about to end: the run must stop before its next model request."""


Answer = ReplyStarted | Replied | Failed | Waited | CompactionDone | Switched | NotSwitched
"""Inputs that answer an action, by its id."""

Input = Begin | Answer | Finished | Abort | Drain
