"""One extension's life, as a dialogue between what happened and what has to be done."""

import pytest

from tests.core.conftest import Life
from zotd.core.life import (
    Broke,
    Closed,
    Drain,
    Drained,
    Exited,
    Fail,
    Forget,
    Greet,
    Greeted,
    Heard,
    Reload,
    Reloaded,
    Serve,
    Show,
    Shutdown,
    Signal,
    Spawn,
    Start,
    State,
    Stop,
    Withdraw,
)
from zotd.core.supervision import BACKOFF_CAP_S, CRASHES, DRAIN_S, KILL_S, STABLE_S

TERM, KILL = False, True


@pytest.fixture
def life():
    return Life()


@pytest.fixture
def running(life):
    """Process 1 is ready."""
    life.dialogue(
        (Start(), [Show(State.STARTING), Spawn(1)]),
        (Greeted(1, "x"), [Greet(1), Serve(1)]),
        (Heard(1, "ready"), [Show(State.READY)]),
    )
    assert life.machine.wake_at is None
    return life


# --- start ----------------------------------------------------------------------------------------------------


def test_silence_instead_of_hello_ends_the_group_at_once(life):
    reason = "sent no hello within 5 s"
    life.dialogue(
        (Start(), [Show(State.STARTING), Spawn(1)]),
        (4.9, []),
        (0.1, [Fail(1, reason), Signal(1, KILL)]),
        (Greeted(1, "x"), []),
        (Exited(1, "was ended by signal 9"), [Fail(1, reason), Forget(1), Show(State.RESTARTING, reason)]),
    )


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Heard(1, "register_tool"), "began with `register_tool` instead of `hello`"),
        (Greeted(1, ""), "sent a hello without a name"),
        (Broke(1, "did not read"), "did not read"),
    ],
)
def test_a_bad_beginning_ends_the_group_at_once(life, event, reason):
    life.tell(Start())
    assert life.tell(event) == [Fail(1, reason), Signal(1, KILL)]


def test_what_cannot_be_killed_is_not_waited_for(life):
    life.tell(Start())
    life.tell(Broke(1, "did not read"))
    assert life.tick(KILL_S) == [Fail(1, "did not read"), Forget(1), Show(State.RESTARTING, "did not read")]


# --- crash ----------------------------------------------------------------------------------------------------


def test_a_crash_withdraws_everything_and_another_process_follows(running):
    reason = "exited with code 3"
    running.dialogue(
        (Exited(1, reason), [Withdraw(reason), Fail(1, reason), Forget(1), Show(State.RESTARTING, reason)]),
        (Start(), []),
        (0.4, []),
        (0.1, [Show(State.STARTING), Spawn(2)]),
        (Greeted(2, "x"), [Greet(2), Serve(2)]),
    )


def test_the_end_of_the_output_waits_for_the_reason(running):
    reason = "exited with code 3"
    running.dialogue(
        (Closed(1), []),
        (Closed(1), []),
        (Exited(1, reason), [Withdraw(reason), Fail(1, reason), Forget(1), Show(State.RESTARTING, reason)]),
    )


def test_a_process_without_output_is_of_no_use(running):
    reason = "closed its stdout without exiting"
    running.dialogue(
        (Closed(1), []),
        (0.05, [Withdraw(reason), Fail(1, reason), Signal(1, KILL)]),
        (Exited(1, "was ended by signal 9"), [Fail(1, reason), Forget(1), Show(State.RESTARTING, reason)]),
    )


@pytest.mark.parametrize(("random", "factor"), [(0.0, 0.8), (0.5, 1.0), (0.999999, 1.2)])
def test_the_wait_doubles_and_is_spread(life, random, factor):
    life.tell(Start())
    for number, planned in enumerate([0.5, 1, 2, 4], start=1):
        life.tell(Exited(number, "broke"), random=random)
        wait = (life.machine.wake_at or 0) - life.now
        assert wait == pytest.approx(planned * factor, rel=1e-5)
        assert wait <= BACKOFF_CAP_S * 1.2
        assert life.tick(wait + 0.001) == [Show(State.STARTING), Spawn(number + 1)]


def crash(life, number):
    """The process with this number ends; returns what is shown."""
    *_, shown = life.tell(Exited(number, "broke"))
    return shown


def test_the_fifth_crash_parks_it(life):
    life.tell(Start())
    for number in range(1, CRASHES):
        assert crash(life, number) == Show(State.RESTARTING, "broke")
        life.tick(10)
    assert crash(life, CRASHES) == Show(State.PARKED, "broke; it crashed 5 times in a row and is not restarted")
    assert life.machine.wake_at is None
    assert life.tick(1000) == []


