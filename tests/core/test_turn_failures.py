"""Runs with failing model requests: what is retried, after which pause, and what ends the run."""

import pytest

from tests.core.dialogue import alone, dialogue, failed, replied, turn
from zotd.core.retry import BROKEN_REPLIES, REPEATED, Failure, RetryPolicy
from zotd.core.turn import End, Send, StartCalls, Wait
from zotd.core.turn_inputs import Begin, Finished, ReplyStarted, Waited


def test_a_failed_request_is_retried_with_growing_pauses_until_the_patience_ends():
    sentence = "gave up after 4 tries in 60 s: it failed: server; /continue tries again"
    dialogue(
        turn(policy=RetryPolicy(patience_s=60)),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (Waited(2), [Send(3, 1, 2)]),
        (failed(3), [Wait(4, 1.0, 2, "it failed: server")]),
        (Waited(4), [Send(5, 1, 3)]),
        (failed(5), [Wait(6, 2.0, 3, "it failed: server")]),
        (Waited(6), [Send(7, 1, 4)]),
        (failed(7, elapsed_s=60), [End("error", open_step=True, error=sentence)]),
    )


def test_the_provider_may_determine_the_pause():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (failed(1, retry_after_s=7), [Wait(2, 7, 1, "it failed: server")]))


def test_a_reply_after_a_retry_continues_the_run():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (Waited(2), [Send(3, 1, 2)]),
        (ReplyStarted(3), []),
        (replied(3, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(4, 2, 1)]),
    )


@pytest.mark.parametrize("failure", sorted(REPEATED))
def test_a_reply_that_breaks_off_is_retried(failure):
    wait = Wait(2, 0.5, 1, f"it failed: {failure}")
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (ReplyStarted(1), []),
        (failed(1, failure), [wait]),
        (Waited(2), [Send(3, 1, 2)]),
    )


@pytest.mark.parametrize("failure", sorted(set(Failure) - REPEATED))
def test_a_permanent_failure_ends_the_run_even_after_the_first_byte(failure):
    end = End("error", open_step=True, error=f"it failed: {failure}")
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (ReplyStarted(1), []), (failed(1, failure), [end]))


def test_a_step_fails_after_too_many_broken_replies():
    machine = turn()
    [action] = machine.receive(Begin())
    for number in range(1, BROKEN_REPLIES):
        [wait] = machine.receive(failed(action.attempt, Failure.CUT))
        assert wait.number == number
        [action] = machine.receive(Waited(wait.attempt))
    [end] = machine.receive(failed(action.attempt, Failure.CUT))
    assert end.stop == "error"


def test_the_pauses_of_a_later_step_start_short_again():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (Waited(2), [Send(3, 1, 2)]),
        (replied(3, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(4, 2, 1)]),
        (failed(4), [Wait(5, 0.5, 1, "it failed: server")]),
    )


def test_a_later_request_is_retried_as_well():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (ReplyStarted(1), []),
        (replied(1, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (failed(2), [Wait(3, 0.5, 1, "it failed: server")]),
    )


@pytest.mark.parametrize(
    "failure", [Failure.AUTH, Failure.NO_KEY, Failure.REFUSED, Failure.UNAVAILABLE, Failure.INTERNAL]
)
def test_a_permanent_failure_ends_the_run(failure):
    end = End("error", open_step=True, error=f"it failed: {failure}")
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (failed(1, failure), [end]), (Waited(2), []))
