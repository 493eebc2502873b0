"""Another agent in the terminal: its text, its calls, its question, and the way back to it."""

import sys

import pytest

from tests.zottui.journeys.deciding import decide
from tests.zottui.journeys.world import PROMPT, rests
from tests.zottui.journeys.world import world as made


@pytest.fixture
def world(tmp_path):
    command = [sys.executable, "-m", "zotd.testing.odd_agent"]
    with made(tmp_path, **{"adapters.odd": {"command": command, "title": "Odd"}}) as one:
        yield one


def test_a_session_of_another_agent_looks_like_every_other(world):
    zot = world.zot("--agent", "odd", "--mode", "ask")
    zot.wait(PROMPT)
    zot.type(f"hello ask:{world.cwd}/made goodbye")
    zot.key("Enter")
    zot.wait("execute needs you")
    decide(zot, "y", r"^goodbye$")
    assert (world.cwd / "made").exists()
    rests(zot)
    assert "odd" in world.run("zotctl", "sessions")
