"""A run, as pairs of inputs and expected actions."""

import pytest

from tests.core.dialogue import ABORTED, DONE, alone, beside, dialogue, failed, replied, turn
from zotd.core.retry import Failure
from zotd.core.turn import (
    Cancel,
    CancelCalls,
    End,
    Leave,
    RequestCompaction,
    Send,
    Skip,
    StartCalls,
    Wait,
    tokens_limit,
)
from zotd.core.turn_inputs import Abort, Begin, CompactionDone, Drain, Finished, ReplyStarted, Waited

# --- replies and tools ----------------------------------------------------------------------------------------


def test_a_reply_without_calls_ends_the_run():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (ReplyStarted(1), []), (replied(1), [DONE]))


def test_the_next_request_is_sent_when_all_calls_are_done():
    machine = turn()
    assert machine.step == 0
    dialogue(
        machine,
        (Begin(), [Send(1, 1, 1)]),
        (ReplyStarted(1), []),
        (replied(1, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (ReplyStarted(2), []),
        (replied(2), [DONE]),
    )
    assert machine.step == 2


def test_parallel_calls_start_together_and_end_in_any_order():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, beside("a", "b", "c")), [StartCalls(["a", "b", "c"])]),
        (Finished("b"), []),
        (Finished("c"), []),
        (Finished("a"), [Send(2, 2, 1)]),
    )


def test_sequential_calls_run_alone_in_the_models_order():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a", "b", "c")), [StartCalls(["a"])]),
        (Finished("a"), [StartCalls(["b"])]),
        (Finished("b"), [StartCalls(["c"])]),
        (Finished("c"), [Send(2, 2, 1)]),
    )


def test_only_adjacent_parallel_calls_run_concurrently():
    calls = [*beside("a", "b"), *alone("c"), *beside("d"), *alone("e"), *beside("f", "g")]
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, calls), [StartCalls(["a", "b"])]),
        (Finished("a"), []),
        (Finished("b"), [StartCalls(["c"])]),
        (Finished("c"), [StartCalls(["d"])]),
        (Finished("d"), [StartCalls(["e"])]),
        (Finished("e"), [StartCalls(["f", "g"])]),
        (Finished("g"), []),
        (Finished("f"), [Send(2, 2, 1)]),
    )


def test_a_repeated_result_is_ignored():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, [*beside("a", "b"), *alone("c")]), [StartCalls(["a", "b"])]),
        (Finished("a"), []),
        (Finished("a"), []),
        (Finished("c"), []),
        (Finished("nobody"), []),
        (Finished("b"), [StartCalls(["c"])]),
    )


def test_a_second_begin_is_ignored():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (Begin(), []), (replied(1), [DONE]), (Begin(), []))


# --- limits ---------------------------------------------------------------------------------------------------


def test_a_run_stops_at_its_step_limit():
    sentence = "the step limit of 2 is reached; the next prompt continues from here"
    dialogue(
        turn(max_steps=2),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (replied(2, alone("b")), [StartCalls(["b"])]),
        (Finished("b"), [End("error", open_step=False, error=sentence)]),
    )


# --- compaction -----------------------------------------------------------------------------------------------


def test_a_long_transcript_is_summarised_before_the_next_step():
    dialogue(
        turn(compact_from=100, context=99),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a"), context=100), [StartCalls(["a"])]),
        (Finished("a"), [RequestCompaction(2)]),
        (CompactionDone(2), [Send(3, 2, 1)]),
        (replied(3, alone("b"), context=99), [StartCalls(["b"])]),
        (Finished("b"), [Send(4, 3, 1)]),
    )


def test_a_long_transcript_is_summarised_before_the_first_step():
    dialogue(
        turn(compact_from=100, context=100), (Begin(), [RequestCompaction(1)]), (CompactionDone(1), [Send(2, 1, 1)])
    )


def test_nothing_is_summarised_in_advance_if_the_window_is_unknown():
    dialogue(turn(compact_from=None, context=10**9), (Begin(), [Send(1, 1, 1)]))


def test_a_request_rejected_as_too_long_is_summarised_once_and_retried():
    end = End("error", open_step=True, error="it failed: context")
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1, Failure.CONTEXT), [RequestCompaction(2)]),
        (CompactionDone(2), [Send(3, 1, 2)]),
        (failed(3, Failure.CONTEXT), [end]),
    )


def test_a_summarised_transcript_is_not_summarised_again_in_the_same_step():
    end = End("error", open_step=True, error="it failed: context")
    dialogue(
        turn(compact_from=100, context=100),
        (Begin(), [RequestCompaction(1)]),
        (CompactionDone(1), [Send(2, 1, 1)]),
        (failed(2, Failure.CONTEXT), [end]),
    )


def test_a_later_step_may_be_summarised_again():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1, Failure.CONTEXT), [RequestCompaction(2)]),
        (CompactionDone(2), [Send(3, 1, 2)]),
        (replied(3, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(4, 2, 1)]),
        (failed(4, Failure.CONTEXT), [RequestCompaction(5)]),
    )


