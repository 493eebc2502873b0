"""The plain chat on a real terminal, when its daemon dies, stops, or cuts it."""

import os
import signal

import pytest

from tests.zottui.plain.terminal import chat


@pytest.fixture
def talk(live):
    """A chat in a session of its own, at its first prompt."""
    flags = ("--provider", "ollama", "--model", "m", "--base-url", live.model("purple", "green"))
    with chat(live.cwd, "--new", *flags, env=live.shell.env) as screen:
        screen.until("> ")
        yield screen
    live.zotctl("stop")


def test_the_chat_continues_with_a_new_daemon_after_a_kill(live, talk):
    talk.type("one\n")
    assert talk.until("> ").endswith("zot: purple\n")
    os.kill(live.daemon.pid, signal.SIGKILL)
    assert talk.until("> ") == "(lost the connection to zotd; reconnecting)\n(reconnected)\n"
    talk.type("two\n")
    assert talk.until("> ").endswith("zot: green\n")


def test_a_run_that_died_with_the_daemon_is_reported_with_how_to_continue(live):
    os.mkfifo(live.cwd / "go")
    call = {"type": "call", "name": "bash", "args": {"command": "echo | tee go; cat go"}}
    flags = ("--provider", "ollama", "--model", "m", "--base-url", live.scripted({"steps": [call]}))
    with chat(live.cwd, *flags, "go", env=live.shell.env) as screen:
        (live.cwd / "go").read_text()  # it runs
        os.kill(live.daemon.pid, signal.SIGKILL)
        shown = screen.until("> ")
    assert "reconnecting)\n(reconnected)\n(a run stopped before it was done: /continue resumes it" in shown
    live.zotctl("stop")


def test_when_it_is_stopped_it_leaves_with_the_way_back_and_starts_none(live, talk):
    assert live.zotctl("stop")[0] == 0
    code, rest = talk.end()
    assert code == 0
    assert rest.startswith("(lost the connection to zotd; reconnecting)\n(zotd was stopped)\nthe session is kept; ")
    assert live.zotctl("ping")[0] != 0
