"""The terminal as a device: what it is sent, and how it is left."""

import asyncio
import base64
import io
import os
import pty
import re
import sys
import termios
from pathlib import Path

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from tests.zottui.tmux import Tmux
from zottui.terminal import sequences
from zottui.terminal.device import Terminal
from zottui.terminal.early import cbreak
from zottui.terminal.environment import reflows, understands_osc

ROOT = Path(__file__).parents[3]
XTERM = {"TERM": "xterm-256color"}
IN_TMUX = {"TERM": "tmux-256color", "TMUX": "/tmp/tmux-0/default,1,0"}


# --- sequences --------------------------------------------------------------------------------------------------------


def test_a_title_can_do_nothing_but_be_shown():
    assert sequences.title("a\x1b]0;b\x07c\nd\x9ce\u202ef") == "\x1b]0;a ]0;b c d e f\x1b\\"
    assert sequences.title("x" * 500) == f"\x1b]0;{'x' * 119}…\x1b\\"
    assert sequences.title("a\ud800b") == "\x1b]0;a b\x1b\\"


def test_a_notification_rings_and_goes_through_tmux():
    assert sequences.notification("done\x07", XTERM) == "\x1b]9;done\x1b\\\a"
    assert sequences.notification("done", IN_TMUX) == "\x1bPtmux;\x1b\x1b]9;done\x1b\x1b\\\x1b\\\a"
    assert sequences.notification("done", {"TERM": "linux"}) == "\a"


def test_a_notification_is_no_progress_bar():
    assert sequences.notification("4;1;50", XTERM) == "\x1b]9;- 4;1;50\x1b\\\a"


def test_the_clipboard_takes_what_a_terminal_takes():
    encoded = base64.b64encode("é".encode()).decode()
    assert sequences.clipboard("é", XTERM) == f"\x1b]52;c;{encoded}\x1b\\"
    assert sequences.clipboard("é", IN_TMUX).endswith(f"\x1bPtmux;\x1b\x1b]52;c;{encoded}\x1b\x1b\\\x1b\\")
    assert len(sequences.clipboard("x" * 74_994, XTERM)) < 100_003
    with pytest.raises(sequences.TooLongError, match="74,995 bytes"):
        sequences.clipboard("x" * 74_995, XTERM)


def test_what_the_environment_says():
    assert reflows(XTERM)
    assert reflows(IN_TMUX | {"XTERM_VERSION": "XTerm(370)"})
    assert not reflows(XTERM | {"XTERM_VERSION": "XTerm(370)"})
    assert not reflows({"TERM": "screen", "STY": "1.pts"})
    assert not understands_osc({"TERM": "dumb"})


# --- the device -------------------------------------------------------------------------------------------------------


def device(env=XTERM):
    written = io.StringIO()
    return Terminal(Vt100_Output(written, lambda: Size(30, 100)), env), written


@pytest.mark.looptime
async def test_a_title_is_set_once_a_second_and_is_the_last_one_in_the_end():
    terminal, written = device()
    with terminal.prepared():
        for n in range(30):
            terminal.title(f"title {n}")
            await asyncio.sleep(0.1)
        terminal.title("last")
        terminal.title("last")
        await asyncio.sleep(5)
    titles = re.findall(r"\x1b\]0;(.*?)\x1b\\", written.getvalue())
    assert titles == ["title 0", "title 9", "title 19", "title 29", "last"]


async def test_the_title_is_pushed_and_popped_also_for_another_program():
    terminal, written = device()
    with terminal.prepared():
        terminal.title("ours")
        with terminal.restored():
            before = written.getvalue()
        assert written.getvalue()[len(before) :] == "\x1b[22;0t\x1b[?1004h\x1b]0;ours\x1b\\"
    assert before.count("\x1b[22;0t") == before.count("\x1b[23;0t") == 1
    assert "\x1b[?1004l\x1b[23;0t" in before


async def test_a_terminal_with_focus_is_not_notified():
    terminal, written = device()
    terminal.focused(True)
    terminal.notify("done")
    assert written.getvalue() == ""
    terminal.focused(False)
    terminal.notify("done")
    assert written.getvalue() == "\x1b]9;done\x1b\\\a"


async def test_a_console_gets_nothing_that_it_would_show():
    terminal, written = device({"TERM": "linux"})
    with terminal.prepared():
        terminal.title("ours")
    assert written.getvalue() == sequences.RESTORE


# --- from beginning to end --------------------------------------------------------------------------------------------


