"""Journeys of writing a prompt."""

import json
import re
import subprocess

import pytest

from tests.zottui.journeys.table import journey
from tests.zottui.journeys.test_talk import WORKING, say
from tests.zottui.journeys.world import PROMPT
from zotd.testing.script import TextPart


@pytest.fixture
def zot(world):
    return begun(world)


def begun(world, **options):
    """`zot` with its session."""
    zot = world.zot(**options)
    zot.wait("openai/scripted")
    return zot


def prompt_of(world):
    """What the model was asked last."""
    return world.model.requests[-1].body["messages"][-1]["content"]


# --- 11: commands -----------------------------------------------------------------------------------------------------

NOTES = """\
echo '{"type":"hello","name":"notes","version":"1.0.0","capabilities":["commands"]}'
echo '{"type":"register_command","name":"clearnotes","description":"throw the notes away"}'
echo '{"type":"ready"}'
while IFS= read -r frame; do
    case $frame in
    *command_invoked*)
        id=$(printf '%s' "$frame" | sed 's/.*"id": *"\\([^"]*\\)".*/\\1/')
        echo '{"type":"command_response","id":"'"$id"'","action":"display","display":"the notes are gone"}'
        ;;
    esac
done"""


def install_notes(world):
    """An extension with a command whose name begins with one of ours."""
    folder = world.home / "extensions" / "notes"
    folder.mkdir(parents=True)
    manifest = {"name": "notes", "version": "1.0.0", "language": "shell", "exec": "./notes.sh"}
    (folder / "extension.json").write_text(json.dumps(manifest))
    script = folder / "notes.sh"
    script.write_text(f"#!/bin/sh\n{NOTES}\n")
    script.chmod(0o755)


@journey(11)
def test_a_slash_lists_commands_with_what_they_do_and_where_they_come_from(world, zot):
    install_notes(world)
    say(zot, "/reload-ext")
    zot.until(lambda: _listed(zot, "/clearn", r"^/clearnotes +throw the notes away +\[notes\]$"), "the command")
    zot.type("/")
    zot.wait("^/clear +empty the model's context")
    zot.wait("^/compact +summarise")


def _listed(zot, typed, line):
    """Whether the popup has this line; an extension may still be starting."""
    zot.type(typed)
    zot.wait(f"^❯ {typed}$")
    found = re.search(line, zot.screen(), re.MULTILINE)
    zot.key("C-u")
    zot.wait(PROMPT)
    return found


@journey(11)
def test_an_exact_name_wins_and_enter_takes_the_best_of_the_others(world):
    install_notes(world)
    zot = begun(world)
    zot.until(lambda: _listed(zot, "/clearn", "^/clearnotes "), "the command")
    zot.type("/clear")
    zot.wait("^/clearnotes")
    zot.key("Enter")
    zot.wait("the model's context is empty")
    zot.type("/clearn")
    zot.wait("^/clearnotes")
    zot.key("Enter")
    zot.wait("the notes are gone$")
    zot.type("/cle")
    zot.wait("^/clear ")
    zot.key("Enter")
    zot.until(lambda: zot.history().count("the model's context is empty") == 2, "a second time")
    assert world.model.requests == []


@journey(11)
def test_a_command_that_means_nothing_alone_waits_for_the_rest(zot):
    zot.type("/renam")
    zot.wait("^/rename ")
    zot.key("Enter")
    zot.wait("^❯ /rename$")
    say(zot, "the new name")
    zot.wait("^the new name · openai/scripted")


# --- 12: typing errors ------------------------------------------------------------------------------------------------


@journey(12)
def test_an_unknown_command_suggests_the_nearest_and_the_model_is_asked_nothing(world, zot):
    say(zot, "/modle")
    zot.wait("unknown command /modle; did you mean /model\\?")
    say(zot, "/xyzzy")
    zot.wait("unknown command /xyzzy; /help lists the commands")
    zot.wait(PROMPT)
    assert world.model.requests == []


@journey(12)
def test_a_path_and_two_slashes_are_prompts(world, zot):
    world.model.says("one", "two")
    say(zot, "/usr/bin is full")
    zot.wait("^one$")
    assert prompt_of(world) == "/usr/bin is full"
    say(zot, "//modle is misspelt")
    zot.wait("^two$")
    assert prompt_of(world) == "/modle is misspelt"


# --- 13: files --------------------------------------------------------------------------------------------------------


def big_repository(folder):
    """20,000 files, most of which have something to do with settings."""
    for place in range(200):
        directory = folder / f"package_{place}" / "settings"
        directory.mkdir(parents=True)
        for number in range(100):
            (directory / f"set_{number}.py").touch()
    (folder / "package_7" / "settings.py").touch()
    (folder / "settings.py").touch()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


@journey(13)
def test_the_file_of_that_name_is_first_and_the_model_sees_its_path(world):
    big_repository(world.cwd)
    world.model.says("seen")
    zot = begun(world)
    zot.type("explain @set")
    zot.wait(r"^settings\.py\n(.*\n)*❯ explain @set$")
    greeting, first, *_ = [line for line in zot.screen().split("\n") if line]
    assert (greeting[:6], first) == ("· zot ", "settings.py")
    zot.key("Enter")
    zot.wait(r"^❯ explain @settings\.py$")
    say(zot, "please")
    zot.wait("^seen$")
    assert prompt_of(world).startswith("explain @settings.py please")


# --- 14: several lines ------------------------------------------------------------------------------------------------