def test_crashes_that_are_three_minutes_old_do_not_count(life):
    """Only a machine that slept has any."""
    life.tell(Start())
    crash(life, 1)
    for number in range(2, CRASHES + 1):
        life.tick(180 if number == 2 else 10)
        assert crash(life, number).state is State.RESTARTING


def test_ten_seconds_of_life_reset_the_count(life):
    life.tell(Start())
    for number in range(1, 20):
        life.now += STABLE_S
        assert crash(life, number) == Show(State.RESTARTING, "broke")
        assert life.machine.wake_at == life.now + 0.5
        life.tick(0.5)


def test_what_is_parked_can_be_started_and_reloaded(life):
    life.tell(Start())
    for number in range(1, CRASHES + 1):
        crash(life, number)
        life.tick(10)
    life.dialogue(
        (Reload(), [Show(State.STARTING), Spawn(6)]),
        (Exited(6, "broke"), [Fail(6, "broke"), Forget(6), Reloaded("broke"), Show(State.RESTARTING, "broke")]),
        (Stop(), [Show(State.STOPPING), Show(State.STOPPED)]),
        (Stop(), []),
        (Start(), [Show(State.STARTING), Spawn(7)]),
    )


# --- stop -----------------------------------------------------------------------------------------------------


def test_a_polite_process_is_asked_to_leave(running):
    running.dialogue(
        (Stop(), [Withdraw("was stopped"), Show(State.STOPPING), Fail(1, "was stopped"), Shutdown(1)]),
        (Stop(), []),
        (Start(), []),
        (Closed(1), []),
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1), Show(State.STOPPED)]),
        (Exited(1, "exited"), []),
    )
    assert running.machine.wake_at is None


def test_a_stubborn_process_is_gone_after_three_seconds(running):
    running.dialogue(
        (Stop(), [Withdraw("was stopped"), Show(State.STOPPING), Fail(1, "was stopped"), Shutdown(1)]),
        (1.9, []),
        (0.1, [Signal(1, TERM)]),
        (0.9, []),
        (0.1, [Signal(1, KILL)]),
        (KILL_S, [Fail(1, "could not be killed"), Forget(1), Show(State.STOPPED)]),
    )


def test_a_stop_ends_a_wait(life):
    life.tell(Start())
    crash(life, 1)
    life.dialogue((Stop(), [Show(State.STOPPING), Show(State.STOPPED)]), (100, []))


# --- reload ---------------------------------------------------------------------------------------------------


def test_a_new_process_takes_over_when_it_is_ready_and_the_old_one_drains(running):
    running.dialogue(
        (Reload(), [Spawn(2)]),
        (Greeted(2, "x"), [Greet(2)]),
        (Heard(2, "register_tool"), []),
        (Heard(2, "ready"), [Serve(2), Drain(1), Reloaded()]),
        (20, []),
        (Drained(1), [Shutdown(1)]),
        (Drained(1), []),
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1)]),
    )
    assert running.machine.state is State.READY


def test_an_old_process_does_not_drain_for_ever(running):
    running.tell(Reload())
    running.tell(Greeted(2, "x"))
    running.tell(Heard(2, "ready"))
    assert running.tick(DRAIN_S) == [Fail(1, "was replaced and did not answer within 30 s"), Shutdown(1)]


@pytest.mark.parametrize("replace", [False, True])
def test_an_old_process_that_breaks_while_it_drains_costs_its_calls_only(running, replace):
    running.tell(Reload())
    running.tell(Greeted(2, "x"))
    running.tell(Heard(2, "ready"))
    running.dialogue(
        (Exited(1, "broke"), [Fail(1, "broke"), Forget(1)]),
        (Exited(2, "broke"), [Withdraw("broke"), Fail(2, "broke"), Forget(2), Show(State.RESTARTING, "broke")]),
    )


AS_BEFORE = "was not reloaded and continues as before: the new process broke"


def test_a_new_process_that_fails_leaves_the_old_one_and_the_reason_until_a_reload_works(running):
    shown = Show(State.READY, AS_BEFORE)
    running.dialogue(
        (Reload(), [Spawn(2)]),
        (Exited(2, "broke"), [Fail(2, "broke"), Forget(2), shown, Reloaded("broke")]),
    )
    assert running.machine.wake_at is None
    running.dialogue(
        (Reload(), [Spawn(3)]),
        (Exited(3, "broke"), [Fail(3, "broke"), Forget(3), shown, Reloaded("broke")]),
        (Reload(), [Spawn(4)]),
        (Greeted(4, "x"), [Greet(4)]),
        (Heard(4, "ready"), [Serve(4), Drain(1), Show(State.READY), Reloaded()]),
    )


