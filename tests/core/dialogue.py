"""Checks of the run's state machine: inputs and expected actions."""

from zotd.core.retry import Failure, ModelError
from zotd.core.turn import End, Turn
from zotd.core.turn_inputs import Failed, Replied, RequestedCall


def turn(*, max_steps=None, context=0, compact_from=None, policy=None):
    return Turn(max_steps=max_steps, context=context, compact_from=compact_from, policy=policy)


def failed(attempt, failure=Failure.SERVER, *, retry_after_s=None, elapsed_s=0.0):
    error = ModelError(failure, f"it failed: {failure}", retry_after_s=retry_after_s)
    return Failed(attempt, error, 0.5, elapsed_s)


def alone(*ids):
    return [RequestedCall(key, parallel=False) for key in ids]


def beside(*ids):
    return [RequestedCall(key, parallel=True) for key in ids]


def replied(attempt, calls=(), context=0, *, steered=False):
    return Replied(attempt, calls, context, steered)


def dialogue(machine, *lines):
    """Check pairs of an input and the expected actions; fails at the first pair that differs."""
    for number, (event, actions) in enumerate(lines):
        assert machine.receive(event) == actions, f"line {number}: {event}"


DONE = End("end_turn", open_step=False)
ABORTED = End("aborted", open_step=True)