@pytest.fixture
def start(tmp_path):
    """Starts the program of the printer's tests; with `shell`, a shell that has a function `run` for it."""

    def starter(*words, shell=False, **env):
        command = [sys.executable, "-m", "tests.zottui.inline_program", *words]
        if shell:
            init = tmp_path / "bashrc"
            init.write_text(f"PS1='SHELL '; run() {{ {' '.join(command)} \"$@\"; }}\n")
            command = ["bash", "--noprofile", "--rcfile", str(init), "-i"]
        full = {**os.environ, "PYTHONPATH": str(ROOT), "HISTFILE": "", **env}
        return Tmux(command, folder=tmp_path, env=full)

    return starter


def test_keys_that_are_typed_while_the_program_starts_are_neither_shown_nor_lost(start, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with start(GATE=str(gate)) as terminal:
        terminal.wait("starting")
        terminal.type("early")
        terminal.key("Enter")
        terminal.type("bird")
        gate.write_text("go")
        terminal.wait(r"\Astarting\nyou: 'early'\nPROMPT bird\nSTATUS BAR 0 printed\Z")
        assert terminal.raw().count(b"early") == 1


@pytest.mark.parametrize("keys", [["M-Enter"], ["C-j"], ["1b", "5b", "31", "33", "3b", "32", "75"]])
def test_each_of_the_keys_for_a_newline_makes_one(start, keys):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        terminal.type("a")
        (terminal.send_hex if len(keys) > 1 else terminal.key)(*keys)
        terminal.type("b")
        terminal.wait("^PROMPT a\nb$")
        terminal.key("Enter")
        terminal.wait(r"you: 'a\\nb'")


def test_the_title_the_bell_and_the_clipboard_arrive(start):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        terminal.type("title 7\rnotify 1\rcopy 5\r")
        terminal.until(lambda: terminal.ask("#{pane_title}") == "title 7", "the title")
        terminal.until(lambda: terminal.ask("#{window_bell_flag}") == "1", "the bell")
        terminal.until(lambda: terminal.tmux("list-buffers", "-F", "#{buffer_sample}") == "xxxxx\n", "the clipboard")
        assert terminal.raw().count(b"]9;number 1") == 1


def test_the_focus_of_the_terminal_is_known(start):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        terminal.send_hex("1b", "5b", "49")
        terminal.type("focus\r")
        terminal.wait("^focus True")
        terminal.send_hex("1b", "5b", "4f")
        terminal.type("focus\r")
        terminal.wait("^focus False")


def ends_clean(terminal):
    """The terminal is as a shell wants to have it."""
    end = terminal.raw().rpartition(b"\x1b[?1004l")[2]
    assert b"\x1b[23;0t" in end
    assert b"\x1b[?2004l" in end
    assert b"\x1b[?25h" in end
    assert terminal.ask("#{cursor_flag} #{wrap_flag} #{alternate_on}") == "1 1 0"
    terminal.type("stty -a\r")
    terminal.wait(r"^.* icanon .*(?:\n.*)* echo ")


@pytest.mark.parametrize("how", ["C-d", "exception", "TERM", "HUP"])
def test_however_it_ends_the_terminal_is_as_it_was(start, how):
    with start(shell=True) as terminal:
        terminal.wait("^SHELL")
        title = terminal.ask("#{pane_title}")
        terminal.type("run 50 2000\r")
        terminal.wait("^marker 1 ")
        terminal.type("title 3\r")
        terminal.until(lambda: terminal.ask("#{pane_title}") == "title 3", "the title")
        if how == "C-d":
            terminal.key("C-d")
        elif how == "exception":
            terminal.type("fail\r")
        else:
            pid = terminal.ask("#{pane_pid}")
            child = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
            os.kill(int(child), {"TERM": 15, "HUP": 1}[how])
        terminal.wait(r"^SHELL\Z")
        assert "STATUS BAR" not in terminal.history()
        assert "PROMPT" not in terminal.history()
        assert terminal.ask("#{pane_title}") == title
        ends_clean(terminal)


def test_ctrl_z_goes_to_the_shell_and_fg_comes_back(start):
    with start(shell=True) as terminal:
        terminal.wait("^SHELL")
        terminal.type("run\r")
        terminal.wait("STATUS BAR")
        terminal.type("draft")
        terminal.wait("PROMPT draft")
        terminal.key("C-z")
        terminal.wait(r"Stopped[^\0]*^SHELL\Z")
        assert "STATUS BAR" not in terminal.screen()
        terminal.type("echo between\r")
        terminal.wait("^between")
        terminal.type("fg\r")
        terminal.wait(r"^PROMPT draft\nSTATUS BAR 0 printed\Z")
        terminal.type("!\r")
        terminal.wait("you: 'draft!'")


def test_early_echo_is_off_and_enter_is_a_carriage_return():
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    restore = cbreak(theirs)
    os.write(ours, b"a\r")
    assert os.read(theirs, 10) == b"a\r"
    restore()
    restore()
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
    restore()
