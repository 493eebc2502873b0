"""One run, as a dialogue between what happened and what has to be done."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from zotd.core import retry
from zotd.core.retry import Failure, ModelError
from zotd.core.turn import (
    Abort,
    Begin,
    Call,
    Cancel,
    CancelCalls,
    Compact,
    Compacted,
    End,
    Failed,
    Finished,
    Opened,
    Replied,
    Send,
    Skip,
    Start,
    Turn,
    Wait,
    Waited,
)


def turn(*, max_steps=None, context=0, compact_from=None):
    return Turn(max_steps=max_steps, context=context, compact_from=compact_from)


def failed(attempt, failure=Failure.SERVER, *, retry_after_s=None):
    return Failed(attempt, ModelError(failure, f"it failed: {failure}", retry_after_s=retry_after_s), 0.5)


def alone(*ids):
    return [Call(key, parallel=False) for key in ids]


def beside(*ids):
    return [Call(key, parallel=True) for key in ids]


def replied(attempt, calls=(), context=0):
    return Replied(attempt, calls, context)


def dialogue(machine, *lines):
    """Pairs of what happens and what follows; the first one that differs is the failure."""
    for number, (event, actions) in enumerate(lines):
        assert machine.receive(event) == actions, f"line {number}: {event}"


DONE = End("end_turn", open_step=False)
ABORTED = End("aborted", open_step=True)


# --- replies and tools ----------------------------------------------------------------------------------------


def test_a_reply_without_calls_ends_the_run():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (Opened(1), []), (replied(1), [DONE]))


def test_the_model_is_asked_again_when_its_calls_are_done():
    machine = turn()
    assert machine.step == 0
    dialogue(
        machine,
        (Begin(), [Send(1, 1, 1)]),
        (Opened(1), []),
        (replied(1, alone("a")), [Start(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (Opened(2), []),
        (replied(2), [DONE]),
    )
    assert machine.step == 2


def test_calls_that_may_run_beside_others_start_together_and_may_end_in_any_order():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, beside("a", "b", "c")), [Start(["a", "b", "c"])]),
        (Finished("b"), []),
        (Finished("c"), []),
        (Finished("a"), [Send(2, 2, 1)]),
    )


def test_calls_that_must_run_alone_do_so_in_the_order_of_the_model():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a", "b", "c")), [Start(["a"])]),
        (Finished("a"), [Start(["b"])]),
        (Finished("b"), [Start(["c"])]),
        (Finished("c"), [Send(2, 2, 1)]),
    )


def test_only_neighbours_run_side_by_side():
    calls = [*beside("a", "b"), *alone("c"), *beside("d"), *alone("e"), *beside("f", "g")]
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, calls), [Start(["a", "b"])]),
        (Finished("a"), []),
        (Finished("b"), [Start(["c"])]),
        (Finished("c"), [Start(["d"])]),
        (Finished("d"), [Start(["e"])]),
        (Finished("e"), [Start(["f", "g"])]),
        (Finished("g"), []),
        (Finished("f"), [Send(2, 2, 1)]),
    )


def test_a_result_that_comes_twice_counts_once():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, [*beside("a", "b"), *alone("c")]), [Start(["a", "b"])]),
        (Finished("a"), []),
        (Finished("a"), []),
        (Finished("c"), []),
        (Finished("nobody"), []),
        (Finished("b"), [Start(["c"])]),
    )


def test_a_run_begins_once():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (Begin(), []), (replied(1), [DONE]), (Begin(), []))


# --- failures -------------------------------------------------------------------------------------------------


def test_a_request_that_fails_before_its_first_byte_is_tried_again_after_longer_and_longer_waits():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (Waited(2), [Send(3, 1, 2)]),
        (failed(3), [Wait(4, 1.0, 2, "it failed: server")]),
        (Waited(4), [Send(5, 1, 3)]),
        (failed(5), [Wait(6, 2.0, 3, "it failed: server")]),
        (Waited(6), [Send(7, 1, 4)]),
        (failed(7), [End("error", open_step=True, error="it failed: server")]),
    )


def test_the_provider_may_say_how_long_to_wait():
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (failed(1, retry_after_s=7), [Wait(2, 7, 1, "it failed: server")]))


def test_a_reply_after_a_retry_is_as_good_as_one_at_once():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (Waited(2), [Send(3, 1, 2)]),
        (Opened(3), []),
        (replied(3, alone("a")), [Start(["a"])]),
        (Finished("a"), [Send(4, 2, 1)]),
    )


@pytest.mark.parametrize("failure", Failure)
def test_nothing_is_repeated_after_the_first_byte(failure):
    end = End("error", open_step=True, error=f"it failed: {failure}")
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (Opened(1), []), (failed(1, failure), [end]))


def test_the_next_request_may_be_repeated_although_the_last_one_was_answered():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (Opened(1), []),
        (replied(1, alone("a")), [Start(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (failed(2), [Wait(3, 0.5, 1, "it failed: server")]),
    )


@pytest.mark.parametrize("failure", [Failure.AUTH, Failure.NO_KEY, Failure.REFUSED, Failure.UNAVAILABLE, Failure.CUT])
def test_what_no_repetition_mends_ends_the_run(failure):
    end = End("error", open_step=True, error=f"it failed: {failure}")
    dialogue(turn(), (Begin(), [Send(1, 1, 1)]), (failed(1, failure), [end]), (Waited(2), []))


def test_a_run_stops_at_its_step_limit():
    sentence = "the step limit of 2 is reached; the next prompt goes on from here"
    dialogue(
        turn(max_steps=2),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a")), [Start(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (replied(2, alone("b")), [Start(["b"])]),
        (Finished("b"), [End("error", open_step=False, error=sentence)]),
    )


# --- compaction -----------------------------------------------------------------------------------------------


def test_a_transcript_that_has_become_too_long_is_summarised_before_the_next_step():
    dialogue(
        turn(compact_from=100, context=99),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a"), context=100), [Start(["a"])]),
        (Finished("a"), [Compact(2)]),
        (Compacted(2), [Send(3, 2, 1)]),
        (replied(3, alone("b"), context=99), [Start(["b"])]),
        (Finished("b"), [Send(4, 3, 1)]),
    )


def test_a_session_that_was_left_too_long_is_summarised_before_its_first_step():
    dialogue(turn(compact_from=100, context=100), (Begin(), [Compact(1)]), (Compacted(1), [Send(2, 1, 1)]))


def test_without_a_known_window_nothing_is_summarised_beforehand():
    dialogue(turn(compact_from=None, context=10**9), (Begin(), [Send(1, 1, 1)]))


def test_a_transcript_that_the_provider_finds_too_long_is_summarised_once_and_sent_again():
    end = End("error", open_step=True, error="it failed: context")
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1, Failure.CONTEXT), [Compact(2)]),
        (Compacted(2), [Send(3, 1, 2)]),
        (failed(3, Failure.CONTEXT), [end]),
    )


def test_one_that_was_just_summarised_is_not_summarised_again_for_the_same_step():
    end = End("error", open_step=True, error="it failed: context")
    dialogue(
        turn(compact_from=100, context=100),
        (Begin(), [Compact(1)]),
        (Compacted(1), [Send(2, 1, 1)]),
        (failed(2, Failure.CONTEXT), [end]),
    )


def test_a_later_step_may_be_summarised_again():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1, Failure.CONTEXT), [Compact(2)]),
        (Compacted(2), [Send(3, 1, 2)]),
        (replied(3, alone("a")), [Start(["a"])]),
        (Finished("a"), [Send(4, 2, 1)]),
        (failed(4, Failure.CONTEXT), [Compact(5)]),
    )


def test_no_step_is_summarised_twice_whichever_it_is():
    machine = turn()
    dialogue(
        machine,
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a")), [Start(["a"])]),
        (Finished("a"), [Send(2, 2, 1)]),
        (failed(2, Failure.CONTEXT), [Compact(3)]),
        (Compacted(3), [Send(4, 2, 2)]),
        (failed(4, Failure.CONTEXT), [End("error", open_step=True, error="it failed: context")]),
    )


def test_a_summary_that_fails_ends_the_run():
    machine = turn()
    dialogue(machine, (Begin(), [Send(1, 1, 1)]), (failed(1, Failure.CONTEXT), [Compact(2)]))
    [end] = machine.receive(Compacted(2, "no summary"))
    assert (end.stop, end.error) == ("error", "no summary")


# --- abort ----------------------------------------------------------------------------------------------------


def calling():
    machine = turn()
    dialogue(machine, (Begin(), [Send(1, 1, 1)]))
    return machine


def answering():
    machine = calling()
    dialogue(machine, (Opened(1), []))
    return machine


def waiting():
    machine = calling()
    dialogue(machine, (failed(1), [Wait(2, 0.5, 1, "it failed: server")]))
    return machine


def compacting():
    machine = calling()
    dialogue(machine, (failed(1, Failure.CONTEXT), [Compact(2)]))
    return machine


@pytest.mark.parametrize(("begin", "awaited"), [(calling, 1), (answering, 1), (waiting, 2), (compacting, 2)])
def test_an_abort_cancels_what_is_awaited_and_its_late_answers_change_nothing(begin, awaited):
    machine = begin()
    dialogue(
        machine,
        (Abort(), [Cancel(awaited), ABORTED]),
        (Opened(awaited), []),
        (replied(awaited, alone("a")), []),
        (failed(awaited), []),
        (Waited(awaited), []),
        (Compacted(awaited), []),
        (Abort(), []),
    )
    assert machine.awaited is None


def test_an_abort_before_the_run_begins_ends_it_and_nothing_is_sent():
    machine = turn()
    [end] = machine.receive(Abort())
    assert end.stop == "aborted"
    dialogue(machine, (Begin(), []), (Abort(), []))


def test_an_abort_cuts_running_calls_and_waits_for_their_results():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, beside("a", "b")), [Start(["a", "b"])]),
        (Abort(), [CancelCalls(["a", "b"])]),
        (Finished("a"), []),
        (Finished("a"), []),
        (Finished("b"), [ABORTED]),
        (Finished("b"), []),
    )


def test_an_abort_skips_the_calls_that_wait():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, [*beside("a", "b"), *alone("c"), *beside("d")]), [Start(["a", "b"])]),
        (Finished("a"), []),
        (Abort(), [CancelCalls(["b"]), Skip("c"), Skip("d")]),
        (Finished("c"), []),
        (Finished("b"), [ABORTED]),
    )


def test_a_second_abort_while_calls_are_being_cut_does_nothing():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (replied(1, alone("a", "b")), [Start(["a"])]),
        (Abort(), [CancelCalls(["a"]), Skip("b")]),
        (Abort(), []),
        (Finished("a"), [ABORTED]),
        (Abort(), []),
    )


def test_an_answer_of_an_earlier_attempt_does_not_stand_for_the_later_one():
    dialogue(
        turn(),
        (Begin(), [Send(1, 1, 1)]),
        (failed(1), [Wait(2, 0.5, 1, "it failed: server")]),
        (replied(1), []),
        (Waited(2), [Send(3, 1, 2)]),
        (Opened(1), []),
        (Waited(2), []),
        (failed(1), []),
        (failed(3), [Wait(4, 1.0, 2, "it failed: server")]),
    )


# --- any order ------------------------------------------------------------------------------------------------

failures = st.sampled_from([*sorted(retry.REPEATED) * 4, *[Failure.CONTEXT] * 8, *Failure])
"""Mostly those that a run survives."""
rarely = st.integers(0, 5).map(lambda number: number == 5)
"""For what ends a run: most runs should live to see their second and third step."""
randoms = st.floats(0, 1, exclude_max=True)
answers = st.sampled_from(["opened", "replied", "failed", "waited", "compacted"])


def answer(kind, attempt):
    match kind:
        case "opened":
            return Opened(attempt)
        case "replied":
            return replied(attempt, beside("stale"))
        case "failed":
            return failed(attempt)
        case "waited":
            return Waited(attempt)
        case _:
            return Compacted(attempt)


class Run(RuleBasedStateMachine):
    """A caller that carries out every action, answers in any order, and sometimes twice, late or without being asked.

    It keeps its own books of what it was told to do; the invariants are about those.
    """

    def __init__(self):
        super().__init__()
        self.asked = None
        """The Send, Wait or Compact whose answer is due."""
        self.opened = False
        self.stale = [0]
        """Attempts that were answered or cancelled."""
        self.running = {}
        """Calls that run, each with whether it may run beside others."""
        self.promised = {}
        """Every call of a reply: whether it may run beside others."""
        self.closed = []
        """Calls that finished or were skipped."""
        self.steps = []
        self.compactions = []
        self.aborted = False
        self.ends = []

    @initialize(
        max_steps=st.none() | st.integers(1, 4),
        context=st.integers(0, 2),
        compact_from=st.none() | st.integers(1, 3),
        later=rarely,
    )
    def a_run(self, max_steps, context, compact_from, later):
        self.max_steps = max_steps
        self.turn = turn(max_steps=max_steps, context=context, compact_from=compact_from)
        if not later:
            self.begin()

    # --- carrying out ---

    def tell(self, event):
        over = bool(self.ends)
        actions = self.turn.receive(event)
        assert not (over and actions), "something came out of a run that is over"
        for action in actions:
            assert not self.ends, "something follows the end"
            self.carry_out(action)
        return actions

    def expect_nothing(self, event):
        assert self.tell(event) == []

    def carry_out(self, action):
        match action:
            case Send() | Wait() | Compact():
                assert not self.running, "the model is asked while calls run"
                assert not self.aborted, "an aborted run goes on"
                assert self.asked is None
                assert action.attempt not in self.stale
                self.asked, self.opened = action, False
                self.note(action)
            case Cancel(attempt):
                assert self.asked.attempt == attempt
                self.settle()
            case Start(calls):
                self.start(calls)
            case CancelCalls(calls):
                assert sorted(calls) == sorted(self.running)
            case Skip(call):
                assert self.aborted
                self.close(call)
            case End():
                self.end(action)

    def note(self, action):
        match action:
            case Send(_, step, number):
                if number == 1:
                    self.steps.append(step)
                assert step == self.steps[-1] == self.turn.step
            case Compact():
                self.compactions.append(self.turn.step)
            case Wait(_, delay_s):
                assert 0 <= delay_s <= retry.CAP_S

    def start(self, calls):
        assert calls
        assert not self.running, "two batches run at once"
        assert not self.aborted
        assert self.asked is None
        assert len(calls) == 1 or all(self.promised[call] for call in calls)
        opened = [call for call in self.promised if call not in self.closed]
        assert opened[: len(calls)] == list(calls), "not in the order of the model"
        self.running = {call: self.promised[call] for call in calls}

    def close(self, call):
        assert call in self.promised
        assert call not in self.closed
        self.closed.append(call)

    def end(self, end):
        assert not self.running
        assert self.asked is None
        assert (end.stop == "aborted") == self.aborted
        assert (end.error is not None) == (end.stop == "error")
        self.ends.append(end)

    def settle(self):
        self.stale.append(self.asked.attempt)
        self.asked = None

    def due(self, kind):
        return isinstance(self.asked, kind)

    # --- what happens in good order ---

    @precondition(lambda self: not self.steps and not self.compactions and not self.aborted)
    @rule()
    def begin(self):
        self.tell(Begin())

    @precondition(lambda self: self.due(Send) and not self.opened)
    @rule()
    def the_provider_opens(self):
        self.opened = True
        self.expect_nothing(Opened(self.asked.attempt))

    @precondition(lambda self: self.due(Send))
    @rule(calls=st.lists(st.booleans(), min_size=1, max_size=5), last=rarely, context=st.integers(0, 3))
    def the_model_replies(self, calls, last, context):
        calls = [] if last else calls
        known = len(self.promised)
        named = [Call(f"c{known + index}", parallel) for index, parallel in enumerate(calls)]
        self.promised |= {call.id: call.parallel for call in named}
        attempt = self.asked.attempt
        self.settle()
        [action] = self.tell(replied(attempt, named, context))
        assert isinstance(action, Start if named else End)

    @precondition(lambda self: self.due(Send))
    @rule(failure=failures, random=randoms)
    def the_request_fails(self, failure, random):
        sent, opened = self.asked, self.opened
        error = ModelError(failure, "it failed")
        delay = None if opened else retry.delay_s(error, sent.number, random)
        summarise = failure is Failure.CONTEXT and not opened and sent.step not in self.compactions
        self.settle()
        [action] = self.tell(Failed(sent.attempt, error, random))
        match action:
            case Compact():
                assert summarise
            case Wait(_, delay_s, number, reason):
                assert (delay_s, number, reason) == (delay, sent.number, "it failed")
            case _:
                assert delay is None
                assert not summarise
                assert action == End("error", open_step=True, error="it failed")

    @precondition(lambda self: self.due(Wait))
    @rule()
    def the_wait_is_over(self):
        attempt, number = self.asked.attempt, self.asked.number
        self.settle()
        [action] = self.tell(Waited(attempt))
        assert (action.step, action.number) == (self.steps[-1], number + 1)

    @precondition(lambda self: self.due(Compact))
    @rule(fails=rarely)
    def the_summary_comes(self, fails):
        attempt = self.asked.attempt
        self.settle()
        [action] = self.tell(Compacted(attempt, "no summary" if fails else None))
        assert isinstance(action, End if fails else Send)

    @precondition(lambda self: self.running)
    @rule(pick=st.integers(0, 4))
    def a_call_finishes(self, pick):
        call = list(self.running)[pick % len(self.running)]
        del self.running[call]
        self.close(call)
        last = not self.running
        assert bool(self.tell(Finished(call))) == last

    @rule(really=rarely)
    def somebody_aborts(self, really):
        if not really:
            return
        before, self.aborted = self.aborted, self.aborted or not self.ends
        actions = self.tell(Abort())
        assert not (before and actions), "a second abort does something"
        assert self.running or self.ends, "an abort with nothing to wait for does not end the run"

    # --- what comes late, twice or out of order ---

    @precondition(lambda self: self.steps or self.compactions or self.ends)
    @rule()
    def it_begins_again(self):
        self.expect_nothing(Begin())

    @rule(kind=answers, pick=st.integers(0, 20))
    def an_answer_comes_late_or_twice(self, kind, pick):
        self.expect_nothing(answer(kind, self.stale[pick % len(self.stale)]))

    @rule(kind=answers, ahead=st.integers(1, 3))
    def an_answer_comes_that_nobody_asked_for(self, kind, ahead):
        newest = max([*self.stale, self.asked.attempt if self.asked else 0])
        self.expect_nothing(answer(kind, newest + ahead))

    @precondition(lambda self: self.opened and self.due(Send))
    @rule()
    def the_provider_opens_twice(self):
        self.expect_nothing(Opened(self.asked.attempt))

    @rule()
    def an_unknown_call_finishes(self):
        self.expect_nothing(Finished("nobody"))

    @precondition(lambda self: len(self.promised) > len(self.running))
    @rule(pick=st.integers(0, 20))
    def a_call_finishes_that_does_not_run(self, pick):
        others = [call for call in self.promised if call not in self.running]
        self.expect_nothing(Finished(others[pick % len(others)]))

    # --- what holds at all times ---

    @invariant()
    def at_most_one_end(self):
        assert len(self.ends) <= 1

    @invariant()
    def steps_rise_by_one_up_to_the_limit(self):
        assert self.steps == list(range(1, len(self.steps) + 1))
        assert self.max_steps is None or len(self.steps) <= self.max_steps

    @invariant()
    def a_step_is_summarised_once(self):
        assert len(self.compactions) == len(set(self.compactions))

    @invariant()
    def it_awaits_what_it_asked_for(self):
        assert self.turn.awaited == (self.asked.attempt if self.asked else None)

    @invariant()
    def at_the_end_every_call_is_answered(self):
        assert not self.ends or sorted(self.closed) == sorted(self.promised)

    def teardown(self):
        """Whatever came before: an abort and the results of what runs end it."""
        if not hasattr(self, "turn"):
            return
        self.somebody_aborts(really=True)
        while self.running:
            self.a_call_finishes(0)
        assert len(self.ends) == 1
        self.at_the_end_every_call_is_answered()


@pytest.mark.timeout(120)  # a failing example takes a minute to shrink; a passing run takes seconds
def test_no_order_of_events_breaks_a_run():
    thorough = settings(max_examples=250, stateful_step_count=50, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(Run, settings=thorough)
