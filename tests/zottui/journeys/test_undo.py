"""A run changes files: `/undo` brings them back, `/redo` changes them again, and the user's own edits stay."""

import os
import signal

import pytest

from tests.needs import needs
from tests.zottui.journeys.world import PROMPT, rests
from zotd.testing.script import CallPart, TextPart


def type_line(zot, words):
    zot.wait(PROMPT)
    zot.type(words)
    zot.key("Enter")


def works(world, zot, command, answer, prompt="go"):
    """Have a run carry out a command."""
    world.model.says([CallPart("bash", {"command": command})], [TextPart([answer])])
    type_line(zot, prompt)
    zot.wait(answer)
    rests(zot)


@pytest.fixture
def work(world):
    """The directory of the session, without what tmux writes there."""
    needs("git")
    (world.cwd / ".gitignore").write_text(".gitignore\nzot-*\n")
    return world.cwd


def contents(work):
    return {path.name: path.read_text() for path in work.iterdir() if not path.name.startswith((".git", "zot-"))}


def test_undo_and_redo_of_what_a_run_did_leave_the_users_own_edit(world, work):
    (work / "a").write_text("one\n")
    zot = world.zot()
    works(world, zot, "echo two >> a && echo new > b", "changed both")
    (work / "mine").write_text("my own")
    type_line(zot, "/undo")
    zot.wait(r"undone: 2 files \(a, b\) as before", where="history")
    assert contents(work) == {"a": "one\n", "mine": "my own"}
    type_line(zot, "/redo")
    zot.wait(r"done again: 2 files \(a, b\)", where="history")
    assert contents(work) == {"a": "one\ntwo\n", "b": "new\n", "mine": "my own"}

    (work / "b").write_text("edited by me")
    type_line(zot, "/undo")
    zot.wait("b was changed since then", where="history")
    assert contents(work)["a"] == "one\ntwo\n"
    type_line(zot, "/undo --keep")
    zot.wait(r"undone: 1 file \(a\)", where="history")
    assert contents(work) == {"a": "one\n", "b": "edited by me", "mine": "my own"}

    world.model.says("I see")
    type_line(zot, "go on")
    zot.wait("I see")
    assert "has undone what an earlier run changed" in world.model.seen()


def test_a_turns_diff_is_printed_and_shown_in_the_viewer(world, work):
    (work / "a").write_text("one\n")
    zot = world.zot()
    works(world, zot, "echo two >> a", "changed a", "first prompt")
    works(world, zot, "echo new > b", "made b", "second prompt")
    type_line(zot, "/diff 1")
    zot.wait(r"1 file changed: a \+1 -0", where="history")
    zot.wait(r"\+two", where="history")
    zot.wait(PROMPT)
    zot.key("C-t")
    zot.wait("turn 2/2")
    zot.key("f")
    zot.wait(r"1 file changed: b \+1 -0")
    zot.key("q")
    zot.wait(r"\+new", where="history")


def test_rewind_asks_whether_the_files_go_back_too(world, work):
    zot = world.zot()
    works(world, zot, "echo 1 > a", "made a", "first prompt")
    works(world, zot, "echo 2 > b", "made b", "second prompt")
    type_line(zot, "/rewind")
    zot.wait("^rewind to before$")  # not the description of the command in the popup
    zot.key("Enter")  # the newest prompt
    zot.wait("the conversation only")
    zot.key("Down")
    zot.key("Enter")
    zot.wait(r"1 file \(b\) as at that message", where="history")
    zot.wait("^❯ second prompt$")
    assert contents(work) == {"a": "1\n"}
    zot.key("C-u")
    type_line(zot, "/rewind 1 --files")
    zot.wait(r"undone: 1 file \(a\)", where="history")
    zot.wait("^❯ first prompt$")
    assert contents(work) == {}


def test_a_run_is_undone_after_the_daemon_was_killed(world, work):
    (work / "a").write_text("one\n")
    zot = world.zot()
    works(world, zot, "echo two >> a", "changed a")
    os.kill(world.daemon.pid, signal.SIGKILL)
    world.daemon.wait()
    zot.wait("reconnecting…")
    zot.until(lambda: "reconnecting…" not in zot.screen(), "the connection")
    type_line(zot, "/undo")
    zot.wait(r"undone: 1 file \(a\)", where="history")
    assert contents(work) == {"a": "one\n"}


def test_an_undo_in_one_terminal_is_seen_in_the_other(world, work):
    first = world.zot()
    works(world, first, "echo new > b", "made b")
    second = world.zot("--continue")
    second.wait("made b", where="history")
    type_line(second, "/undo")
    for zot in (first, second):
        zot.wait(r"undone: 1 file \(b\)", where="history")
    assert contents(work) == {}
