"""Journeys 18 to 20 and 23: what the model does and thinks, and what a person has to say to that."""

import json
import re

import pytest

from tests.zottui.journeys.deciding import decide
from tests.zottui.journeys.table import journey
from tests.zottui.journeys.world import PROMPT
from zotd.testing.script import CallPart, TextPart, ThinkingPart

LINES = "".join(f"line {number}\n" for number in range(1, 41))

EDIT = CallPart("edit", {"path": "a.py", "edits": [{"oldText": "line 20\n", "newText": "line twenty\nand more\n"}]})

ASKS = "--mode", "ask"


def rows_between(screen, first, last):
    """The rows from the one that matches `first` up to the one before `last`."""
    rows = screen.split("\n")
    start = next(at for at, row in enumerate(rows) if re.search(first, row))
    end = next(at for at, row in enumerate(rows) if at > start and re.search(last, row))
    return [row for row in rows[start:end] if row]


@pytest.fixture
def source(world):
    path = world.cwd / "a.py"
    path.write_text(LINES)
    return path


def ask(zot, words="go"):
    zot.wait(PROMPT)
    zot.type(words)
    zot.key("Enter")


# --- 18 ----------------------------------------------------------------------------------------------------------


@journey(18)
def test_a_card_has_one_line_about_the_call_and_at_most_eight_of_what_came_of_it(world, source):
    world.model.says([CallPart("read", {"path": "a.py"}), CallPart("bash", {"command": "seq 120"})], "all done")
    zot = world.zot()
    ask(zot)
    zot.wait("^all done$")
    assert rows_between(zot.screen(), "^● read", "^● bash") == ["● read  a.py  40 lines"]
    head, *body = rows_between(zot.screen(), "^● bash", "^all done$")
    assert head == "● bash  seq 120"
    assert body[3] == "  … 112 more (ctrl+t)"
    assert len(body) == 9
    assert (body[0], body[-1]) == ("  1", "  120")


@journey(18)
def test_an_edit_shows_its_lines_with_signs_and_numbers(world, source):
    world.model.says([EDIT], "all done")
    zot = world.zot()
    ask(zot)
    zot.wait("^all done$")
    assert rows_between(zot.screen(), "^● edit", "^all done$") == [
        "● edit  a.py  +2  -1",
        "  19   line 19",
        "  20 - line 20",
        "  20 + line twenty",
        "  21 + and more",
        "  22   line 21",
    ]


@journey(18)
def test_a_call_that_runs_shows_the_end_of_its_output(world):
    world.model.says([CallPart("bash", {"command": "seq 40; cat gate"})], "all done")
    world.fifo("gate")
    zot = world.zot()
    ask(zot)
    zot.wait("^  40$")
    assert "  36\n  37\n  38\n  39\n  40\n" in zot.screen()
    assert not re.search("^  35$", zot.screen(), re.MULTILINE)
    world.feed("gate", "late\n")
    zot.wait("^  late$")
    zot.wait("^all done$")
    zot.until(lambda: not re.search("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", zot.screen()), "the end of the run")


@journey(18)
def test_while_a_call_runs_only_the_row_that_turns_is_drawn(world):
    world.model.says([CallPart("bash", {"command": "echo out; cat gate"})], "all done")
    world.fifo("gate")
    zot = world.zot()
    ask(zot)
    zot.wait("^  out$")
    zot.wait("cat gate  1s$")
    before = len(zot.raw())
    zot.wait("cat gate  2s$")
    drawn = zot.raw()[before:]
    assert b"echo out" in drawn
    assert not [part for part in (b"\x1b[J", b"  out", "❯".encode()) if part in drawn]
    world.feed("gate", "\n")
    zot.wait("^all done$")


@journey(18)
def test_a_command_that_fails_says_how(world):
    world.model.says([CallPart("bash", {"command": "echo no; exit 3"})], "all done")
    zot = world.zot()
    ask(zot)
    zot.wait("^all done$")
    assert rows_between(zot.screen(), "^● bash", "^all done$") == ["● bash  echo no; exit 3  exit 3", "  no"]


# --- 19 ----------------------------------------------------------------------------------------------------------


COLOURED = r"printf '\033[31mred\033[0m plain \033]0;evil\007\033[1;32mgreen\nalso\033[m\n'"


