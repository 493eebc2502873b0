"""When an extension counts as ready."""

import pytest

from tests.core.conftest import Life
from zotd.core.life import ExtensionState, FrameReceived, Greet, Greeted, Serve, Show, Spawn, StartRequested
from zotd.core.supervision import LATE


@pytest.fixture
def life():
    return Life()


def test_a_process_serves_before_it_is_ready(life):
    life.dialogue(
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(1)]),
        (StartRequested(), []),
        (Greeted(1, "x"), [Greet(1), Serve(1)]),
        (FrameReceived(1, "register_tool"), []),
        (FrameReceived(1, "ready"), [Show(ExtensionState.READY)]),
        (FrameReceived(1, "ready"), []),
    )


def test_a_silent_process_is_ready_after_a_quarter_of_a_second(life):
    life.dialogue(
        (StartRequested(), [Show(ExtensionState.STARTING), Spawn(1)]),
        (Greeted(1, "x"), [Greet(1), Serve(1)]),
        (0.2, []),
        (FrameReceived(1, "register_tool"), []),
        (0.2, []),
        (Greeted(1, "x"), []),  # a second hello counts like any other frame
        (0.2, []),
        (0.05, [Show(ExtensionState.READY)]),
    )


def test_a_process_that_is_never_silent_is_ready_after_ten_seconds(life):
    life.tell(StartRequested())
    life.tell(Greeted(1, "x"))
    for _ in range(49):
        assert life.tick(0.2) == []
        life.tell(FrameReceived(1, "notify"))
    assert life.tick(0.2) == [Show(ExtensionState.READY)]


def test_an_announced_but_missing_ready_is_shown_until_it_arrives(life):
    life.tell(StartRequested())
    life.tell(Greeted(1, "x", says_ready=True))
    life.dialogue((9.9, []), (0.1, [Show(ExtensionState.READY, LATE)]))
    life.dialogue(
        (FrameReceived(1, "register_tool"), []),
        (FrameReceived(1, "ready"), [Show(ExtensionState.READY)]),
        (FrameReceived(1, "ready"), []),
    )
