"""A caller of `core.turn` for property tests: carries out every action, and keeps its own record of them."""

from hypothesis.stateful import RuleBasedStateMachine

from zotd.core import retry
from zotd.core.turn import (
    Cancel,
    CancelCalls,
    End,
    Leave,
    RequestCompaction,
    Send,
    Skip,
    StartCalls,
    Switch,
    Turn,
    Wait,
)
from zotd.core.turn_inputs import RequestedCall


class TurnCaller(RuleBasedStateMachine):
    """Carries out every action of `turn`, which a subclass makes, and asserts what must hold of each."""

    turn: Turn
    fallbacks: int

    def __init__(self):
        super().__init__()
        self.asked: Send | Wait | RequestCompaction | Switch | None = None
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
        self.policy = retry.RetryPolicy()
        self.model = 0
        """Number of choices so far; each may be of another model."""
        self.switches = 0
        """Number of models given up since one has answered."""
        self.is_away = False
        self.begun = False
        self.aborted = False
        self.draining = False
        self.ends = []

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
            case Send() | Wait() | RequestCompaction() | Switch():
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
                    self.compactions.append((self.turn.step, self.model))
                self.compacting = True
                self.number = self.number if self.turn.step in self.steps else 0
            case Wait(_, delay_s):
                assert 0 <= delay_s <= retry.PAUSE_S
            case Switch(error=None):
                assert self.is_away, "a run on its own model asks for a better one"
            case Switch():
                self.switches += 1

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

    def may_switch(self, error):
        """Whether the run asks for another model when this one is given up."""
        return retry.is_of_the_model(error) and self.switches < (2 * self.fallbacks + 1 if self.fallbacks else 0)

    def due(self, kind):
        return isinstance(self.asked, kind)
