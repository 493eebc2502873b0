"""When an extension counts as ready, as a dialogue between what happened and what has to be done."""

import pytest

from tests.core.conftest import Life
from zotd.core.life import ExtensionState, FrameReceived, Greet, Greeted, Serve, Show, Spawn, StartRequested
from zotd.core.supervision import LATE


@pytest.fixture
def life():
    return Life()


def test_what_registers_before_it_is_ready_serves_at_once(life):
    life.dialogue(
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(1)]),
        (StartRequested(), []),
        (Greeted(1, "x"), [Greet(1), Serve(1)]),
        (FrameReceived(1, "register_tool"), []),
        (FrameReceived(1, "ready"), [Show(ExtensionState.READY)]),
        (FrameReceived(1, "ready"), []),
    )


def test_a_quarter_of_a_second_of_silence_is_ready(life):
    life.dialogue(
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(1)]),
        (Greeted(1, "x"), [Greet(1), Serve(1)]),
        (0.2, []),
        (FrameReceived(1, "register_tool"), []),
        (0.2, []),
        (Greeted(1, "x"), []),  # said twice, it is a frame like another
        (0.2, []),
        (0.05, [Show(ExtensionState.READY)]),
    )


def test_ten_seconds_of_chatter_are_ready(life):
    life.tell(StartRequested())
    life.tell(Greeted(1, "x"))
    for _ in range(49):
        assert life.tick(0.2) == []
        life.tell(FrameReceived(1, "notify"))
    assert life.tick(0.2) == [Show(ExtensionState.READY)]


def test_one_that_has_promised_to_say_ready_and_does_not_is_late_until_it_does(life):
    life.tell(StartRequested())
    life.tell(Greeted(1, "x", says_ready=True))
    life.dialogue((9.9, []), (0.1, [Show(ExtensionState.READY, LATE)]))
    life.dialogue(
        (FrameReceived(1, "register_tool"), []),
        (FrameReceived(1, "ready"), [Show(ExtensionState.READY)]),
        (FrameReceived(1, "ready"), []),
    )
