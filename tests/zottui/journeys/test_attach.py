"""Journeys 32 to 35 and 39: terminals come and go, and the daemon too; the session is the same."""

import json
import os
import re
import signal
import time

import pytest

from tests.zottui.journeys.deciding import decide
from tests.zottui.journeys.table import journey
from tests.zottui.journeys.world import PROMPT, rests
from zotd.testing.script import CallPart, TextPart

ASKS = "--mode", "ask"

CONTEXT = r" · 15( ·|$)"
"""In the status bar: the tokens of one request to the scripted model."""

CARD = "^● bash  echo ran"
"""The first line of its card."""

RUNS = CallPart("bash", {"command": "echo ran >> runs"})


def ask(zot, words="go"):
    zot.wait(PROMPT)
    zot.type(words)
    zot.key("Enter")


def leave(zot):
    zot.key("C-d")
    zot.until(lambda: zot.exit_code == 0, "the end of the terminal")


def killed(zot):
    """End the terminal without a word."""
    os.kill(int(zot.ask("#{pane_pid}")), signal.SIGKILL)
    zot.until(lambda: zot.ask("#{pane_dead}") == "1", "the end of the terminal")


def runs(world):
    path = world.cwd / "runs"
    return path.read_text().count("ran") if path.exists() else 0


def leave_long_ago(world):
    """Make it an hour ago that the last terminal was closed."""
    (path,) = (world.home / "seen").glob("*.json")
    seen = json.loads(path.read_text())
    path.write_text(json.dumps(seen | {"time": time.time() - 3600}))


# --- 32 ----------------------------------------------------------------------------------------------------------


@journey(32)
@pytest.mark.parametrize("how", ["detached", "killed"])
def test_missed_output_is_printed_once_and_the_stream_continues(world, how):
    away, back = world.model.gate(), world.model.gate()
    world.model.says([TextPart(["one\n\ntw"]), away, TextPart(["o\n\nthr"]), back, TextPart(["ee\n\nfour"])])
    zot = world.zot()
    ask(zot)
    zot.wait("^tw$")
    if how == "detached":
        zot.key("C-d")
        zot.wait(r"the run continues; return with: zot --session \w+$")
    else:
        os.kill(int(zot.ask("#{pane_pid}")), signal.SIGKILL)
    zot.until(lambda: zot.ask("#{pane_dead}") == "1", "the end of the terminal")
    world.model.open(away)
    zot = world.zot()
    zot.wait("^thr$")
    assert "◐" in zot.ask("#{pane_title}")
    world.model.open(back)
    zot.wait("^four$")
    rests(zot)
    said = [line for line in zot.history().split("\n") if line.strip()]
    assert said[:5] == ["❯ go", "one", "two", "three", "four"]


@journey(32)
def test_a_recap_is_printed_after_a_long_absence(world):
    gate = world.model.gate()
    write = CallPart("write", {"path": "new.py", "content": "x = 1\n"})
    world.model.says([gate, write], "one", "all done")
    zot = world.zot()
    ask(zot, "first")
    zot.wait("working…")
    ask(zot, "second")
    zot.wait("^queued  second")
    leave(zot)
    leave_long_ago(world)
    world.model.open(gate)
    zot.until(lambda: "idle" in world.run("zotctl", "sessions"), "the end of the second run")
    zot = world.zot()
    zot.wait("^· since you left: 1 turn, 1 file changed$")
    assert zot.history().count("since you left") == 1


@journey(32)
def test_no_recap_is_printed_after_a_short_absence(world):
    world.model.says("one")
    zot = world.zot()
    ask(zot)
    zot.wait("^one$")
    leave(zot)
    zot = world.zot()
    zot.wait("^one$")
    zot.wait(PROMPT)
    assert "since you left" not in zot.history()


@journey(32)
def test_the_context_usage_is_shown_right_after_attaching(world):
    world.model.says("one")
    zot = world.zot()
    ask(zot)
    zot.wait(CONTEXT)
    leave(zot)
    zot = world.zot()
    zot.wait(CONTEXT)


