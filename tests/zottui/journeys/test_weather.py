"""Journeys of a person whose model is overloaded: `/retry` and esc end the wait, `zot -p` does not wait for hours."""

import signal

import pytest

from tests.zottui.journeys.test_talk import say
from tests.zottui.journeys.world import PROMPT, rests
from zotd.testing.script import Refusal

SOON = {"retry-after": "0.01"}

LATER = {"retry-after": "3600"}
"""Less than a run waits that nobody looks at, more than `zot -p` on a terminal does; no test waits for it."""


@pytest.fixture
def world(world):
    """The daemon of a person, who has not shortened its patience as the tests do."""
    world.daemon.place.env["ZOT_LIMITS_RETRY_PATIENCE_S"] = "14400"
    world.daemon.end(signal.SIGKILL)
    world.daemon.start()
    return world


@pytest.fixture
def waiting(world):
    """`zot`, whose run waits for its model."""
    world.model.says(Refusal(529, "no room", headers=LATER), "at last")
    zot = world.zot()
    zot.wait("openai/scripted")
    say(zot, "go")
    zot.wait("⟲ .*no room")
    zot.wait(PROMPT)
    return zot


def test_retry_asks_the_model_now(world, waiting):
    say(waiting, "/retry")
    waiting.wait("^at last$")
    rests(waiting)
    assert "⟲" not in waiting.screen()
    assert len(world.model.requests) == 2


def test_esc_stops_a_run_that_waits_for_its_model(world, waiting):
    waiting.key("Escape")
    waiting.wait("interrupted$")
    assert "⟲" not in waiting.screen()
    say(waiting, "again")
    waiting.wait("^at last$")
    assert len(world.model.requests) == 2


def test_print_on_a_terminal_gives_up_and_says_so(world):
    world.model.says(Refusal(529, "no room", headers=SOON), Refusal(529, "no room", headers=LATER))
    shell = world.shell()
    say(shell, "zot -p go; echo code $?")
    shell.wait("^code 1$")
    said = " ".join(shell.screen().split())
    assert "zot: gave up after 2 tries in " in said
    assert "no room" in said
    assert "/continue tries again" in said
