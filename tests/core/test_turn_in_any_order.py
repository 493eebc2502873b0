"""Property test: a run that gets answers late, twice and out of order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from zotd.core import retry
from zotd.core.retry import Failure, ModelError
from zotd.core.turn import (
    Abort,
    Begin,
    Cancel,
    CancelCalls,
    CompactionDone,
    Drain,
    End,
    Failed,
    Finished,
    Leave,
    Replied,
    ReplyStarted,
    RequestCompaction,
    RequestedCall,
    Send,
    Skip,
    StartCalls,
    Turn,
    Wait,
    Waited,
)

failures = st.sampled_from([*sorted(retry.REPEATED) * 4, *[Failure.CONTEXT] * 8, *Failure])
"""Failures, most of which a run survives."""
rarely = st.integers(0, 5).map(lambda number: number == 5)
"""Used for inputs that end the run, so that most runs reach their second and third step."""
randoms = st.floats(0, 1, exclude_max=True)
answers = st.sampled_from(["opened", "replied", "failed", "waited", "compacted"])


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
        case _:
            return CompactionDone(attempt)


class Run(RuleBasedStateMachine):
    """A caller that carries out every action, and answers in any order, sometimes twice, late or unasked.

    It keeps its own record of what it was told to do; the invariants compare with that.
    """

    def __init__(self):
        super().__init__()
        self.asked: Send | Wait | RequestCompaction | None = None
        """The action that awaits an answer; `awaited()` if there must be one."""
        self.opened = False
        self.stale = [0]
        """Attempts that were answered or cancelled."""
        self.running = {}
        """Running calls, each with whether it is parallel."""
        self.promised = {}
        """Every call of a reply, with whether it is parallel."""
        self.closed = []
        """Calls that finished or were skipped."""
        self.steps = []
        self.number = 0
        self.failures = 0
        """Number of consecutive failures."""
        self.compacting = False
        self.compactions = []
        self.begun = False
        self.aborted = False
        self.draining = False
        self.ends = []

    @initialize(
        max_steps=st.none() | st.integers(1, 4),
        context=st.integers(0, 2),
        compact_from=st.none() | st.integers(1, 3),
        left=st.lists(st.booleans(), max_size=3),
        later=rarely,
    )
    def a_run(self, max_steps, context, compact_from, left, later):
        self.max_steps = max_steps
        self.turn = Turn(max_steps=max_steps, context=context, compact_from=compact_from)
        if not later:
            self.begin(left)

    # --- carrying out actions ---

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
            case Send() | Wait() | RequestCompaction():
                assert not self.draining, "a draining run goes on"
                assert not self.running, "the model is asked while calls run"
                assert not self.aborted, "an aborted run goes on"
                assert self.asked is None
                assert action.attempt not in self.stale
                self.asked, self.opened = action, False
                self.note(action)
            case Cancel(attempt):
                assert self.awaited().attempt == attempt
                self.settle()
            case StartCalls(calls):
                self.start(calls)
            case CancelCalls(calls):
                assert sorted(calls) == sorted(self.running)
            case Skip(call):
                assert self.aborted
                self.close(call)
            case End():
                self.end(action)
            case Leave():
                assert self.draining
                assert not self.running
                assert not self.aborted
                assert self.asked is None
                self.ends.append(action)

    def note(self, action):
        match action:
            case Send(_, step, number):
                if number == 1:
                    self.steps.append(step)
                self.number = number
                assert step == self.steps[-1] == self.turn.step
            case RequestCompaction():
                if not self.compacting:
                    self.compactions.append(self.turn.step)
                self.compacting = True
                self.number = self.number if self.turn.step in self.steps else 0
            case Wait(_, delay_s):
                assert 0 <= delay_s <= retry.PAUSE_S

    def start(self, calls):
        assert calls
        assert not self.running, "two batches run at once"
        assert not self.aborted
        assert self.asked is None
        assert len(calls) == 1 or all(self.promised[call] for call in calls)
        opened = [call for call in self.promised if call not in self.closed]
        assert opened[: len(calls)] == list(calls), "not in the order of the model"
        self.running = {call: self.promised[call] for call in calls}

    def promise(self, calls):
        """Calls with new ids."""
        known = len(self.promised)
        named = [RequestedCall(f"c{known + index}", parallel) for index, parallel in enumerate(calls)]
        self.promised |= {call.id: call.parallel for call in named}
        return named

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
        self.stale.append(self.awaited().attempt)
        self.asked = None

    def awaited(self):
        """The Send, Wait or RequestCompaction that awaits an answer."""
        assert self.asked is not None
        return self.asked

    def due(self, kind):
        return isinstance(self.asked, kind)

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
        self.failures = 0
        self.settle()
        [action] = self.tell(Replied(attempt, named, context, steered))
        if named:
            assert isinstance(action, StartCalls)
        elif steered and step != self.max_steps and not self.draining:
            assert isinstance(action, Send | RequestCompaction)
        else:
            assert action == End("end_turn", open_step=False)

    @precondition(lambda self: self.due(Send))
    @rule(failure=failures, random=randoms)
    def the_request_fails(self, failure, random):
        sent, opened = self.awaited(), self.opened
        error = ModelError(failure, "it failed")
        summarise = failure is Failure.CONTEXT and not opened and sent.step not in self.compactions
        self.failures += not summarise
        delay = retry.RetryPolicy().delay_s(error, failures=max(1, self.failures), elapsed_s=0, random=random)
        self.settle()
        [action] = self.tell(Failed(sent.attempt, error, random))
        match action:
            case RequestCompaction():
                assert summarise
            case Leave():
                assert summarise or delay is not None
            case Wait(_, delay_s, number, reason):
                assert (delay_s, number, reason) == (delay, self.failures, "it failed")
            case _:
                assert delay is None
                assert not summarise
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
        [action] = self.tell(Failed(attempt, ModelError(failure, "no summary"), random))
        assert isinstance(action, End if failure is Failure.REFUSED else Leave if self.draining else Wait)

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
            waits = self.due(Wait)
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


@pytest.mark.timeout(120)  # a failing example takes a minute to shrink; a passing run takes seconds
def test_run_invariants_hold_for_any_order_of_events():
    thorough = settings(max_examples=250, stateful_step_count=50, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(Run, settings=thorough)
