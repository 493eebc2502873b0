"""Runs that somebody joins, and runs that go on where another one was cut."""

from tests.core.dialogue import ABORTED, DONE, alone, beside, dialogue, replied, turn
from zotd.core.turn import (
    Abort,
    Begin,
    CancelCalls,
    CompactionDone,
    Finished,
    RequestCompaction,
    Send,
    Skip,
    StartCalls,
)

# --- inputs that join ------------------------------------------------------------------------------------------


def test_a_run_goes_on_after_its_last_reply_when_an_input_waits_to_join_it():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, steered=True), [Send(2, 2, 1)]),
        (replied(2), [DONE]),
    )


def test_an_input_that_waits_to_join_does_not_keep_calls_from_being_made():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a"), steered=True), [StartCalls(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (replied(2), [DONE]),
    )


def test_at_its_step_limit_a_run_whose_model_is_done_ends_well_and_what_waits_to_join_goes_on_waiting():
    dialogue(turn(max_steps=1), (Begin(), [Send(1, 1, 1)]), (replied(1, steered=True), [DONE]))


def test_a_transcript_that_is_too_long_is_summarised_before_an_input_is_answered_that_joins():
    dialogue(
        turn(compact_from=100),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, context=100, steered=True), [RequestCompaction(2)]),
        (CompactionDone(2), [Send(3, 2, 1)]),
    )


# --- going on --------------------------------------------------------------------------------------------------


def test_a_run_that_goes_on_first_makes_the_calls_that_were_left():
    machine = turn()
    dialogue(
        machine,
        (Begin([*beside("a", "b"), *alone("c")]), [StartCalls(["a", "b"])]),
        (Finished("b"), []),
        (Finished("a"), [StartCalls(["c"])]),
        (Finished("c"), [Send(1, 1, 1)]),
        (replied(1), [DONE]),
    )
    assert machine.step == 1


def test_the_calls_that_were_left_are_no_step_of_the_run_that_goes_on():
    dialogue(turn(max_steps=1), (Begin(alone("a")), [StartCalls(["a"])]), (Finished("a"), [Send(1, 1, 1)]))


def test_an_abort_of_a_run_that_goes_on_gives_each_call_that_was_left_an_end():
    dialogue(
        turn(),
        (Begin(alone("a", "b")), [StartCalls(["a"])]),
        (Begin(alone("c")), []),
        (Abort(), [CancelCalls(["a"]), Skip("b")]),
        (Finished("a"), [ABORTED]),
    )
