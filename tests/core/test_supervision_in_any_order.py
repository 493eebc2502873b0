"""Property test: invariants of supervision for any order of inputs."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.core.conftest import Life
from zotd.core.life import (
    Broke,
    Closed,
    Drained,
    DrainProcess,
    Exited,
    ExtensionState,
    Fail,
    Forget,
    FrameReceived,
    Greet,
    Greeted,
    Reload,
    ReloadsDone,
    Serve,
    Show,
    Signal,
    Spawn,
    StartRequested,
    Stop,
    Tick,
    Withdraw,
    WriteShutdown,
)
from zotd.core.supervision import KILL_S, LEAVE_S, TERM_S

STOP_S = LEAVE_S + TERM_S + KILL_S

reasons = st.sampled_from(["exited with code 1", "broke"])
randoms = st.floats(0, 1, exclude_max=True)


class AnyOrder(RuleBasedStateMachine):
    """Reconstructs the state from the actions, as a caller sees them."""

    def __init__(self):
        super().__init__()
        self.life = Life()
        self.alive = {}
        """Processes that are not forgotten, each with the last action for it."""
        self.gone = [0, 99_999]
        self.greeted = set()
        self.serving = None
        self.offering = False
        self.state = ExtensionState.STOPPED
        self.asked = 0
        """Number of reloads without an answer."""
        self.spawned = []

    def tell(self, event, random=0.5):
        for action in self.life.tell(event, random=random):
            self.carry_out(action)

    def carry_out(self, action):
        match action:
            case Withdraw(reason):
                assert reason
                assert self.offering
                self.serving, self.offering = None, False
            case Show(state):
                self.state = state
            case ReloadsDone():
                assert self.asked
                self.asked = 0
            case Spawn(key):
                assert key not in self.spawned
                assert self.state not in {ExtensionState.STOPPED, ExtensionState.STOPPING, ExtensionState.PARKED}
                self.spawned.append(key)
                self.alive[key] = None
            case _:
                assert action.process in self.alive
                self.order(action)

    def order(self, action):
        """Any input from a process."""
        key = action.process
        match action:
            case Greet():
                assert key not in self.greeted
                self.greeted.add(key)
            case Serve():
                assert key in self.greeted
                assert self.alive[key] is None
                self.serving, self.offering = key, True
            case DrainProcess():
                assert self.alive[key] is None
                self.alive[key] = "drain"
                self.serving = None if self.serving == key else self.serving
            case WriteShutdown() | Signal():
                assert key != self.serving
                self.end_process(action)
            case Fail(_, reason):
                assert reason
            case Forget():
                assert key != self.serving
                del self.alive[key]
                self.gone.append(key)
            case _:
                raise AssertionError(action)

    def end_process(self, action):
        before = self.alive[action.process]
        match action:
            case WriteShutdown(key):
                assert before in {None, "drain"}
                self.alive[key] = "shutdown"
            case Signal(key, False):
                assert before == "shutdown"
                self.alive[key] = "term"
            case Signal(key, True):
                assert before != "kill"
                self.alive[key] = "kill"
            case _:
                raise AssertionError(action)

    def expect_nothing(self, event):
        assert self.life.tell(event) == []

    def pick(self, index, keys=None):
        keys = sorted(self.alive if keys is None else keys)
        return keys[index % len(keys)]

    def dismissed(self):
        return [key for key, order in self.alive.items() if order in {"shutdown", "term", "kill"}]

    @rule()
    def start(self):
        self.tell(StartRequested())

    @rule()
    def stop(self):
        self.tell(Stop())

    @rule(replace=st.booleans())
    def reload(self, replace):
        self.asked += 1
        self.tell(Reload(replace))

    @precondition(lambda self: bool(self.alive))
    @rule(index=st.integers(0, 9), name=st.sampled_from(["x", "x", "x", ""]))
    def hello(self, index, name):
        self.tell(Greeted(self.pick(index), name))

    @precondition(lambda self: bool(self.alive))
    @rule(index=st.integers(0, 9), kind=st.sampled_from(["ready", "ready", "notify"]))
    def frame(self, index, kind):
        self.tell(FrameReceived(self.pick(index), kind))

    @precondition(lambda self: bool(self.alive))
    @rule(index=st.integers(0, 9), kind=st.sampled_from([Broke, Exited]), reason=reasons, random=randoms)
    def end(self, index, kind, reason, random):
        self.tell(kind(self.pick(index), reason), random)

    @precondition(lambda self: bool(self.alive))
    @rule(index=st.integers(0, 9))
    def output_ends(self, index):
        self.tell(Closed(self.pick(index)))

    @precondition(lambda self: "drain" in self.alive.values())
    @rule(index=st.integers(0, 9))
    def calls_end(self, index):
        self.tell(Drained(self.pick(index, [key for key, order in self.alive.items() if order == "drain"])))

    @precondition(lambda self: self.life.machine.wake_at is not None)
    @rule(late=st.sampled_from([0, 0.1, 40]), random=randoms)
    def time_passes(self, late, random):
        self.life.now = max(self.life.now, self.life.machine.wake_at or 0) + late
        self.tell(Tick(), random)

    # --- late, repeated and unordered inputs ---

    @rule(part=st.floats(0, 0.99))
    def a_tick_comes_early(self, part):
        due = self.life.machine.wake_at
        if due is None or due > self.life.now:
            self.life.now += 0 if due is None else (due - self.life.now) * part
            self.expect_nothing(Tick())

    @rule(index=st.integers(0, 30), reason=reasons)
    def a_forgotten_process_sends_input(self, index, reason):
        key = self.gone[index % len(self.gone)]
        for event in (
            *[Greeted(key, "x"), FrameReceived(key, "ready"), Closed(key)],
            *[Broke(key, reason), Exited(key, reason), Drained(key)],
        ):
            self.expect_nothing(event)

    @precondition(lambda self: bool(self.dismissed()))
    @rule(index=st.integers(0, 9), reason=reasons)
    def a_dismissed_process_sends_input(self, index, reason):
        key = self.pick(index, self.dismissed())
        for event in (Greeted(key, "x"), FrameReceived(key, "ready"), Closed(key), Broke(key, reason), Drained(key)):
            self.expect_nothing(event)

    @precondition(lambda self: any(order != "drain" for order in self.alive.values()))
    @rule(index=st.integers(0, 9))
    def drained_arrives_without_a_drain(self, index):
        self.expect_nothing(Drained(self.pick(index, [key for key, order in self.alive.items() if order != "drain"])))

    # --- invariants ---

    @invariant()
    def it_shows_its_state(self):
        assert self.life.machine.state is self.state

    @invariant()
    def the_serving_process_is_alive_and_not_dismissed(self):
        assert self.serving is None or self.alive[self.serving] is None

    @invariant()
    def ready_means_served(self):
        """Except if the serving process broke a moment ago and has not exited yet."""
        if self.state is ExtensionState.READY and self.serving is None:
            assert self.alive

    @invariant()
    def it_rests_when_it_should(self):
        if self.state in {ExtensionState.STOPPED, ExtensionState.PARKED}:
            assert self.serving is None
            assert not self.offering
        if self.state is ExtensionState.STOPPED:
            assert not self.alive
            assert self.life.machine.wake_at is None

    @invariant()
    def it_never_hangs(self):
        """In every state that is not final, a running process or a deadline causes the next transition."""
        if self.state in {ExtensionState.STARTING, ExtensionState.RESTARTING, ExtensionState.STOPPING}:
            assert self.life.machine.wake_at is not None

    def teardown(self):
        """A stop takes at most three seconds and the wait after SIGKILL, whatever happened before."""
        self.stop()
        assert not self.asked, "a reload was never answered"
        end = self.life.now + STOP_S
        while self.life.machine.wake_at is not None:
            self.time_passes(0, 0.5)
        assert self.life.now <= end + 1e-6
        assert self.state is ExtensionState.STOPPED
        assert not self.alive


def test_invariants_hold_for_any_order_of_events():
    thorough = settings(max_examples=120, stateful_step_count=50, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(AnyOrder, settings=thorough)
