"""What a hostile daemon, terminal, tool or bug does to the client: it goes on, or it ends in order."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.zottui.journeys.world import PROMPT, ZOT
from tests.zottui.journeys.world import world as made
from tests.zottui.tmux import Tmux
from zotd.client.blocking import connect
from zotd.client.options import hello


@pytest.fixture
def world(tmp_path):
    with made(tmp_path) as one:
        yield one


BUGS = {
    "task": ("zottui.key_actions", "view", "C-t"),
    "key": ("zottui.key_actions", "Overview", "F2"),
}


@pytest.mark.parametrize("where", BUGS)
def test_a_bug_ends_the_client_with_a_sentence_the_terminal_restored_and_the_draft_kept(world, where):
    module, name, key = BUGS[where]
    program = world.folder / "buggy.py"
    program.write_text(
        f"import sys, {module} as broken\n"
        "def fails(*_): raise KeyError('a bug')\n"
        f"broken.{name} = fails\n"
        "from zottui.__main__ import main\nsys.exit(main([]))\n"
    )
    shell = world.shell()
    shell.type(f"{sys.executable} {program}; echo ended $?; stty -a")
    shell.key("Enter")
    shell.wait(PROMPT)
    shell.wait("openai/scripted")
    shell.type("a draft")
    shell.wait("^❯ a draft$")
    shell.key(key)
    shell.wait("^ended 1$", where="history")
    log = world.home / "logs" / "terminal.log"
    shell.wait(f"^this is a bug in zot, the session is not affected: KeyError: 'a bug'.*{log}$", where="history")
    shell.wait(r"(?<!-)\bicanon\b", where="history")
    assert "Traceback" not in shell.history()
    assert "Traceback" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    world.zot().wait("^❯ a draft$")


def test_leaving_does_not_wait_for_a_hanging_daemon(world):
    os.kill(world.daemon.pid, signal.SIGSTOP)
    try:
        zot = world.zot()
        zot.wait("connecting…")
        zot.key("C-d")
        zot.until(lambda: zot.exit_code is not None, "the end")
    finally:
        os.kill(world.daemon.pid, signal.SIGCONT)


def test_pressing_ctrl_c_too_often_cuts_nothing(world):
    zot = world.zot()
    zot.wait(PROMPT)
    zot.key(*["C-c"] * 6)
    zot.until(lambda: zot.exit_code is not None, "the end")
    assert zot.exit_code == 0


def test_a_stopped_daemon_is_not_started_and_a_line_says_what_to_do(world):
    zot = world.zot()
    zot.wait(PROMPT)
    zot.wait("openai/scripted")
    world.daemon.end()
    zot.wait(r"^· warning: zotd is not running: (.|\n)*\(zotctl start\)", where="history")
    assert not Path(world.daemon.place.socket).exists()
    world.daemon.start()
    zot.until(lambda: "reconnecting…" not in zot.screen(), "the connection")


def test_a_failed_restart_of_the_daemon_is_reported_with_its_reason(world):
    zot = world.zot()
    zot.wait(PROMPT)
    zot.wait("openai/scripted")
    (world.home / "config.toml").write_text("= broken")
    os.kill(world.daemon.pid, signal.SIGKILL)
    world.daemon.wait()
    zot.wait(
        r"^· warning: cannot start zotd:(.|\n)*config.toml\s+is\s+not\s+valid\s+TOML(.|\n)*what\s+you\s+send\s+waits",
        where="history",
    )


def test_a_session_that_is_gone_when_the_connection_comes_back_ends_the_client(world):
    zot = world.zot()
    zot.wait(PROMPT)
    zot.wait("openai/scripted")
    session = world.call("session.list")["sessions"][0]["id"]
    with connect(world.daemon.place.socket) as connection:
        hello(connection, "other", role="admin")
        connection.call("session.delete", {"session": session})
    os.kill(world.daemon.pid, signal.SIGKILL)
    world.daemon.wait()
    zot.until(lambda: zot.exit_code is not None, "the end")
    assert zot.exit_code == 1
    assert f'zot: no session "{session}"' in zot.history()


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_a_client_that_was_stopped_from_outside_has_its_keys_again_and_erases_nothing(world, number):
    folder, env = world.cwd, world.env | {"PS1": "$ "}
    with Tmux(["bash", "--norc", "-i"], folder=folder, env=env) as shell:
        shell.type(" ".join(map(str, ZOT)))
        shell.key("Enter")
        shell.wait(PROMPT)
        shell.type("draft")
        shell.wait("^❯ draft$")
        os.kill(foreground(shell), number)
        shell.wait("Stopped")
        shell.key("C-u")  # an answer of the terminal, which it has sent to the client and the shell has read
        shell.type("echo from the shell")
        shell.key("Enter")
        shell.wait("^from the shell$")
        shell.type("fg")
        shell.key("Enter")
        shell.wait("^❯ draft$")
        shell.key("C-a")
        shell.type("my ")
        shell.wait("^❯ my draft$")
        assert "from the shell" in shell.screen()


def foreground(shell):
    """The process that has the terminal."""
    with Path(f"/proc/{shell.ask('#{pane_pid}')}/stat").open(encoding="ascii") as stat:
        return int(stat.read().rpartition(")")[2].split()[5])


def test_a_paste_of_four_megabytes_is_there_at_once(world):
    zot = world.zot()
    zot.wait(PROMPT)
    zot.paste("line of text\n" * 300_000)
    zot.type("behind it")
    zot.wait(r"\[pasted #1 · 300000 lines\]behind it$")


def test_characters_that_turn_text_around_are_seen_in_the_editor_and_sent_as_they_are(world):
    zot = world.zot()
    zot.wait(PROMPT)
    zot.paste("a\u202egpj.exe")
    zot.wait(r"^❯ a<U\+202E>gpj\.exe$")
    zot.key("BSpace", "Home", "Right", "Right", "Left")
    zot.type("x")
    zot.wait(r"^❯ ax<U\+202E>gpj\.ex$")
