"""Runs with fallback models: when another model is asked for, and what follows from the answer."""

import pytest

from tests.core.dialogue import ABORTED, DONE, alone, dialogue, failed, replied
from zotd.core.retry import BROKEN_REPLIES, REPEATED, Failure, RetryPolicy
from zotd.core.turn import Cancel, End, Leave, RequestCompaction, Send, StartCalls, Switch, Turn, Wait
from zotd.core.turn_inputs import (
    Abort,
    Begin,
    CompactionDone,
    Drain,
    Finished,
    NotSwitched,
    Replied,
    ReplyStarted,
    Switched,
    Waited,
)

BRIEF, LONG = RetryPolicy(patience_s=30), RetryPolicy(patience_s=3600)
OF_THE_MODEL = [
    *(Failure.NO_MODEL, Failure.QUOTA, Failure.AUTH, Failure.NO_KEY, Failure.UNAVAILABLE),
    Failure.WRONG_SERVER,
]
OF_THE_REQUEST = [Failure.REFUSED, Failure.TOO_LARGE, Failure.INTERNAL]
"""`refused` is also what a guard or a budget says."""


def turn(fallbacks=1, **fields):
    return Turn(
        **{"max_steps": None, "context": 0, "compact_from": None, "policy": BRIEF} | fields, fallbacks=fallbacks
    )


def to(attempt, *, policy=BRIEF, compact_from=None, is_fallback=True):
    return Switched(attempt, compact_from, policy, is_fallback)


@pytest.mark.parametrize("failure", OF_THE_MODEL)
def test_a_failure_of_the_model_is_no_reason_to_wait_when_there_is_another_one(failure):
    failure = failed(1, failure)
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failure, [Switch(2, failure.error)]),
        (to(2), [Send(3, 1, 2)]),
        (replied(3), [DONE]),
    )


@pytest.mark.parametrize("failure", OF_THE_REQUEST)
def test_a_refused_request_ends_the_run_without_asking_another_model(failure):
    end = End("error", open_step=True, error=f"it failed: {failure}")
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (failed(1, failure), [end]))


@pytest.mark.parametrize("failure", sorted(REPEATED))
def test_an_outage_is_waited_out_for_as_long_as_the_patience_with_a_model_that_has_a_fallback(failure):
    last = failed(3, failure, elapsed_s=30)
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1, failure), [Wait(2, 0.5, 1, f"it failed: {failure}")]),
        (Waited(2), [Send(3, 1, 2)]),
        (last, [Switch(4, last.error)]),
        (to(4), [Send(5, 1, 3)]),
    )


def test_every_failure_is_of_a_model_or_of_the_request():
    assert {*OF_THE_MODEL, *OF_THE_REQUEST, *REPEATED, Failure.CONTEXT} == {*Failure}


def test_a_transcript_that_stays_too_long_after_a_summary_is_a_reason_to_switch():
    """The next model may have a larger context window; and a smaller one in its place is left again."""
    first, again = failed(1, Failure.CONTEXT), failed(3, Failure.CONTEXT)
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (first, [RequestCompaction(2)]),
        (CompactionDone(2), [Send(3, 1, 2)]),
        (again, [Switch(4, again.error)]),
    )


def test_a_retry_after_beyond_the_patience_switches_at_once():
    busy = failed(1, Failure.RATE_LIMIT, retry_after_s=31)
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (busy, [Switch(2, busy.error)]))


def test_replies_that_break_off_again_and_again_are_a_reason_to_switch():
    machine = turn(policy=LONG)
    [action] = machine.receive(Begin())
    for _ in range(BROKEN_REPLIES - 1):
        [wait] = machine.receive(failed(action.attempt, Failure.CUT))
        [action] = machine.receive(Waited(wait.attempt))
    [switch] = machine.receive(failed(action.attempt, Failure.CUT))
    assert isinstance(switch, Switch)
    [send] = machine.receive(to(switch.attempt))
    assert machine.receive(failed(send.attempt, Failure.CUT)) == [Wait(send.attempt + 1, 0.5, 1, "it failed: cut")]


def test_without_another_model_the_run_ends_with_the_failure_of_the_last():
    quota = failed(1, Failure.QUOTA)
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (quota, [Switch(2, quota.error)]),
        (NotSwitched(2), [End("error", open_step=True, error="it failed: quota")]),
        (to(2), []),
    )


def test_failures_and_patience_begin_anew_with_each_model():
    quota = failed(1, Failure.QUOTA)
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (quota, [Switch(2, quota.error)]),
        (to(2, policy=LONG), [Send(3, 1, 2)]),
        (failed(3, elapsed_s=3000), [Wait(4, 0.5, 1, "it failed: server")]),
        (Waited(4), [Send(5, 1, 3)]),
    )


