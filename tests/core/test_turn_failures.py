"""One run whose model requests fail: what is asked again, after which pause, and what ends the run."""

import pytest

from tests.core.dialogue import alone, dialogue, failed, replied, turn
from zotd.core.retry import BROKEN_REPLIES, REPEATED, Failure, RetryPolicy
from zotd.core.turn import Begin, End, Finished, ReplyStarted, Send, StartCalls, Wait, Waited


def test_a_request_that_fails_is_tried_again_after_longer_and_longer_waits_until_the_patience_is_used_up():
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


def test_the_provider_may_say_how_long_to_wait():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (failed(1, retry_after_s=7), [Wait(2, 7, 1, "it failed: server")]))


def test_a_reply_after_a_retry_is_as_good_as_one_at_once():
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
def test_a_reply_that_fails_after_its_first_byte_is_asked_for_again(failure):
    wait = Wait(2, 0.5, 1, f"it failed: {failure}")
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (ReplyStarted(1), []),
        (failed(1, failure), [wait]),
        (Waited(2), [Send(3, 1, 2)]),
    )


@pytest.mark.parametrize("failure", sorted(set(Failure) - REPEATED))
def test_what_does_not_pass_ends_the_run_also_after_the_first_byte(failure):
    end = End("error", open_step=True, error=f"it failed: {failure}")
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (ReplyStarted(1), []), (failed(1, failure), [end]))


def test_a_step_is_given_up_after_so_many_replies_that_broke_off():
    machine = turn()
    [action] = machine.receive(Begin())
    for number in range(1, BROKEN_REPLIES):
        [wait] = machine.receive(failed(action.attempt, Failure.CUT))
        assert wait.number == number
        [action] = machine.receive(Waited(wait.attempt))
    [end] = machine.receive(failed(action.attempt, Failure.CUT))
    assert end.stop == "error"


def test_the_pauses_of_a_later_step_begin_short_again():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (Waited(2), [Send(3, 1, 2)]),
        (replied(3, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(4, 2, 1)]),
        (failed(4), [Wait(5, 0.5, 1, "it failed: server")]),
    )


def test_the_next_request_may_be_repeated_although_the_last_one_was_answered():
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
def test_what_no_repetition_mends_ends_the_run(failure):
    end = End("error", open_step=True, error=f"it failed: {failure}")
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (failed(1, failure), [end]), (Waited(2), []))
