"""Journeys of a person who goes on typing while the model answers."""

import re

import pytest

from tests.zottui.journeys.deciding import decide
from tests.zottui.journeys.table import journey
from tests.zottui.journeys.test_talk import SHELL, WORKING, say
from tests.zottui.journeys.world import PROMPT
from zotd.testing.script import CallPart, TextPart


@pytest.fixture
def zot(world):
    zot = world.zot()
    zot.wait("openai/scripted")
    return zot


def lines_of(zot):
    return zot.history().split("\n")


# --- 6: what is typed meanwhile waits ---------------------------------------------------------------------------------


@journey(6)
def test_a_line_that_is_typed_meanwhile_waits_and_runs_once(world, zot):
    gate = world.model.gate()
    world.model.says([TextPart(["begun\n\n"]), gate, TextPart(["ended"])], "the second answer")
    say(zot, "first")
    zot.wait("^begun$")
    say(zot, "second")
    zot.wait("^queued  second$")
    zot.wait(PROMPT)
    assert len(world.model.requests) == 1
    world.model.open(gate)
    zot.wait("^the second answer$")
    lines = lines_of(zot)
    assert lines.index("ended") < lines.index("❯ second") < lines.index("the second answer")
    assert lines.count("❯ second") == 1
    assert not any("queued" in line for line in lines)
    assert len(world.model.requests) == 2


@journey(6)
def test_queued_prompts_are_sent_in_order(world, zot):
    gate = world.model.gate()
    world.model.says([TextPart(["begun\n\n"]), gate], "two", "three", "four")
    say(zot, "first")
    zot.wait("^begun$")
    for words in ("second", "third", "fourth"):
        say(zot, words)
        zot.wait(f"^queued  {words}$")
    world.model.open(gate)
    zot.wait("^four$")
    assert [line for line in lines_of(zot) if line.startswith("❯ ")] == [
        "❯ first", "❯ second", "❯ third", "❯ fourth",
    ]  # fmt: skip


# --- 7: steering ------------------------------------------------------------------------------------------------------


@journey(7)
def test_a_steered_prompt_reaches_the_model_before_the_next_step(world, zot):
    gate = world.model.gate()
    world.model.says([TextPart(["I look.\n\n"]), gate, CallPart("read", {"path": "nothing"})], "I am brief.")
    say(zot, "look around")
    zot.wait("^I look\\.$")
    zot.type("be brief")
    zot.key("C-s")
    zot.wait("^steer   be brief$")
    zot.wait(PROMPT)
    world.model.open(gate)
    zot.wait("^I am brief\\.$")
    last = world.model.requests[-1].body["messages"][-1]
    assert (last["role"], last["content"]) == ("user", "be brief")
    assert len(world.model.requests) == 2
    assert lines_of(zot).count("❯ be brief") == 1
    assert "steer " not in zot.screen()


@journey(7)
def test_steering_without_a_run_sends_a_prompt(world, zot):
    world.model.says("hello")
    zot.type("hi")
    zot.key("C-s")
    zot.wait("^hello$")
    assert lines_of(zot).count("❯ hi") == 1


# --- 8: taking it back ------------------------------------------------------------------------------------------------


@journey(8)
def test_up_in_an_empty_editor_recalls_a_queued_prompt(world, zot):
    gate = world.model.gate()
    world.model.says([TextPart(["begun\n\n"]), gate, TextPart(["ended"])])
    say(zot, "first")
    zot.wait("^begun$")
    say(zot, "not like that")
    zot.wait("^queued  not like that$")
    zot.key("Up")
    zot.wait("^❯ not like that$")
    zot.until(lambda: "queued" not in zot.screen(), "an empty queue")
    zot.key("C-u")
    zot.wait(PROMPT)
    world.model.open(gate)
    zot.wait("^ended$")
    zot.until(lambda: not re.search(WORKING, zot.screen()), "the end")
    assert len(world.model.requests) == 1
    assert "not like that" not in zot.history()


@journey(8)
def test_a_recalled_prompt_contains_its_paste(world, zot):
    gate = world.model.gate()
    world.model.says([TextPart(["begun\n\n"]), gate], "thanks")
    say(zot, "first")
    zot.wait("^begun$")
    zot.paste("\n".join(f"pasted {number}" for number in range(1, 31)))
    zot.wait("30 lines")
    zot.key("Enter")
    zot.wait("^queued ")
    zot.key("Up")
    zot.wait(r"^❯ \[pasted #1 · 30 lines\]$")
    zot.type("and this")
    zot.key("Enter")
    zot.wait("^queued ")
    world.model.open(gate)
    zot.wait("^thanks$")
    assert r"pasted 1\npasted 2\n" in world.model.seen()
    assert "pasted 30and this" in world.model.seen()


