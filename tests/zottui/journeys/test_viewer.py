"""Journeys 21, 22 and 40: looking through a conversation, however long it is."""

import asyncio

import psutil

from benchmarks import history
from tests.zottui.journeys.table import journey
from tests.zottui.journeys.world import PROMPT, rests
from zotd.testing.script import CallPart
from zottui.widgets.cells import POINTER

MESSAGES = 50_000

MOST_MIB = 120
"""What the client may take, whatever the session is."""

NEEDLE = "where is the needle?"


def ask(zot, words):
    zot.wait(PROMPT)
    zot.type(words)
    zot.key("Enter")


def scrollback(zot):
    """All that the terminal shows and has shown above the status bar, once nothing runs any more.

    Rows as they are: tmux forgets that a line goes on across the first row of the screen whenever a program uses the
    alternate one.
    """
    rests(zot)
    return zot.tmux("capture-pane", "-p", "-S", "-").rstrip("\n").rpartition("\n")[0]


def leave_viewer(zot):
    zot.type("q")
    zot.until(lambda: zot.ask("#{alternate_on}") == "0", "the end of the viewer")
    zot.wait(PROMPT)


# --- 21 ----------------------------------------------------------------------------------------------------------


@journey(21)
def test_a_conversation_is_searched_and_expanded_and_the_scrollback_is_as_it_was(world):
    command = 'for n in $(seq 60); do echo "line $n of 60"; done'
    world.model.says([CallPart("bash", {"command": command})], "it has printed sixty lines")
    zot = world.zot("count", "--mode", "yolo")
    zot.wait("it has printed sixty lines")
    zot.wait(PROMPT)
    before = scrollback(zot)
    zot.key("C-t")
    zot.wait(r"turn 1/1  100%")
    assert zot.ask("#{alternate_on}") == "1"
    zot.type("/line 44")
    zot.key("Enter")
    zot.wait(rf"^{POINTER} +… 52 more \(enter\)")
    zot.key("Enter")
    zot.wait(rf"^{POINTER} +line 44 of 60")
    zot.resize(60, 20)
    zot.wait(rf"^{POINTER} +line 44 of 60")
    zot.resize(100, 30)
    zot.wait(rf"^{POINTER} +line 44 of 60")
    leave_viewer(zot)
    assert scrollback(zot) == before
    zot.type("still here")
    zot.wait(f"^{POINTER} still here")


# --- 22 ----------------------------------------------------------------------------------------------------------


@journey(22)
def test_jump_opens_the_viewer_at_a_prompt(world):
    names = ["first", "second", "third", "fourth"]
    world.model.says(*(f"{name} answer\n\n" + "more\n\n" * 20 for name in names))
    zot = world.zot()
    for name in names:
        ask(zot, f"{name} question")
        zot.wait(rf"^{name} answer$", where="history")
        rests(zot)
    before = scrollback(zot)
    ask(zot, "/jump 3")
    zot.wait(r"turn 3/4")
    assert zot.ask("#{alternate_on}") == "1"
    shown = [line for line in zot.screen().split("\n") if line.strip(f" {POINTER}▌")]
    assert shown[0].endswith("third question")
    assert "third answer" in shown[1]
    leave_viewer(zot)
    assert scrollback(zot).startswith(before.rpartition("\n")[0])


# --- 40 ----------------------------------------------------------------------------------------------------------


@journey(40)
def test_a_session_of_50_000_messages_is_as_light_as_any_and_all_of_it_is_found_and_written(world):
    world.daemon.end()
    stored = history.write(world.home, world.cwd, sessions=1, messages=MESSAGES, first=NEEDLE)
    (session,) = asyncio.run(stored)
    world.daemon.start()
    zot = world.zot("--session", session)
    zot.wait(PROMPT)
    zot.wait(r"^── [\d,]+ earlier messages", where="history")
    assert NEEDLE not in zot.history()
    zot.until(lambda: world.call("session.search", query="needle")["hits"], "the words in the index")
    ask(zot, "/find needle")
    zot.wait("^results for needle")
    zot.key("Enter")
    zot.wait(rf"^{POINTER}?.*{NEEDLE[:-1]}")
    zot.wait(r"turn 1/25000  0%")
    leave_viewer(zot)
    ask(zot, "/export all.md")
    zot.wait("^· exported to .*all.md$", where="history")
    written = (world.cwd / "all.md").read_text()
    assert written.count(NEEDLE) == 1
    assert written.count(history.ANSWER.strip()) == MESSAGES // 2
    assert psutil.Process(int(zot.ask("#{pane_pid}"))).memory_info().rss < MOST_MIB * 2**20
