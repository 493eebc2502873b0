"""Supervision of an extension, as pairs of inputs and expected actions."""

import pytest

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
    Withdraw,
    WriteShutdown,
)
from zotd.core.supervision import BACKOFF_CAP_S, CRASHES, DRAIN_S, KILL_S, STABLE_S

TERM, KILL = False, True


@pytest.fixture
def life():
    return Life()


@pytest.fixture
def running(life):
    """Supervision whose process 1 is ready."""
    life.dialogue(
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(1)]),
        (Greeted(1, "x"), [Greet(1), Serve(1)]),
        (FrameReceived(1, "ready"), [Show(ExtensionState.READY)]),
    )
    assert life.machine.wake_at is None
    return life


# --- start ----------------------------------------------------------------------------------------------------


def test_a_process_without_hello_is_killed_with_its_group(life):
    reason = "sent no hello within 5 s"
    life.dialogue(
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(1)]),
        (4.9, []),
        (0.1, [Fail(1, reason), Signal(1, KILL)]),
        (Greeted(1, "x"), []),
        (Exited(1, "was ended by signal 9"), [Fail(1, reason), Forget(1), Show(ExtensionState.RESTARTING, reason)]),
    )


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (FrameReceived(1, "register_tool"), "began with `register_tool` instead of `hello`"),
        (Greeted(1, ""), "sent a hello without a name"),
        (Broke(1, "did not read"), "did not read"),
    ],
)
def test_a_process_with_a_bad_beginning_is_killed_with_its_group(life, event, reason):
    life.tell(StartRequested())
    assert life.tell(event) == [Fail(1, reason), Signal(1, KILL)]


def test_a_process_that_cannot_be_killed_is_given_up(life):
    life.tell(StartRequested())
    life.tell(Broke(1, "did not read"))
    assert life.tick(KILL_S) == [Fail(1, "did not read"), Forget(1), Show(ExtensionState.RESTARTING, "did not read")]


# --- crash ----------------------------------------------------------------------------------------------------


def test_a_crash_withdraws_everything_and_schedules_a_restart(running):
    reason = "exited with code 3"
    running.dialogue(
        (Exited(1, reason), [Withdraw(reason), Fail(1, reason), Forget(1), Show(ExtensionState.RESTARTING, reason)]),
        (StartRequested(), []),
        (0.4, []),
        (0.1, [Show(ExtensionState.STARTING), Spawn(2)]),
        (Greeted(2, "x"), [Greet(2), Serve(2)]),
    )


def test_the_exit_reason_is_awaited_after_the_end_of_the_output(running):
    reason = "exited with code 3"
    running.dialogue(
        (Closed(1), []),
        (Closed(1), []),
        (Exited(1, reason), [Withdraw(reason), Fail(1, reason), Forget(1), Show(ExtensionState.RESTARTING, reason)]),
    )


def test_a_process_that_closes_its_output_is_killed(running):
    reason = "closed its stdout without exiting"
    running.dialogue(
        (Closed(1), []),
        (0.05, [Withdraw(reason), Fail(1, reason), Signal(1, KILL)]),
        (Exited(1, "was ended by signal 9"), [Fail(1, reason), Forget(1), Show(ExtensionState.RESTARTING, reason)]),
    )


@pytest.mark.parametrize(("random", "factor"), [(0.0, 0.8), (0.5, 1.0), (0.999999, 1.2)])
def test_the_backoff_doubles_and_has_jitter(life, random, factor):
    life.tell(StartRequested())
    for number, planned in enumerate([0.5, 1, 2, 4], start=1):
        life.tell(Exited(number, "broke"), random=random)
        wait = (life.machine.wake_at or 0) - life.now
        assert wait == pytest.approx(planned * factor, rel=1e-5)
        assert wait <= BACKOFF_CAP_S * 1.2
        assert life.tick(wait + 0.001) == [Show(ExtensionState.STARTING), Spawn(number + 1)]


def crash(life, number):
    """Let the process with this number exit; return what is shown."""
    *_, shown = life.tell(Exited(number, "broke"))
    return shown


def test_the_fifth_crash_parks_the_extension(life):
    life.tell(StartRequested())
    for number in range(1, CRASHES):
        assert crash(life, number) == Show(ExtensionState.RESTARTING, "broke")
        life.tick(10)
    assert crash(life, CRASHES) == Show(
        ExtensionState.PARKED, "broke; it crashed 5 times in a row and is not restarted"
    )
    assert life.machine.wake_at is None
    assert life.tick(1000) == []


def test_crashes_older_than_three_minutes_do_not_count(life):
    """Happens only if the machine was suspended: the backoff is much shorter."""
    life.tell(StartRequested())
    crash(life, 1)
    for number in range(2, CRASHES + 1):
        life.tick(180 if number == 2 else 10)
        assert crash(life, number).state is ExtensionState.RESTARTING