def test_a_new_process_that_fails_does_not_make_one_ready_that_still_begins(life):
    life.tell(Start())
    life.dialogue(
        (Greeted(1, "x"), [Greet(1), Serve(1)]),
        (Reload(), [Spawn(2)]),
        (Exited(2, "broke"), [Fail(2, "broke"), Forget(2), Show(State.STARTING, AS_BEFORE), Reloaded("broke")]),
        (Heard(1, "ready"), [Show(State.READY)]),
    )


def test_a_new_process_that_fails_leaves_nothing_to_one_that_is_being_killed(running):
    running.tell(Reload())
    running.dialogue(
        (Broke(1, "did not read"), [Withdraw("did not read"), Fail(1, "did not read"), Signal(1, KILL)]),
        (Exited(2, "broke"), [Fail(2, "broke"), Forget(2), Reloaded("broke")]),
    )


def test_an_old_process_that_dies_during_a_reload_hands_over_at_once(running):
    running.tell(Reload())
    running.dialogue(
        (Greeted(2, "x"), [Greet(2)]),
        (Exited(1, "broke"), [Withdraw("broke"), Fail(1, "broke"), Forget(1), Show(State.STARTING), Serve(2)]),
        (Heard(2, "ready"), [Show(State.READY), Reloaded()]),
    )


def test_a_new_process_takes_over_from_one_that_is_being_killed(running):
    reason = "did not read"
    running.tell(Reload())
    running.tell(Greeted(2, "x"))
    running.dialogue(
        (Broke(1, reason), [Withdraw(reason), Fail(1, reason), Signal(1, KILL)]),
        (Heard(2, "ready"), [Serve(2), Reloaded()]),
        (Exited(1, "was killed"), [Fail(1, reason), Forget(1)]),
    )
    assert running.machine.state is State.READY


def test_an_old_process_that_dies_before_the_new_one_said_hello(running):
    running.tell(Reload())
    running.dialogue(
        (Exited(1, "broke"), [Withdraw("broke"), Fail(1, "broke"), Forget(1), Show(State.STARTING)]),
        (Greeted(2, "x"), [Greet(2), Serve(2)]),
    )


def test_a_second_reload_replaces_the_process_of_the_first(running):
    running.dialogue(
        (Reload(), [Spawn(2)]),
        (Reload(), [Fail(2, "was replaced"), Shutdown(2), Spawn(3)]),
        (Exited(2, "exited"), [Fail(2, "exited"), Forget(2)]),
        (Greeted(3, "x"), [Greet(3)]),
        (Heard(3, "ready"), [Serve(3), Drain(1), Reloaded()]),
    )


def test_by_replace_the_old_process_ends_first_and_what_it_offers_stays(running):
    running.dialogue(
        (Reload(replace=True), [Drain(1), Show(State.STARTING)]),
        (Reload(replace=True), []),
        (Drained(1), [Shutdown(1)]),
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1), Spawn(2)]),
        (Greeted(2, "x"), [Greet(2), Serve(2)]),
        (Heard(2, "ready"), [Show(State.READY), Reloaded()]),
    )


def test_by_replace_a_new_process_that_fails_is_tried_again(running):
    running.tell(Reload(replace=True))
    running.tell(Drained(1))
    running.tell(Exited(1, "exited"))
    assert running.tell(Exited(2, "broke")) == [
        *[Fail(2, "broke"), Forget(2), Withdraw("broke")],
        *[Reloaded("broke"), Show(State.RESTARTING, "broke")],
    ]


def test_a_reload_before_hello_begins_again(life):
    life.dialogue(
        (Start(), [Show(State.STARTING), Spawn(1)]),
        (Reload(), [Fail(1, "was replaced"), Shutdown(1), Spawn(2)]),
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1)]),
    )


def test_a_stop_ends_a_reload(running):
    running.tell(Reload())
    stopped = "was stopped"
    assert running.tell(Stop()) == [
        *[Withdraw(stopped), Reloaded(stopped), Show(State.STOPPING)],
        *[Fail(1, stopped), Shutdown(1), Fail(2, stopped), Shutdown(2)],
    ]
    assert running.tell(Reload()) == [Reloaded("is being stopped")]


def test_a_stop_ends_a_reload_by_replace(running):
    running.tell(Reload(replace=True))
    running.tell(Stop())
    running.dialogue(
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1), Show(State.STOPPED)]),
        (Start(), [Show(State.STARTING), Spawn(2)]),
        (Greeted(2, "x"), [Greet(2), Serve(2)]),
        (Reload(), [Spawn(3)]),
    )