# --- 9: interrupting --------------------------------------------------------------------------------------------------


@journey(9)
def test_esc_interrupts_and_holds_the_queue_and_keeps_the_draft(world, zot):
    gate = world.model.gate()
    world.model.says([TextPart(["half of a "]), gate], "the rest", "the answer to what waited")
    say(zot, "first")
    zot.wait("^half of a$")
    say(zot, "waits")
    zot.wait("^queued  waits$")
    zot.type("my draft")
    zot.wait("^❯ my draft$")
    zot.key("Escape")
    zot.wait("interrupted$")
    zot.wait("^paused .*/continue")
    zot.wait("^queued  waits$")
    zot.wait("^❯ my draft$")
    assert not re.search(WORKING, zot.screen())
    lines = lines_of(zot)
    assert lines.count("half of a") == 1
    assert lines.index("half of a") < next(at for at, line in enumerate(lines) if line.endswith("interrupted"))
    assert len(world.model.requests) == 1
    zot.key("C-u")
    say(zot, "/continue")
    zot.wait("^the answer to what waited$")
    assert "paused" not in zot.screen()
    assert lines_of(zot).count("❯ waits") == 1


@journey(9)
def test_esc_while_nothing_runs_does_nothing(world, zot):
    world.model.says("hello")
    zot.type("hi")
    zot.wait("^❯ hi$")
    zot.key("Escape")
    zot.type("!")
    zot.wait("^❯ hi!$")
    zot.key("Enter")
    zot.wait("^hello$")
    assert "interrupted" not in zot.history()


@journey(9)
def test_esc_at_a_question_interrupts_too(world):
    world.model.says([TextPart(["I run it."]), CallPart("bash", {"command": "touch made"})])
    zot = world.zot("--mode", "ask")
    zot.wait("openai/scripted")
    say(zot, "make it")
    zot.wait("bash needs you")
    zot.type("my draft")
    zot.key("Escape")
    zot.wait("interrupted$")
    zot.until(lambda: "needs you" not in zot.screen(), "an end of the question")
    assert not (world.cwd / "made").exists()


@journey(19)
def test_a_question_that_was_put_off_is_asked_again(world):
    world.model.says([CallPart("bash", {"command": "touch made"})], "done with it")
    zot = world.zot("--mode", "ask")
    zot.wait("openai/scripted")
    say(zot, "make it")
    zot.wait("bash needs you")
    zot.key("Tab")
    zot.until(lambda: "tab later" not in zot.screen(), "an end of the dialog")
    zot.wait("^needs you · ")
    say(zot, "/approvals")
    zot.wait("tab later")
    decide(zot, "y", "^done with it$")
    assert (world.cwd / "made").exists()


# --- 10: leaving ------------------------------------------------------------------------------------------------------


@journey(10)
def test_ctrl_c_empties_the_editor_and_a_second_one_leaves(world):
    shell = world.shell()
    say(shell, "zot")
    shell.wait("openai/scripted")
    shell.type("a draft that is not wanted")
    shell.wait("not wanted$")
    shell.key("C-c")
    shell.wait("^ctrl\\+c again to leave")
    shell.wait(PROMPT)
    shell.key("C-c")
    shell.wait(SHELL)
    assert "not wanted" not in shell.history()
    assert "again to leave" not in shell.history()


@journey(10)
def test_one_ctrl_c_is_forgotten_after_a_moment(zot):
    zot.key("C-c")
    zot.wait("again to leave")
    zot.wait("openai/scripted")
    assert zot.exit_code is None
    assert "again to leave" not in zot.history()


@journey(10)
def test_ctrl_c_before_and_after_a_command_does_not_leave(zot):
    zot.key("C-c")
    zot.wait("again to leave")
    zot.type("/help")
    zot.key("Enter", "C-c")
    zot.wait("/compact", where="history")
    zot.wait("again to leave")
    zot.wait("openai/scripted")
    assert zot.exit_code is None


@journey(10)
def test_leaving_a_run_prints_a_command_that_returns_to_it(world):
    gate = world.model.gate()
    world.model.says([TextPart(["before\n\n"]), gate, TextPart(["and after"])])
    shell = world.shell()
    say(shell, "zot")
    shell.wait("openai/scripted")
    say(shell, "write a poem")
    shell.wait("^before$")
    shell.key("C-c")
    shell.wait("again to leave; the run continues")
    shell.key("C-c")
    shell.wait(SHELL)
    back = shell.wait("the run continues; return with: (zot --session .+)$")[1]
    world.model.open(gate)
    again = world.shell()
    say(again, back)
    again.wait("^and after$")
    again.wait(PROMPT)
    assert not re.search(WORKING, again.screen())