@journey(32)
def test_a_call_that_needs_approval_is_not_printed_as_a_card_at_attach(world):
    world.model.says([TextPart(["let me see\n\n"]), RUNS], "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("^● bash needs you")
    killed(zot)
    zot = world.zot()
    zot.wait("^● bash needs you")
    zot.wait("^let me see$")
    assert not re.search(CARD, zot.history(), re.MULTILINE)
    decide(zot, "y", "^all done$")
    assert len(re.findall(CARD, zot.history(), re.MULTILINE)) == 1


@journey(32)
def test_a_running_call_is_not_printed_as_a_card_at_attach(world):
    world.model.says([CallPart("bash", {"command": "echo started; cat gate"})], "all done")
    world.fifo("gate")
    zot = world.zot()
    ask(zot)
    zot.wait("^  started$")
    killed(zot)
    zot = world.zot()
    zot.wait(r"^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] bash  echo started; cat gate  \d+s$")
    assert not re.search("^● bash", zot.history(), re.MULTILINE)
    world.feed("gate", "opened\n")
    zot.wait("^all done$")
    cards = re.findall("^● bash.*$", zot.history(), re.MULTILINE)
    assert len(cards) == 1
    assert cards[0].startswith("● bash  echo started; cat gate")


@journey(32)
def test_a_reply_is_printed_once_after_the_terminal_was_suspended(world):
    away, back = world.model.gate(), world.model.gate()
    world.model.says([TextPart(["one\n\ntw"]), away, TextPart(["o\n\nthr"]), back, TextPart(["ee\n\nfour"])])
    shell = world.shell()
    shell.type("zot")
    shell.key("Enter")
    ask(shell)
    shell.wait("^tw$")
    shell.key("C-z")
    shell.wait("Stopped")
    world.model.open(away)
    shell.type("fg")
    shell.key("Enter")
    shell.wait("^thr$")
    world.model.open(back)
    shell.wait("^four$")
    rests(shell)
    shell.wait(PROMPT)
    said = [line for line in shell.history().split("\n") if line in {"one", "tw", "two", "thr", "three", "four"}]
    assert said == ["one", "two", "three", "four"]
    assert shell.history().count("openai/scripted") == 1


# --- 33 ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(world):
    """A narrow and a wide terminal with one session."""
    narrow = world.zot(*ASKS, columns=80)
    narrow.wait(PROMPT)
    wide = world.zot(columns=140)
    for zot in (narrow, wide):
        zot.wait("2 clients")
    return narrow, wide


def name_of(zot):
    """What others see of it."""
    return "zot@" + zot.ask("#{pane_tty}").removeprefix("/dev/")


@journey(33)
def test_two_terminals_show_the_same_each_in_its_width(world, two):
    narrow, wide = two
    gate = world.model.gate()
    words = "word " * 22 + "end"
    world.model.says([TextPart(["one\n\ntw"]), gate, TextPart([f"o\n\n{words}"])])
    ask(narrow, "hello")
    wide.wait(f"^{name_of(narrow)} ❯ hello$")
    wide.wait("^tw$")
    wide.type("my draft")
    wide.wait("^❯ my draft$")
    world.model.open(gate)
    for zot in two:
        zot.wait("end$", where="history")
        shown = zot.history()
        assert [shown.count(part) for part in ("❯ hello", "one\n", "two\n", "end\n")] == [1, 1, 1, 1]
        assert words in " ".join(shown.split())
        assert "2 clients" in zot.screen()
    assert name_of(narrow) not in narrow.history()
    assert "my draft" not in narrow.screen()
    wide.wait("^❯ my draft$")


@journey(33)
def test_who_lists_the_clients_and_the_count_follows(two):
    narrow, wide = two
    ask(wide, "/who")
    wide.wait(rf"^· {name_of(wide)} \(you\) is ")
    wide.wait(rf"^· {name_of(narrow)} is ")
    leave(narrow)
    wide.until(lambda: "2 clients" not in wide.screen(), "the new count")


# --- 34 ----------------------------------------------------------------------------------------------------------


@journey(34)
def test_the_first_answer_closes_the_question_everywhere(world, two):
    narrow, wide = two
    world.model.says([RUNS], "all done")
    ask(narrow)
    for zot in two:
        zot.wait("^● bash needs you")
    decide(wide, "y", "^all done$")
    narrow.wait("^all done$")
    assert f"approved by {name_of(wide)}: bash" in narrow.history()
    assert "approved by" not in wide.history()
    for zot in two:
        zot.until(lambda: "needs you" not in zot.screen(), "the end of the question")  # noqa: B023  (used at once)
        assert len(re.findall("^● bash  echo ran", zot.history(), re.MULTILINE)) == 1
    assert runs(world) == 1


@journey(34)
def test_a_rejection_elsewhere_is_shown_with_its_reason(world, two):
    narrow, wide = two
    world.model.says([RUNS], "all done")
    ask(narrow)
    narrow.wait("^● bash needs you")
    wide.wait("^● bash needs you")
    decide(wide, "f", "^why not")
    wide.type("not today")
    wide.key("Enter")
    narrow.wait("^all done$")
    assert f"denied by {name_of(wide)}: bash (not today)" in narrow.history()
    assert runs(world) == 0


# --- 35 ----------------------------------------------------------------------------------------------------------


@journey(35)
def test_a_pending_approval_is_shown_at_attach(world):
    gate = world.model.gate()
    world.model.says([gate, RUNS], "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("working…")
    leave(zot)
    world.model.open(gate)
    zot.until(lambda: "waiting" in world.run("zotctl", "sessions"), "the question")
    assert "echo ran" in world.run("zotctl", "approvals")
    zot = world.zot()
    zot.wait("^● bash needs you")
    decide(zot, "y", "^all done$")
    assert runs(world) == 1


# --- 39 ----------------------------------------------------------------------------------------------------------


@journey(39)
def test_a_daemon_that_is_killed_in_mid_call_comes_back_and_nothing_runs_twice(world):
    world.model.says([CallPart("bash", {"command": "echo ran >> runs; echo started; cat gate"})], "all done")
    world.fifo("gate")
    zot = world.zot()
    ask(zot)
    zot.wait("^  started$")
    zot.type("a draft")
    os.kill(world.daemon.pid, signal.SIGKILL)
    world.daemon.wait()
    zot.wait("reconnecting…")
    zot.wait("interrupted, outcome unknown")
    zot.wait("is not run again")
    zot.until(lambda: "reconnecting…" not in zot.screen(), "the connection")
    zot.wait("^❯ a draft$")
    zot.wait("^paused  /continue resumes$")
    zot.key("C-u")
    ask(zot, "/continue")
    zot.wait("^all done$")
    zot.until(lambda: "paused" not in zot.screen(), "that it goes on")
    assert runs(world) == 1
    assert len(re.findall("^● bash", zot.history(), re.MULTILINE)) == 1
    assert "outcome unknown" in world.model.seen()


@journey(39)
def test_a_daemon_that_is_killed_in_mid_reply_leaves_the_reply_once(world):
    gate = world.model.gate()
    world.model.says([TextPart(["# one\n\nsome **bold** words\n\n- first\n- fin"]), gate, TextPart(["al"])], "all done")
    zot = world.zot()
    ask(zot)
    zot.wait("fin$")
    os.kill(world.daemon.pid, signal.SIGKILL)
    world.daemon.wait()
    zot.wait("reconnecting…")
    zot.until(lambda: "reconnecting…" not in zot.screen(), "the connection")
    zot.wait("^paused  /continue resumes$")
    zot.wait("this run was cut off")  # missed events come behind the snapshot
    shown = [line for line in zot.history().split("\n") if line.strip()]
    assert shown[1:6] == ["❯ go", "one", "some bold words", "• first", "• fin"]
    assert shown[6].startswith("· warning: interrupted: this run was cut off")
    assert zot.history().count("warning") == 1
    zot.wait(PROMPT)
    ask(zot, "/continue")
    zot.wait("^all done$")
    assert zot.history().count("some bold words") == 1


@journey(39)
def test_a_prompt_that_is_typed_without_a_connection_arrives_once(world):
    world.model.says("one", "two")
    zot = world.zot()
    ask(zot, "first")
    zot.wait("^one$")
    world.daemon.end()
    zot.wait("reconnecting…")
    ask(zot, "second")
    world.daemon.start()
    zot.wait("^two$")
    assert zot.history().count("❯ second") == 1
    assert [request.messages[-1]["content"] for request in world.model.requests[1:]] == ["second"]


@journey(10)
def test_other_sessions_of_the_directory_take_one_line(world):
    for word in ("first", "second", "third", "fourth"):
        world.session(name=f"{word} of our list of sessions with quite a long name, as people give them")
    zot = world.zot("-n", columns=80)
    zot.wait(r"^· other sessions here: fourth of our list …, third of our list o… \(/sessions\)$")


@journey(10)
def test_a_session_is_called_after_the_first_sentence_cut_between_words(world):
    world.model.says("one")
    zot = world.zot(columns=140)
    ask(zot, "Please look at the tests of the payment module and tell me why they fail. Thanks!")
    zot.wait("^one$")
    (session,) = world.call("session.list")["sessions"]
    assert session["name"] == "Please look at the tests of the payment module and tell me…"


@journey(10)
def test_a_session_that_is_not_kept_lives_as_long_as_its_terminal(world):
    world.model.says("hello")
    zot = world.zot("--no-session")
    ask(zot)
    zot.wait("^hello$")
    (session,) = world.call("session.list")["sessions"]
    assert session["ephemeral"]
    leave(zot)
    zot.until(lambda: not world.call("session.list")["sessions"], "the end of the session")
    assert "come back" not in zot.history()