def test_a_run_of_ten_seconds_resets_the_crash_count(life):
    life.tell(StartRequested())
    for number in range(1, 20):
        life.now += STABLE_S
        assert crash(life, number) == Show(ExtensionState.RESTARTING, "broke")
        assert life.machine.wake_at == life.now + 0.5
        life.tick(0.5)


def test_a_parked_extension_can_be_started_and_reloaded(life):
    life.tell(StartRequested())
    for number in range(1, CRASHES + 1):
        crash(life, number)
        life.tick(10)
    life.dialogue(
        (Reload(), [Show(ExtensionState.STARTING), Spawn(6)]),
        (
            Exited(6, "broke"),
            [Fail(6, "broke"), Forget(6), ReloadsDone("broke"), Show(ExtensionState.RESTARTING, "broke")],
        ),
        (Stop(), [Show(ExtensionState.STOPPING), Show(ExtensionState.STOPPED)]),
        (Stop(), []),
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(7)]),
    )


# --- stop -----------------------------------------------------------------------------------------------------


def test_a_stop_asks_the_process_to_shut_down(running):
    running.dialogue(
        (Stop(), [Withdraw("was stopped"), Show(ExtensionState.STOPPING), Fail(1, "was stopped"), WriteShutdown(1)]),
        (Stop(), []),
        (StartRequested(), []),
        (Closed(1), []),
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1), Show(ExtensionState.STOPPED)]),
        (Exited(1, "exited"), []),
    )
    assert running.machine.wake_at is None


def test_an_unresponsive_process_is_gone_after_three_seconds(running):
    running.dialogue(
        (Stop(), [Withdraw("was stopped"), Show(ExtensionState.STOPPING), Fail(1, "was stopped"), WriteShutdown(1)]),
        (1.9, []),
        (0.1, [Signal(1, TERM)]),
        (0.9, []),
        (0.1, [Signal(1, KILL)]),
        (KILL_S, [Fail(1, "could not be killed"), Forget(1), Show(ExtensionState.STOPPED)]),
    )


def test_a_stop_cancels_a_scheduled_restart(life):
    life.tell(StartRequested())
    crash(life, 1)
    life.dialogue((Stop(), [Show(ExtensionState.STOPPING), Show(ExtensionState.STOPPED)]), (100, []))


# --- reload ---------------------------------------------------------------------------------------------------


def test_a_reload_switches_when_the_new_process_is_ready_and_drains_the_old(running):
    running.dialogue(
        (Reload(), [Spawn(2)]),
        (Greeted(2, "x"), [Greet(2)]),
        (FrameReceived(2, "register_tool"), []),
        (FrameReceived(2, "ready"), [Serve(2), DrainProcess(1), ReloadsDone()]),
        (20, []),
        (Drained(1), [WriteShutdown(1)]),
        (Drained(1), []),
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1)]),
    )
    assert running.machine.state is ExtensionState.READY


def test_draining_has_a_time_limit(running):
    running.tell(Reload())
    running.tell(Greeted(2, "x"))
    running.tell(FrameReceived(2, "ready"))
    assert running.tick(DRAIN_S) == [Fail(1, "was replaced and did not answer within 30 s"), WriteShutdown(1)]


@pytest.mark.parametrize("replace", [False, True])
def test_a_draining_process_that_breaks_fails_only_its_own_calls(running, replace):
    running.tell(Reload())
    running.tell(Greeted(2, "x"))
    running.tell(FrameReceived(2, "ready"))
    running.dialogue(
        (Exited(1, "broke"), [Fail(1, "broke"), Forget(1)]),
        (
            Exited(2, "broke"),
            [Withdraw("broke"), Fail(2, "broke"), Forget(2), Show(ExtensionState.RESTARTING, "broke")],
        ),
    )


AS_BEFORE = "was not reloaded and continues as before: the new process broke"


def test_a_failed_reload_keeps_the_old_process_and_shows_the_reason(running):
    shown = Show(ExtensionState.READY, AS_BEFORE)
    running.dialogue(
        (Reload(), [Spawn(2)]),
        (Exited(2, "broke"), [Fail(2, "broke"), Forget(2), shown, ReloadsDone("broke")]),
    )
    assert running.machine.wake_at is None
    running.dialogue(
        (Reload(), [Spawn(3)]),
        (Exited(3, "broke"), [Fail(3, "broke"), Forget(3), shown, ReloadsDone("broke")]),
        (Reload(), [Spawn(4)]),
        (Greeted(4, "x"), [Greet(4)]),
        (FrameReceived(4, "ready"), [Serve(4), DrainProcess(1), Show(ExtensionState.READY), ReloadsDone()]),
    )


