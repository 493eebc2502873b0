"""Property test: a run that gets answers late, twice and out of order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.core.turn_caller import TurnCaller
from zotd.core import retry
from zotd.core.retry import Failure, ModelError
from zotd.core.turn import (
    End,
    Leave,
    RequestCompaction,
    Send,
    StartCalls,
    Switch,
    Turn,
    Wait,
)
from zotd.core.turn_inputs import (
    Abort,
    Begin,
    CompactionDone,
    Drain,
    Failed,
    Finished,
    NotSwitched,
    Replied,
    ReplyStarted,
    RequestedCall,
    Switched,
    Waited,
)

failures = st.sampled_from([*sorted(retry.REPEATED) * 4, *[Failure.CONTEXT] * 8, *Failure])
"""Failures, most of which a run survives."""
rarely = st.integers(0, 5).map(lambda number: number == 5)
"""Used for inputs that end the run, so that most runs reach their second and third step."""
randoms = st.floats(0, 1, exclude_max=True)
answers = st.sampled_from(["opened", "replied", "failed", "waited", "compacted", "switched", "not switched"])
policies = st.sampled_from([retry.RetryPolicy(), retry.RetryPolicy(patience_s=0)])


def answer(kind, attempt):
    match kind:
        case "opened":
            return ReplyStarted(attempt)
        case "replied":
            return Replied(attempt, [RequestedCall("stale", parallel=True)], 0)
        case "failed":
            return Failed(attempt, ModelError(Failure.SERVER, "stale"), 0.5)
        case "waited":
            return Waited(attempt)
        case "switched":
            return Switched(attempt, 0, retry.RetryPolicy(patience_s=0), is_fallback=True)
        case "not switched":
            return NotSwitched(attempt)
        case _:
            return CompactionDone(attempt)


class Run(TurnCaller):
    """Answers in any order, sometimes twice, late or unasked; the invariants compare with the record of the caller."""

    @initialize(
        max_steps=st.none() | st.integers(1, 4),
        context=st.integers(0, 2),
        compact_from=st.none() | st.integers(1, 3),
        left=st.lists(st.booleans(), max_size=3),
        later=rarely,
        fallbacks=st.integers(0, 2),
        chooses=st.booleans(),
    )
    def a_run(self, max_steps, context, compact_from, left, later, fallbacks, chooses):
        self.max_steps, self.fallbacks, self.is_away = max_steps, fallbacks, chooses and fallbacks > 0
        limits = {"max_steps": max_steps, "context": context, "compact_from": compact_from}
        self.turn = Turn(**limits, fallbacks=fallbacks, begins_with_choice=self.is_away)
        if not later:
            self.begin(left)

    # --- expected inputs ---

    @precondition(lambda self: not self.begun and not self.aborted)
    @rule(left=st.lists(st.booleans(), max_size=3))
    def begin(self, left):
        """`left`: calls left by an earlier run, each with whether it is parallel."""
        self.begun = True
        actions = self.tell(Begin(self.promise(left)))
        assert isinstance(actions[0], StartCalls) == bool(left)

    @precondition(lambda self: self.due(Send) and not self.opened)
    @rule()
    def the_reply_starts(self):
        self.opened = True
        self.expect_nothing(ReplyStarted(self.awaited().attempt))

    @precondition(lambda self: self.due(Send))
    @rule(
        calls=st.lists(st.booleans(), min_size=1, max_size=5),
        last=rarely,
        context=st.integers(0, 3),
        steered=st.booleans(),
    )
    def the_model_replies(self, calls, last, context, steered):
        named = self.promise([] if last else calls)
        attempt, step = self.awaited().attempt, self.turn.step
        self.failures = self.switches = 0
        self.policy = retry.RetryPolicy()
        self.settle()
        [action] = self.tell(Replied(attempt, named, context, steered))
        if named:
            assert isinstance(action, StartCalls)
        elif steered and step != self.max_steps and not self.draining:
            assert isinstance(action, Switch if self.is_away else Send | RequestCompaction)
        else:
            assert action == End("end_turn", open_step=False)

    @precondition(lambda self: self.due(Send))
    @rule(failure=failures, random=randoms)
    def the_request_fails(self, failure, random):
        sent, opened = self.awaited(), self.opened
        error = ModelError(failure, "it failed")
        summarise = failure is Failure.CONTEXT and not opened and (sent.step, self.model) not in self.compactions
        self.failures += not summarise
        delay = self.policy.delay_s(error, failures=max(1, self.failures), elapsed_s=0, random=random)
        may_switch = self.may_switch(error)
        self.settle()
        [action] = self.tell(Failed(sent.attempt, error, random))
        match action:
            case RequestCompaction():
                assert summarise
            case Leave():
                assert summarise or delay is not None or may_switch
            case Wait(_, delay_s, number, reason):
                assert (delay_s, number, reason) == (delay, self.failures, "it failed")
            case Switch(_, given):
                assert may_switch
                assert given is error
                assert delay is None
                assert not summarise
            case _:
                assert delay is None
                assert not summarise
                assert not may_switch
                assert action == End("error", open_step=True, error="it failed")

    @precondition(lambda self: self.due(Wait))
    @rule()
    def the_wait_is_over(self):
        attempt, number = self.awaited().attempt, self.number
        self.settle()
        [action] = self.tell(Waited(attempt))
        expected = RequestCompaction(attempt + 1) if self.compacting else Send(attempt + 1, self.steps[-1], number + 1)
        assert action == expected

    @precondition(lambda self: self.due(RequestCompaction))
    @rule(failure=st.none() | st.just(Failure.OVERLOADED) | st.just(Failure.REFUSED), random=randoms)
    def the_summary_ends(self, failure, random):
        attempt = self.awaited().attempt
        self.settle()
        if failure is None:
            self.failures, self.compacting = 0, False
            [action] = self.tell(CompactionDone(attempt))
            assert isinstance(action, Leave if self.draining else Send)
            return
        self.failures += 1
        error = ModelError(failure, "no summary")
        may_switch = self.may_switch(error)
        is_over = failure is Failure.REFUSED or self.policy.patience_s == 0
        [action] = self.tell(Failed(attempt, error, random))
        if self.draining and (may_switch or not is_over):
            assert isinstance(action, Leave)
        elif is_over:
            assert isinstance(action, Switch if may_switch else End)
        else:
            assert isinstance(action, Wait)

    @precondition(lambda self: self.due(Switch))
    @rule(policy=policies, compact_from=st.none() | st.integers(0, 3), is_away=st.booleans())
    def a_model_is_chosen(self, policy, compact_from, is_away):
        attempt = self.awaited().attempt
        self.model += 1
        self.policy, self.is_away, self.failures, self.compacting = policy, is_away, 0, False
        self.settle()
        [action] = self.tell(Switched(attempt, compact_from, policy, is_away))
        assert isinstance(action, Send | RequestCompaction)

    @precondition(lambda self: self.due(Switch))
    @rule()
    def there_is_no_other_model(self):
        switch = self.awaited()
        self.settle()
        [action] = self.tell(NotSwitched(switch.attempt))
        assert isinstance(action, Send | RequestCompaction if switch.error is None else End)

    @precondition(lambda self: self.running)
    @rule(pick=st.integers(0, 4))
    def a_call_finishes(self, pick):
        call = list(self.running)[pick % len(self.running)]
        del self.running[call]
        self.close(call)
        last = not self.running
        assert bool(self.tell(Finished(call))) == last

    @rule(really=rarely)
    def a_client_aborts(self, really):
        if not really:
            return
        before, self.aborted = self.aborted, self.aborted or not self.ends
        actions = self.tell(Abort())
        assert not (before and actions), "a second abort does something"
        assert self.running or self.ends, "an abort with nothing to wait for does not end the run"

    @rule(really=rarely)
    def the_process_drains(self, really):
        if really:
            waits = self.due(Wait) or self.due(Switch)
            self.draining = True
            assert bool(self.tell(Drain())) == waits

    # --- late, repeated and unordered inputs ---

    @precondition(lambda self: self.begun or self.ends)
    @rule(left=st.lists(st.booleans(), max_size=2))
    def it_begins_again(self, left):
        self.expect_nothing(Begin([RequestedCall("again", parallel) for parallel in left]))

    @rule(kind=answers, pick=st.integers(0, 20))
    def an_answer_arrives_late_or_twice(self, kind, pick):
        self.expect_nothing(answer(kind, self.stale[pick % len(self.stale)]))

    @rule(kind=answers, ahead=st.integers(1, 3))
    def an_unrequested_answer_arrives(self, kind, ahead):
        newest = max([*self.stale, self.awaited().attempt if self.asked else 0])
        self.expect_nothing(answer(kind, newest + ahead))

    @precondition(lambda self: self.opened and self.due(Send))
    @rule()
    def the_reply_starts_twice(self):
        self.expect_nothing(ReplyStarted(self.awaited().attempt))

    @rule()
    def an_unknown_call_finishes(self):
        self.expect_nothing(Finished("nobody"))

    @precondition(lambda self: len(self.promised) > len(self.running))
    @rule(pick=st.integers(0, 20))
    def a_call_finishes_that_is_not_running(self, pick):
        others = [call for call in self.promised if call not in self.running]
        self.expect_nothing(Finished(others[pick % len(others)]))

    # --- invariants ---

    @invariant()
    def an_outage_ends_after_each_model_had_its_turns(self):
        assert self.switches <= (2 * self.fallbacks + 1 if self.fallbacks else 0)

    @invariant()
    def at_most_one_end(self):
        assert len(self.ends) <= 1

    @invariant()
    def steps_rise_by_one_up_to_the_limit(self):
        assert self.steps == list(range(1, len(self.steps) + 1))
        assert self.max_steps is None or len(self.steps) <= self.max_steps

    @invariant()
    def a_step_is_summarised_once_by_each_model(self):
        assert len(self.compactions) == len(set(self.compactions))

    @invariant()
    def it_awaits_the_requested_answer(self):
        assert self.turn.awaited == (self.awaited().attempt if self.asked else None)

    @invariant()
    def at_the_end_every_call_is_answered(self):
        assert not self.ends or sorted(self.closed) == sorted(self.promised)

    def teardown(self):
        """An abort, followed by the results of the running calls, ends the run, whatever happened before."""
        if not hasattr(self, "turn"):
            return
        self.a_client_aborts(really=True)
        while self.running:
            self.a_call_finishes(0)
        assert len(self.ends) == 1
        self.at_the_end_every_call_is_answered()


@pytest.mark.timeout(240)  # a failing example takes a minute to shrink; a passing run takes seconds
def test_run_invariants_hold_for_any_order_of_events():
    thorough = settings(max_examples=250, stateful_step_count=50, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(Run, settings=thorough)