def test_no_step_is_summarised_twice():
    machine = turn()
    dialogue(
        machine,
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a")), [StartCalls(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (failed(2, Failure.CONTEXT), [RequestCompaction(3)]),
        (CompactionDone(3), [Send(4, 2, 2)]),
        (failed(4, Failure.CONTEXT), [End("error", open_step=True, error="it failed: context")]),
    )


def test_a_failed_summary_ends_the_run():
    machine = turn()
    dialogue(machine, (Begin(), [Send(1, 1, 1)]), (failed(1, Failure.CONTEXT), [RequestCompaction(2)]))
    [end] = machine.receive(failed(2, Failure.REFUSED))
    assert (end.stop, end.error) == ("error", "it failed: refused")


def test_a_summary_is_retried_if_the_model_is_overloaded():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1, Failure.CONTEXT), [RequestCompaction(2)]),
        (failed(2, Failure.OVERLOADED), [Wait(3, 0.5, 1, "it failed: overloaded")]),
        (Waited(3), [RequestCompaction(4)]),
        (CompactionDone(4), [Send(5, 1, 2)]),
    )


# --- abort ----------------------------------------------------------------------------------------------------


def calling():
    machine = turn()
    dialogue(machine, (Begin(), [Send(1, 1, 1)]))
    return machine


def answering():
    machine = calling()
    dialogue(machine, (ReplyStarted(1), []))
    return machine


def waiting():
    machine = calling()
    dialogue(machine, (failed(1), [Wait(2, 0.5, 1, "it failed: server")]))
    return machine


def compacting():
    machine = calling()
    dialogue(machine, (failed(1, Failure.CONTEXT), [RequestCompaction(2)]))
    return machine


@pytest.mark.parametrize(("begin", "awaited"), [(calling, 1), (answering, 1), (waiting, 2), (compacting, 2)])
def test_an_abort_cancels_the_awaited_action_and_ignores_late_answers(begin, awaited):
    machine = begin()
    dialogue(
        machine,
        (Abort(), [Cancel(awaited), ABORTED]),
        (ReplyStarted(awaited), []),
        (replied(awaited, alone("a")), []),
        (failed(awaited), []),
        (Waited(awaited), []),
        (CompactionDone(awaited), []),
        (Abort(), []),
    )
    assert machine.awaited is None


def test_an_abort_before_the_run_begins_sends_nothing():
    machine = turn()
    [end] = machine.receive(Abort())
    assert end.stop == "aborted"
    dialogue(machine, (Begin(), []), (Abort(), []))


def test_an_abort_cancels_running_calls_and_waits_for_their_results():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, beside("a", "b")), [StartCalls(["a", "b"])]),
        (Abort(), [CancelCalls(["a", "b"])]),
        (Finished("a"), []),
        (Finished("a"), []),
        (Finished("b"), [ABORTED]),
        (Finished("b"), []),
    )


def test_an_abort_skips_calls_that_have_not_started():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, [*beside("a", "b"), *alone("c"), *beside("d")]), [StartCalls(["a", "b"])]),
        (Finished("a"), []),
        (Abort(), [CancelCalls(["b"]), Skip("c"), Skip("d")]),
        (Finished("c"), []),
        (Finished("b"), [ABORTED]),
    )


def test_a_second_abort_while_calls_are_cancelled_does_nothing():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a", "b")), [StartCalls(["a"])]),
        (Abort(), [CancelCalls(["a"]), Skip("b")]),
        (Abort(), []),
        (Finished("a"), [ABORTED]),
        (Abort(), []),
    )


def test_an_answer_of_an_earlier_attempt_is_ignored():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (replied(1), []),
        (Waited(2), [Send(3, 1, 2)]),
        (ReplyStarted(1), []),
        (Waited(2), []),
        (failed(1), []),
        (failed(3), [Wait(4, 1.0, 2, "it failed: server")]),
    )


# --- draining -------------------------------------------------------------------------------------------------


def test_a_draining_run_finishes_its_calls_and_sends_no_request():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (Drain(), []),
        (replied(1, alone("a", "b")), [StartCalls(["a"])]),
        (Finished("a"), [StartCalls(["b"])]),
        (Finished("b"), [Leave()]),
        (Abort(), []),
    )


def test_a_draining_run_neither_retries_nor_summarises():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (Drain(), [Cancel(2), Leave()]),
        (Waited(2), []),
    )
    for failure in (Failure.SERVER, Failure.CONTEXT):
        dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (Drain(), []), (failed(1, failure), [Leave()]))
    dialogue(
        turn(context=0, compact_from=5),
        (Begin(), [Send(1, 1, 1)]),
        (Drain(), []),
        (replied(1, alone("a"), context=7), [StartCalls(["a"])]),
        (Finished("a"), [Leave()]),
    )


def test_a_draining_run_ends_even_if_inputs_are_waiting_to_join():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (Drain(), []), (replied(1, steered=True), [DONE]))


def test_the_limit_is_a_fraction_of_the_context_window():
    assert tokens_limit(200_000, 0.8) == 160_000


def test_there_is_no_limit_if_the_context_window_is_unknown():
    assert tokens_limit(0, 0.8) is None
