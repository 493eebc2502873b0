"""Inputs that join a run, and resumed runs."""

from tests.core.dialogue import ABORTED, DONE, alone, beside, dialogue, replied, turn
from zotd.core.turn import CancelCalls, RequestCompaction, Send, Skip, StartCalls
from zotd.core.turn_inputs import Abort, Begin, CompactionDone, Finished

# --- inputs that join ------------------------------------------------------------------------------------------


def test_a_run_continues_after_its_last_reply_if_an_input_joins():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, steered=True), [Send(2, 2, 1)]),
        (replied(2), [DONE]),
    )


def test_a_joining_input_waits_for_the_calls_of_the_reply():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a"), steered=True), [StartCalls(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (replied(2), [DONE]),
    )


def test_inputs_cannot_join_a_run_at_its_step_limit():
    dialogue(turn(max_steps=1), (Begin(), [Send(1, 1, 1)]), (replied(1, steered=True), [DONE]))


def test_a_long_transcript_is_summarised_before_a_joining_input_is_answered():
    dialogue(
        turn(compact_from=100),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, context=100, steered=True), [RequestCompaction(2)]),
        (CompactionDone(2), [Send(3, 2, 1)]),
    )


# --- resumed runs ----------------------------------------------------------------------------------------------


def test_a_resumed_run_first_makes_the_open_calls():
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


def test_open_calls_do_not_count_as_a_step_of_a_resumed_run():
    dialogue(turn(max_steps=1), (Begin(alone("a")), [StartCalls(["a"])]), (Finished("a"), [Send(1, 1, 1)]))


def test_an_abort_of_a_resumed_run_ends_each_open_call():
    dialogue(
        turn(),
        (Begin(alone("a", "b")), [StartCalls(["a"])]),
        (Begin(alone("c")), []),
        (Abort(), [CancelCalls(["a"]), Skip("b")]),
        (Finished("a"), [ABORTED]),
    )