@journey(14)
def test_shift_enter_alt_enter_and_ctrl_j_make_new_lines_and_enter_sends(world, zot):
    world.model.says("five lines", "two")
    zot.type("one")
    zot.send_hex("1b", "5b", "31", "33", "3b", "32", "75")  # shift-enter, as CSI u
    zot.type("two")
    zot.send_hex(*(f"{byte:02x}" for byte in b"\x1b[27;2;13~"))  # shift-enter, as xterm writes it
    zot.type("three")
    zot.key("M-Enter")
    zot.type("four")
    zot.key("C-j")
    zot.type("five")
    zot.wait("^❯ one\n  two\n  three\n  four\n  five$")
    assert world.model.requests == []
    zot.key("Enter")
    zot.wait("^five lines$")
    assert prompt_of(world) == "one\ntwo\nthree\nfour\nfive"
    zot.type("behind a backslash\\")
    zot.key("Enter")
    say(zot, "goes on")
    zot.wait("^two$")
    assert prompt_of(world) == "behind a backslash\ngoes on"


# --- 15: pasting ------------------------------------------------------------------------------------------------------

PASTED = "\n".join(f"pasted line {number}" for number in range(1, 61))


@journey(15)
def test_a_long_paste_is_a_placeholder_and_the_model_sees_all_of_it(world, zot):
    world.model.says("read")
    zot.type("look: ")
    zot.paste(PASTED)
    zot.wait(r"^❯ look: \[pasted #1 · 60 lines\]$")
    assert world.model.requests == []
    say(zot, " done")
    zot.wait("^read$")
    assert prompt_of(world) == f"look: {PASTED} done"


@journey(15)
def test_the_external_editor_contains_the_paste_and_the_last_reply(world):
    world.model.says("the last reply", "read")
    editor = world.folder / "editor"
    editor.write_text('#!/bin/sh\ncp "$1" "$1.seen" && mv "$1.seen" "$SEEN"\nsed -i "s/pasted line 60/changed/" "$1"\n')
    editor.chmod(0o755)
    seen = world.folder / "seen"
    zot = begun(world, EDITOR=str(editor), SEEN=str(seen))
    say(zot, "hi")
    zot.wait("^the last reply$")
    zot.paste(PASTED)
    zot.wait("60 lines")
    zot.key("C-g")
    zot.wait("changed$")
    shown = seen.read_text()
    assert shown.startswith(PASTED)
    assert "# the last reply" in shown
    zot.key("Enter")
    zot.wait("^read$")
    assert prompt_of(world) == PASTED.replace("pasted line 60", "changed")


@journey(15)
def test_a_placeholder_is_deleted_as_one_thing(zot):
    zot.type("look: ")
    zot.paste(PASTED)
    zot.wait("60 lines")
    zot.key("BSpace")
    zot.wait("^❯ look:$")


# --- 16: earlier prompts ----------------------------------------------------------------------------------------------


@journey(16)
def test_ctrl_r_finds_a_prompt_of_another_session(world, zot):
    say(zot, "the first foo")
    zot.wait("nothing more to say")
    say(zot, "the second foo")
    zot.until(lambda: zot.screen().count("nothing more to say") == 2, "a second answer")
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    other = begun(world, cwd=elsewhere)
    other.type("my draft")
    other.wait("^❯ my draft$")
    other.key("C-r")
    other.wait("^search:")
    other.type("foo")
    other.wait("^the second foo .*work.*\nthe first foo ")
    other.key("Escape")
    other.wait("^❯ my draft$")
    assert "search:" not in other.screen()
    other.key("C-r")
    other.wait("^search:")
    other.type("foo")
    other.wait("^search: foo.*\nthe second foo ")
    other.key("Enter")
    other.wait("^❯ the second foo$")
    assert len(world.model.requests) == 2


@journey(16)
def test_up_goes_through_the_prompts_of_the_session_and_down_back_to_the_draft(world, zot):
    world.model.says("one", "two")
    say(zot, "first")
    zot.wait("^one$")
    say(zot, "second")
    zot.wait("^two$")
    zot.type("draft")
    for key, shown in (("Up", "second"), ("Up", "first"), ("Down", "second"), ("Down", "draft")):
        zot.key(key)
        zot.wait(rf"^❯ {shown}\n[^\n]*openai/scripted")


# --- 17: vi -----------------------------------------------------------------------------------------------------------


@journey(17)
def test_vi_begins_in_insert_and_shows_its_mode(world):
    world.configure(terminal={"editing_mode": "vi"})
    zot = begun(world)
    zot.wait("^-- INSERT -- ")
    zot.type("a line of text")
    zot.wait("^❯ a line of text$")
    zot.key("Escape")
    zot.wait("^-- NORMAL -- ")
    zot.type("dd")
    zot.wait(PROMPT)
    zot.type("ianother")
    zot.wait("^❯ another$")
    zot.wait("^-- INSERT -- ")


@journey(17)
def test_in_vi_the_first_esc_is_for_vi_and_the_second_interrupts(world):
    gate = world.model.gate()
    world.model.says([TextPart(["begun\n\n"]), gate, TextPart(["ended"])])
    world.configure(terminal={"editing_mode": "vi"})
    zot = begun(world)
    say(zot, "go")
    zot.wait("^begun$")
    zot.key("Escape")
    zot.wait("^-- NORMAL -- ")
    assert re.search(WORKING, zot.screen())
    zot.key("Escape")
    zot.wait("interrupted$")
    assert "ended" not in zot.history()