def test_a_failed_reload_does_not_make_a_starting_process_ready(life):
    life.tell(StartRequested())
    life.dialogue(
        (Greeted(1, "x"), [Greet(1), Serve(1)]),
        (Reload(), [Spawn(2)]),
        (
            Exited(2, "broke"),
            [Fail(2, "broke"), Forget(2), Show(ExtensionState.STARTING, AS_BEFORE), ReloadsDone("broke")],
        ),
        (FrameReceived(1, "ready"), [Show(ExtensionState.READY)]),
    )


def test_a_failed_reload_does_not_fall_back_to_a_process_being_killed(running):
    running.tell(Reload())
    running.dialogue(
        (Broke(1, "did not read"), [Withdraw("did not read"), Fail(1, "did not read"), Signal(1, KILL)]),
        (Exited(2, "broke"), [Fail(2, "broke"), Forget(2), ReloadsDone("broke")]),
    )


def test_an_old_process_that_dies_during_a_reload_is_replaced_at_once(running):
    running.tell(Reload())
    running.dialogue(
        (Greeted(2, "x"), [Greet(2)]),
        (Exited(1, "broke"), [Withdraw("broke"), Fail(1, "broke"), Forget(1), Show(ExtensionState.STARTING), Serve(2)]),
        (FrameReceived(2, "ready"), [Show(ExtensionState.READY), ReloadsDone()]),
    )


def test_a_reload_replaces_a_process_that_is_being_killed(running):
    reason = "did not read"
    running.tell(Reload())
    running.tell(Greeted(2, "x"))
    running.dialogue(
        (Broke(1, reason), [Withdraw(reason), Fail(1, reason), Signal(1, KILL)]),
        (FrameReceived(2, "ready"), [Serve(2), ReloadsDone()]),
        (Exited(1, "was killed"), [Fail(1, reason), Forget(1)]),
    )
    assert running.machine.state is ExtensionState.READY


def test_an_old_process_that_dies_before_the_hello_of_the_new_one(running):
    running.tell(Reload())
    running.dialogue(
        (Exited(1, "broke"), [Withdraw("broke"), Fail(1, "broke"), Forget(1), Show(ExtensionState.STARTING)]),
        (Greeted(2, "x"), [Greet(2), Serve(2)]),
    )


def test_a_second_reload_replaces_the_process_started_by_the_first(running):
    running.dialogue(
        (Reload(), [Spawn(2)]),
        (Reload(), [Fail(2, "was replaced"), WriteShutdown(2), Spawn(3)]),
        (Exited(2, "exited"), [Fail(2, "exited"), Forget(2)]),
        (Greeted(3, "x"), [Greet(3)]),
        (FrameReceived(3, "ready"), [Serve(3), DrainProcess(1), ReloadsDone()]),
    )


def test_replace_ends_the_old_process_first_and_keeps_its_registrations(running):
    running.dialogue(
        (Reload(replace=True), [DrainProcess(1), Show(ExtensionState.STARTING)]),
        (Reload(replace=True), []),
        (Drained(1), [WriteShutdown(1)]),
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1), Spawn(2)]),
        (Greeted(2, "x"), [Greet(2), Serve(2)]),
        (FrameReceived(2, "ready"), [Show(ExtensionState.READY), ReloadsDone()]),
    )


def test_replace_restarts_a_new_process_that_fails(running):
    running.tell(Reload(replace=True))
    running.tell(Drained(1))
    running.tell(Exited(1, "exited"))
    assert running.tell(Exited(2, "broke")) == [
        *[Fail(2, "broke"), Forget(2), Withdraw("broke")],
        *[ReloadsDone("broke"), Show(ExtensionState.RESTARTING, "broke")],
    ]


def test_a_reload_before_hello_starts_again(life):
    life.dialogue(
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(1)]),
        (Reload(), [Fail(1, "was replaced"), WriteShutdown(1), Spawn(2)]),
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1)]),
    )


def test_a_stop_ends_a_reload(running):
    running.tell(Reload())
    stopped = "was stopped"
    assert running.tell(Stop()) == [
        *[Withdraw(stopped), ReloadsDone(stopped), Show(ExtensionState.STOPPING)],
        *[Fail(1, stopped), WriteShutdown(1), Fail(2, stopped), WriteShutdown(2)],
    ]
    assert running.tell(Reload()) == [ReloadsDone("is being stopped")]


def test_a_stop_ends_a_reload_with_replace(running):
    running.tell(Reload(replace=True))
    running.tell(Stop())
    running.dialogue(
        (Exited(1, "exited"), [Fail(1, "exited"), Forget(1), Show(ExtensionState.STOPPED)]),
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(2)]),
        (Greeted(2, "x"), [Greet(2), Serve(2)]),
        (Reload(), [Spawn(3)]),
    )
