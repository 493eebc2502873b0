"""Jobs: a line for each command in the background while it runs, and a line in the history when it has ended."""

import os

from tests.zottui.journeys.world import PROMPT, rests
from zotd.testing.script import CallPart


def test_a_job_is_shown_while_it_runs_and_told_when_it_ends(world):
    os.mkfifo(world.cwd / "go")
    world.model.says([CallPart("bash", {"command": "cat go; exit 3", "background": True})], "It runs.")
    zot = world.zot()
    zot.wait(PROMPT)
    zot.type("begin")
    zot.key("Enter")
    zot.wait("It runs.")
    rests(zot)
    zot.wait("▪ j1  cat go; exit 3")
    (world.cwd / "go").write_text("on\n")
    zot.wait(r"job j1 \(cat go; exit 3\): exit 3 after", where="history")
    zot.until(lambda: "▪ j1" not in zot.screen(), "the end of the card")


def test_a_key_sends_the_running_command_to_the_background(world):
    for name in ("begun", "go"):
        os.mkfifo(world.cwd / name)
    world.model.says([CallPart("bash", {"command": "echo on > begun; cat go"})], "I go on without it.")
    zot = world.zot()
    zot.wait(PROMPT)
    zot.type("begin")
    zot.key("Enter")
    assert (world.cwd / "begun").read_text() == "on\n"
    zot.key("C-b")
    zot.wait("I go on without it.")
    zot.wait("▪ j1  echo on > begun; cat go")
    rests(zot)
    assert "sent this command to the background: it goes on as job j1" in world.model.seen()
    (world.cwd / "go").write_text("on\n")
    zot.wait(r"job j1 .*: exit 0 after", where="history")