@journey(18)
def test_what_a_command_prints_keeps_its_colours_and_nothing_else(world):
    world.model.says([CallPart("bash", {"command": COLOURED})], "all done")
    zot = world.zot()
    ask(zot)
    zot.wait("^all done$")
    shown = next(
        line
        for line in zot.screen(colours=True).split("\n")
        if "red" in line and "plain" in line and "printf" not in line
    )
    assert re.search(r"\x1b\[31mred\x1b\[", shown)
    assert re.search(r"\x1b\[(0;)?1m[^a-z]*32m(\x1b\[49m)?green", shown)
    assert "^[]0;evil^G" in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "evil" not in zot.ask("#{pane_title}")


@journey(18)
def test_without_colours_what_a_command_prints_has_none(world):
    world.model.says([CallPart("bash", {"command": COLOURED})], "all done")
    zot = world.zot(NO_COLOR="1")
    ask(zot)
    zot.wait("^zot: all done$")
    assert "red plain ^[]0;evil^Ggreen" in zot.screen()
    assert "\x1b[31m" not in zot.screen(colours=True)


@journey(19)
def test_an_edit_is_shown_as_a_diff_before_it_is_made(world, source):
    world.model.says([EDIT], "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("tab later")
    assert rows_between(zot.screen(), "^● edit", "^y once") == [
        "● edit a.py needs you",
        "19   line 19",
        "20 - line 20",
        "20 + line twenty",
        "21 + and more",
        "22   line 21",
    ]
    assert source.read_text() == LINES
    decide(zot, "y", "^all done$")
    assert "line twenty" in source.read_text()
    assert zot.history().count("line twenty") == 1


@journey(19)
def test_always_shows_the_rule_and_saves_it_only_then(world, source):
    config = world.home / "config.toml"
    world.model.says([EDIT], "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("tab later")
    decide(zot, "a", "save this rule")
    assert f'match = "{source}"' in zot.screen()
    assert "[[rules]]" not in config.read_text()
    decide(zot, "y", "^all done$")
    assert f'match = "{source}"' in config.read_text()


@journey(19)
def test_a_rule_that_was_looked_at_need_not_be_saved(world, source):
    world.model.says([EDIT], "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("tab later")
    decide(zot, "a", "save this rule")
    decide(zot, "n", "tab later")
    decide(zot, "n", "^all done$")
    assert "[[rules]]" not in (world.home / "config.toml").read_text()
    assert source.read_text() == LINES


@journey(19)
def test_what_begins_with_the_same_words_is_allowed_and_not_asked_about_again(world):
    calls = [[CallPart("bash", {"command": f"echo {word}"})] for word in ("one -n", "two")]
    world.model.says(*calls, "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("tab later")
    decide(zot, "a", "1-3 which")
    zot.type("2")
    zot.wait("allow this for the rest of the session")
    assert rows_between(zot.screen(), "1 only this command", "^y allow it") == [
        "  1 only this command  always",
        "❯ 2 echo *  for this session",
        "  3 echo *  always",
        "allow this for the rest of the session?",
    ]
    zot.type("y")
    zot.wait("^all done$")
    assert zot.history().count("zot has allowed it") <= 1
    assert "[[rules]]" not in (world.home / "config.toml").read_text()


@journey(19)
def test_all_edits_of_the_session_are_allowed_at_once(world, source):
    new = [CallPart("write", {"path": "new.txt", "content": "n"})]
    world.model.says([EDIT], new, "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("tab later")
    decide(zot, "a", "2 every edit and write in ")
    zot.type("2")
    zot.wait("y allow it")
    zot.type("y")
    zot.wait("^all done$")
    assert (world.cwd / "new.txt").read_text() == "n"


def test_shift_tab_changes_the_mode_and_asks_before_it_is_yolo(world):
    zot = world.zot(*ASKS)
    zot.wait("· ask ·")
    zot.type("a draft")
    zot.wait("^❯ a draft")
    zot.key("BTab")
    zot.wait("· read-only ·")
    zot.key("BTab")
    zot.wait("without asking from now on")
    zot.key("n")
    zot.wait("· workspace ·")
    zot.key("BTab")
    zot.wait("· ask ·")
    zot.key("BTab")
    zot.wait("· read-only ·")
    zot.key("BTab")
    zot.wait("without asking from now on")
    zot.key("y")
    zot.wait("mode yolo")
    zot.until(lambda: "· yolo ·" in zot.screen() and "❯ a draft" in zot.screen(), "the draft, and the mode")


@journey(19)
def test_the_arguments_can_be_changed_before_they_run(world):
    world.model.says([CallPart("bash", {"command": "touch wrong"})], "all done")
    editor = world.script("editor", 'sed -i s/wrong/right/ "$1"')
    zot = world.zot(*ASKS, EDITOR=editor)
    ask(zot)
    zot.wait("tab later")
    decide(zot, "e", '"command": "touch right"')
    decide(zot, "y", "^all done$")
    assert (world.cwd / "right").exists()
    assert not (world.cwd / "wrong").exists()


@journey(19)
def test_text_typed_while_a_question_appears_stays_a_draft(world):
    gate = world.model.gate()
    world.model.says([gate, CallPart("bash", {"command": "touch made"})], "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("working…")
    zot.type("my ")
    world.model.open(gate)
    zot.wait("tab later")
    zot.type("yes")
    zot.wait("^❯ my yes")
    assert not (world.cwd / "made").exists()


@journey(19)
def test_of_several_calls_only_the_one_that_runs_has_a_clock(world):
    calls = [CallPart("bash", {"command": f"cat gate{number}"}) for number in (1, 2, 3)]
    world.model.says(calls, "all done")
    for number in (1, 2, 3):
        world.fifo(f"gate{number}")
    zot = world.zot()
    ask(zot)
    zot.wait(r"cat gate1  [1-9]s$")
    zot.wait("^○ bash  cat gate2  waits$")
    world.feed("gate1", "one\n")
    zot.wait(r"^[^○●] bash  cat gate2  \d+s$")
    zot.wait("^○ bash  cat gate3  waits$")
    world.feed("gate2", "two\n")
    world.feed("gate3", "three\n")
    zot.wait("^all done$")


@journey(19)
def test_a_question_says_how_many_calls_wait_behind_it(world):
    world.model.says([CallPart("bash", {"command": f"echo {number}"}) for number in (1, 2, 3)], "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("^● bash needs you  1 of 3")
    zot.wait("^○ bash  echo 3  waits$")
    assert "echo 2  waits" in zot.screen()
    decide(zot, "y", "1 of 2")
    decide(zot, "y", "^● bash needs you$")
    decide(zot, "y", "^all done$")


# --- 20 ----------------------------------------------------------------------------------------------------------


@journey(20)
def test_a_rejection_with_a_reason_reaches_the_model_and_changes_no_file(world, source):
    world.model.says([EDIT], "all done")
    zot = world.zot(*ASKS)
    ask(zot)
    zot.wait("tab later")
    decide(zot, "f", "^why not")
    zot.type("use tabs instead")
    zot.wait("use tabs instead")
    zot.key("Enter")
    zot.wait("^all done$")
    assert "use tabs instead" in json.dumps(world.model.requests[-1].messages[-1])
    assert source.read_text() == LINES
    assert zot.history().count("use tabs instead") == 1


# --- 23 ----------------------------------------------------------------------------------------------------------


@journey(23)
def test_thinking_is_counted_and_leaves_one_line(world):
    gate = world.model.gate()
    world.model.says([ThinkingPart(["a walrus, ", "perhaps?"]), gate, TextPart(["all done"])])
    zot = world.zot()
    ask(zot)
    zot.wait("thinking… [2-9]s")
    world.model.open(gate)
    zot.wait("^all done$")
    assert len(re.findall(r"^thought \d+s$", zot.history(), re.MULTILINE)) == 1
    assert "walrus" not in zot.history()


@journey(23)
def test_thinking_can_be_shown_and_hidden(world):
    for number in (1, 2):
        world.model.says([ThinkingPart([f"walrus {number}, ", "perhaps?"]), TextPart([f"done {number}"])])
    zot = world.zot()
    zot.wait(PROMPT)
    zot.type("/thinking show")
    zot.key("Enter")
    zot.wait("thinking is shown")
    ask(zot)
    zot.wait("^done 1$")
    assert zot.history().count("walrus 1, perhaps?") == 1
    zot.type("/thinking hide")
    zot.key("Enter")
    zot.wait("thinking is hidden")
    ask(zot)
    zot.wait("^done 2$")
    assert "walrus 2" not in zot.history()
