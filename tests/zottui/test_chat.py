"""The plain chat on a real terminal, against a fake daemon."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import zotd
from zotd.testing.fake_daemon import running
from zotd.wire import events


class Terminal:
    """A chat, and what is on its screen."""

    def __init__(self, process, screen):
        self.process = process
        self.screen = screen
        self.seen = ""

    def type(self, text):
        os.write(self.screen, text.encode())

    def until(self, text):
        """Read until `text` is there; what came up to it."""
        while text not in self.seen:
            self.seen += os.read(self.screen, 4096).decode().replace("\r\n", "\n")
        before, _, self.seen = self.seen.partition(text)
        return before

    def end(self):
        """The exit code, and the rest of the screen."""
        code = self.process.wait(5)
        os.set_blocking(self.screen, False)
        try:
            while data := os.read(self.screen, 4096):
                self.seen += data.decode().replace("\r\n", "\n")
        except OSError:  # nothing more, or the other side is closed
            pass
        return code, self.seen


@pytest.fixture
def daemon(tmp_path):
    with running(str(tmp_path / "zotd.sock")) as fake:
        yield fake


@contextmanager
def chat(folder, *args):
    screen, terminal = pty.openpty()
    env = {
        "ZOTD_SOCKET": str(folder / "zotd.sock"),
        "PYTHONPATH": str(Path(zotd.__file__).parent.parent),
        "PATH": os.environ["PATH"],
        "NO_COLOR": "1",
    }
    command = [sys.executable, "-m", "zotd.cli", *args]
    with subprocess.Popen(
        command, cwd=folder, env=env, start_new_session=True, stdin=terminal, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        try:
            yield Terminal(process, screen)
        finally:
            process.kill()
            os.close(screen)


def test_a_prompt_is_answered_and_ctrl_d_leaves_with_the_way_back(daemon, tmp_path):
    with chat(tmp_path) as terminal:
        terminal.until("> ")
        terminal.type("tool\n")
        assert terminal.until("> ") == "tool\nI look.\n* bash true\nlooked\n"
        terminal.type("\x04")
        code, rest = terminal.end()
    (session,) = daemon.sessions
    assert code == 0
    assert rest.strip() == f"the session stays; come back with: zot --session {session}"


def test_words_on_the_command_line_are_the_first_prompt(daemon, tmp_path):
    with chat(tmp_path, "say", "this", "--model", "m") as terminal:
        assert terminal.until("\n") == f"fake m in {tmp_path} (/help)"
        assert terminal.until("> ") == "say this\n"


def test_ctrl_c_ends_the_run_and_at_the_prompt_the_chat(daemon, tmp_path):
    with chat(tmp_path, "hang on") as terminal:
        terminal.until("on")
        terminal.process.send_signal(signal.SIGINT)
        assert "(aborted)" in terminal.until("> ")
        terminal.process.send_signal(signal.SIGINT)
        code, rest = terminal.end()
    assert code == 0
    assert "come back with" in rest


def test_what_others_do_is_shown_between_prompts(daemon, tmp_path):
    with chat(tmp_path) as terminal:
        terminal.until("> ")
        (session,) = daemon.sessions.values()
        daemon.do(lambda: session.show(events.Notice("info", "somebody was here")))
        assert terminal.until("> ") == "\nsomebody was here\n"


def test_the_commands(daemon, tmp_path):
    with chat(tmp_path) as terminal:
        terminal.until("> ")
        for typed, shown in [
            ("/help", "/exit"),
            ("/model fake-2", "fake-1"),
            ("/compact", "(compacted)"),
            ("/clear", "forgotten"),
            ("/nonsense", "there is no /nonsense"),
            ("/new", "(/help)"),
        ]:
            terminal.type(f"{typed}\n")
            assert shown in terminal.until("> ").removeprefix(typed)
        assert len(daemon.sessions) == 2
        terminal.type("/sessions\n")
        listed = terminal.until("> ")
        assert [line[:2] for line in listed.splitlines()[1:]] == ["* ", "  "]
        terminal.type("/exit\n")
        assert terminal.end()[0] == 0


def test_an_error_is_a_line_and_the_chat_goes_on(daemon, tmp_path):
    with chat(tmp_path) as terminal:
        terminal.until("> ")
        terminal.type("fail no key\n")
        assert terminal.until("> ") == "fail no key\nerror: no key\n"
        daemon.do(daemon.sessions.clear)
        terminal.type("hello\n")
        assert "error: there is no session" in terminal.until("> ")


def test_a_daemon_that_dies_ends_the_chat_with_a_sentence(daemon, tmp_path):
    with chat(tmp_path) as terminal:
        terminal.until("> ")
        daemon.do(daemon.cut_all)
        code, rest = terminal.end()
    assert (code, rest.strip()) == (1, "zot: zotd closed the connection")
