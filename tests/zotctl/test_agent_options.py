"""`zotctl agent-options`, in the real daemon."""

import json
import os
import sys

import pytest

from zotd.testing.live_daemon import ROOT


@pytest.fixture
def session(live):
    """A session that the scripted agent runs, which has modes."""
    home = live.daemon.place.home
    command = f'["{sys.executable}", "-m", "zotd.testing.odd_agent"]'
    with (home / "config.toml").open("a") as config:
        config.write(f'[adapters.odd]\ncommand = {command}\ntitle = "Odd"\nstart_s = 40\n')
    with live.connect() as connection:
        connection.call("hello", role="admin")
        connection.call("daemon.reload")
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ODD": "modes"}
        made = connection.call("session.create", cwd=str(live.daemon.place.cwd), agent="odd", name="tests", env=env)
    return made["session"]["id"]


def test_they_are_listed_and_one_is_set(live, session):
    code, out, _ = live.zotctl("agent-options", "-s", "tests")
    assert (code, out.splitlines()) == (
        0,
        ["mode: Mode", " * ask  Ask - to Ask", "   code  Write code - to Write code", "   plan  Plan - to Plan"],
    )
    assert " * plan  Plan" in live.zotctl("agent-options", "-s", "tests", "mode", "plan")[1]
    told = json.loads(live.zotctl("agent-options", "-s", session, "--json")[1])
    assert (told["session"], told["agent"], told["options"][0]["current"]) == (session, "Odd", "plan")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("mode",), "name an option and a value, or neither; `zotctl agent-options` lists them"),
        (("mode", "swift"), 'Odd has no Mode "swift"; there are ask, code, plan'),
    ],
)
def test_what_cannot_be_set_is_refused_in_a_sentence(live, session, words, sentence):
    code, _, err = live.zotctl("agent-options", "-s", session, *words)
    assert (code, err) == (1, f"zotctl: {sentence}\n")