def test_a_model_that_has_answered_is_retried_with_the_usual_patience_again():
    machine = turn()
    quota = failed(1, Failure.QUOTA)
    dialogue(
        machine,
        (Begin(), [Send(1, 1, 1)]),
        (quota, [Switch(2, quota.error)]),
        (to(2, policy=RetryPolicy(patience_s=0), is_fallback=False), [Send(3, 1, 2)]),
        (replied(3, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(4, 2, 1)]),
        (failed(4), [Wait(5, 0.5, 1, "it failed: server")]),
    )
    assert machine.policy is BRIEF


def test_with_a_fallback_each_step_asks_first_whether_a_better_model_is_back():
    quota = failed(1, Failure.QUOTA)
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (quota, [Switch(2, quota.error)]),
        (to(2), [Send(3, 1, 2)]),
        (replied(3, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Switch(4, None)]),
        (NotSwitched(4), [Send(5, 2, 1)]),
        (replied(5, alone("b")), [StartCalls(["b"])]),
        (Finished("b"), [Switch(6, None)]),
        (to(6, is_fallback=False), [Send(7, 3, 1)]),
        (replied(7, alone("c")), [StartCalls(["c"])]),
        (Finished("c"), [Send(8, 4, 1)]),
    )


def test_a_run_asks_for_its_model_first_when_the_own_one_has_failed_lately():
    dialogue(turn(begins_with_choice=True), (Begin(), [Switch(1, None)]), (to(1), [Send(2, 1, 1)]))


def test_a_transcript_that_is_too_long_for_the_fallback_is_summarised_by_it_first():
    quota = failed(1, Failure.QUOTA)
    dialogue(
        turn(context=1000, compact_from=2000),
        (Begin(), [Send(1, 1, 1)]),
        (quota, [Switch(2, quota.error)]),
        (to(2, compact_from=900), [RequestCompaction(3)]),
        (CompactionDone(3), [Send(4, 1, 2)]),
    )


def test_a_summary_that_fails_is_made_by_the_next_model_if_that_needs_one():
    quota = failed(1, Failure.QUOTA)
    dialogue(
        turn(context=1000, compact_from=900),
        (Begin(), [RequestCompaction(1)]),
        (quota, [Switch(2, quota.error)]),
        (to(2, compact_from=900_000), [Send(3, 1, 1)]),
    )


def test_models_that_summarise_and_then_fail_do_not_switch_for_ever():
    machine = turn(context=1000, compact_from=900)
    actions, asked = machine.receive(Begin()), 0
    while not isinstance(actions[0], End):
        [action] = actions
        asked += 1
        assert asked < 50
        match action:
            case RequestCompaction(attempt):
                actions = machine.receive(CompactionDone(attempt))
            case Send(attempt):
                actions = machine.receive(failed(attempt, Failure.QUOTA))
            case _:
                actions = machine.receive(to(action.attempt, compact_from=1))


@pytest.mark.parametrize("error", [True, False])
def test_a_drain_while_a_model_is_chosen_leaves_at_once(error):
    quota = failed(1, Failure.QUOTA)
    if error:
        lines = [(Begin(), [Send(1, 1, 1)]), (quota, [Switch(2, quota.error)]), (Drain(), [Cancel(2), Leave()])]
        dialogue(turn(), *lines, (to(2), []))
    else:
        dialogue(turn(begins_with_choice=True), (Begin(), [Switch(1, None)]), (Drain(), [Cancel(1), Leave()]))


def test_a_draining_run_does_not_switch():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (Drain(), []), (failed(1, Failure.QUOTA), [Leave()]))


def test_an_abort_while_a_model_is_chosen_ends_the_run_and_the_choice_comes_too_late():
    quota = failed(1, Failure.QUOTA)
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (quota, [Switch(2, quota.error)]),
        (Abort(), [Cancel(2), ABORTED]),
        (to(2), []),
        (NotSwitched(2), []),
    )


def test_a_choice_that_nothing_asked_for_changes_nothing():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (to(0), []),
        (NotSwitched(0), []),
        (ReplyStarted(1), []),
        (Replied(1, alone("a"), 0), [StartCalls(["a"])]),
    )


def test_a_sentence_of_retries_counts_only_those_of_the_last_model():
    quota = failed(1, Failure.QUOTA)
    machine = turn()
    dialogue(
        machine,
        (Begin(), [Send(1, 1, 1)]),
        (quota, [Switch(2, quota.error)]),
        (to(2, policy=RetryPolicy(patience_s=0)), [Send(3, 1, 2)]),
    )
    [switch] = machine.receive(failed(3))
    [end] = machine.receive(NotSwitched(switch.attempt))
    assert end.error == "it failed: server"
