"""Going on, and typing while a run is shown: the plain chat on a real terminal, in the real daemon."""

import os
import signal

import pytest

from tests.zottui.plain.terminal import chat

CALL = {"steps": [{"type": "call", "name": "bash", "args": {"command": "echo started; read < pipe"}}]}


def says(text):
    return {"steps": [{"type": "text", "deltas": [text]}]}


@pytest.fixture
def pipe(live):
    """A command that waits for this to be opened."""
    os.mkfifo(live.cwd / "pipe")
    return live.cwd / "pipe"


def talk(live, *words, url):
    flags = ("--provider", "ollama", "--model", "m", "--base-url", url)
    return chat(live.cwd, *flags, *words, env=live.shell.env | {"NO_COLOR": "1"})


def test_a_line_that_is_typed_while_a_run_is_shown_joins_it(live, pipe):
    with talk(live, "go", url=live.scripted(CALL, says("to the left, then"))) as screen:
        screen.until("* bash")
        screen.type("rather to the left\n")
        screen.until("rather to the left")
        wait_for(live, "steer")
        pipe.write_text("")
        assert "to the left, then" in screen.until("> ")
        assert asked(live) == ["go", "rather to the left"]


def test_a_queued_line_runs_and_is_shown_after_the_current_run(live, pipe):
    with talk(live, "go", url=live.scripted(CALL, says("first"), says("second"))) as screen:
        screen.until("* bash")
        screen.type("/queue and then this\n")
        wait_for(live, "queue")
        pipe.write_text("")
        shown = screen.until("> ")
        assert shown.index("first") < shown.index("second")
        assert asked(live) == ["go", "and then this"]


def test_after_ctrl_c_the_chat_reports_the_held_queue_and_continues_on_command(live, pipe):
    with talk(live, "go", url=live.scripted(CALL, says("first"), says("second"))) as screen:
        screen.until("* bash")
        screen.type("/queue and then this\n")
        screen.until("(queued")  # else the interruption would take it back, as long as it is not accepted
        screen.interrupt()
        screen.until("/continue resumes")
        screen.until("> ")
        screen.type("/continue\n")
        screen.until("first")
        screen.until("second")
        screen.until("> ")


@pytest.fixture
def cut(live):
    """A session that a crash has cut while the model was answering."""
    hangs = {"steps": [{"type": "text", "deltas": ["Half a "]}, {"type": "hang"}]}
    url = live.scripted(hangs, says("whole"), says("more"))
    with talk(live, "go", url=url) as screen:
        screen.until("Half a")
    live.daemon.end(signal.SIGKILL)
    live.daemon.start()


def resumed(live, *words):
    return chat(live.cwd, "--continue", *words, env=live.shell.env | {"NO_COLOR": "1"})


def test_a_chat_that_comes_back_to_a_session_that_was_cut_says_so_and_how_to_go_on(live, cut):
    with resumed(live) as screen:
        assert "/continue resumes" in screen.until("> ")
        screen.type("/continue\n")
        assert "whole" in screen.until("> ")
        screen.type("/continue\n")
        assert "nothing to continue" in screen.until("> ")


def test_with_a_prompt_on_the_command_line_a_held_session_continues_first(live, cut):
    with resumed(live, "and more") as screen:
        shown = screen.until("more\n")
        assert "whole" in shown
        screen.until("> ")
        assert asked(live) == ["go", "and more"]


def only_session(connection):
    (session,) = connection.call("session.list")["sessions"]
    return session["id"]


def wait_for(live, mode):
    """Until an input waits that was sent in this mode."""
    with live.connect() as connection:
        session = only_session(connection)
        snapshot = connection.call("attach", session=session)
        items = snapshot["queue"]
        while [item["mode"] for item in items] != [mode]:
            items = next(event["items"] for event in connection.events(10) if event["type"] == "queue_changed")


def asked(live):
    with live.connect() as connection:
        messages = connection.call("get_messages", session=only_session(connection))["messages"]
    return [message["content"][0]["text"] for message in messages if message["role"] == "user"]
