"""The terminal as a device: what it says between the keys, what it is sent, and how it is left."""

import asyncio
import base64
import io
import os
import pty
import re
import sys
import termios
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from tests.zottui.tmux import Tmux
from zottui.terminal import sequences
from zottui.terminal.background import Question
from zottui.terminal.device import Terminal
from zottui.terminal.early import cbreak
from zottui.terminal.environment import reflows, understands_osc
from zottui.terminal.keyboard import Keyboard, Reports

ROOT = Path(__file__).parents[2]
XTERM = {"TERM": "xterm-256color"}
IN_TMUX = {"TERM": "tmux-256color", "TMUX": "/tmp/tmux-0/default,1,0"}


@contextmanager
def wire():
    """(what the person and the terminal have in their hands, what the program has)."""
    ours, theirs = pty.openpty()
    restore = cbreak(theirs)
    try:
        yield ours, theirs
    finally:
        restore()
        os.close(ours)
        os.close(theirs)


# --- the question -----------------------------------------------------------------------------------------------------

DEVICE = b"\x1b[?62;4c"


def asked(said):
    """What the answer is when this comes in."""
    with wire() as (ours, theirs):
        question = Question(XTERM, keyboard=theirs, screen=theirs)
        question.ask()
        assert os.read(ours, 100) == b"\x1b]11;?\x1b\\\x1b[c"
        os.write(ours, said)
        answer = question.answer()
        question.drain()
        return answer


@pytest.mark.parametrize(
    ("colour", "is_dark"),
    [
        (b"rgb:ffff/ffff/ffff", False),
        (b"rgb:0000/0000/0000", True),
        (b"rgb:f/f/f", False),
        (b"rgb:1e/1e/2e", True),
        (b"rgba:fd00/f600/e300/ffff", False),
    ],
)
@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\"])
def test_a_background_is_light_or_dark(colour, is_dark, end):
    assert asked(b"\x1b]11;" + colour + end + DEVICE).is_dark is is_dark


def test_a_terminal_that_does_not_tell_its_background_is_not_waited_for():
    assert asked(DEVICE).is_dark is None


def test_keys_that_are_typed_before_and_between_the_answers_are_kept():
    answer = asked(b"go \x1b]11;rgb:00/00/00\x07on \x1b[A" + DEVICE)
    assert answer.typed == b"go on \x1b[A"
    assert answer.is_dark


def test_of_an_answer_that_does_not_come_nothing_is_lost_but_the_colour():
    with wire() as (ours, theirs):
        question = Question(XTERM, keyboard=theirs, screen=theirs)
        question.ask()
        os.write(ours, b"typed\x1b]11;rgb:00")
        answer = question.answer()
        assert answer.is_dark is None
        assert answer.typed == b"typed\x1b]11;rgb:00"
        with keyboard(theirs, typed=answer.typed) as (keys, _):
            os.write(ours, b"00/0000/0000\x1b\\" + DEVICE + b"!")
            assert [key.data for key in get_typeahead(keys)] == list("typed")
            assert [key.data for key in keys.read_keys()] == ["!"]


def test_the_end_waits_for_an_answer_that_is_late():
    with wire() as (ours, theirs):
        question = Question(XTERM, keyboard=theirs, screen=theirs)
        question.ask()
        question.answer()
        os.write(ours, b"\x1b]11;rgb:00/00/00\x07" + DEVICE)
        question.drain()
        os.set_blocking(theirs, False)
        with pytest.raises(BlockingIOError):
            os.read(theirs, 1)


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": "linux"}, {}])
def test_a_terminal_that_would_show_the_question_is_not_asked(env):
    with wire() as (ours, theirs):
        question = Question(env, keyboard=theirs, screen=theirs)
        question.ask()
        assert question.answer().typed == b""
        os.set_blocking(ours, False)
        with pytest.raises(BlockingIOError):
            os.read(ours, 1)


def test_what_is_no_terminal_is_not_asked():
    inside, outside = os.pipe()
    question = Question(XTERM, keyboard=inside, screen=outside)
    question.ask()
    assert question.answer().is_dark is None
    os.close(inside)
    os.close(outside)
    cbreak(inside)()  # and neither changed


# --- the keyboard -----------------------------------------------------------------------------------------------------


@contextmanager
def keyboard(fd, typed=b""):
    focus: list[bool] = []
    with os.fdopen(os.dup(fd), encoding="utf-8") as stdin:
        yield Keyboard(stdin, on_focus=focus.append, typed=typed), focus


def keys_of(sent):
    """The keys that come of these bytes, and what was said about the focus."""
    with wire() as (ours, theirs), keyboard(theirs) as (keys, focus):
        os.write(ours, sent)
        return [key.key for key in keys.read_keys() + keys.flush_keys()], focus


@pytest.mark.parametrize("sent", [b"\x1b[13;2u", b"\x1b[27;2;13~", b"\x1b\r"])
def test_shift_enter_in_both_forms_is_alt_enter(sent):
    assert keys_of(sent) == ([Keys.Escape, Keys.ControlM], [])


def test_the_focus_is_reported_beside_the_keys():
    assert keys_of(b"a\x1b[Ob\x1b[I") == (["a", "b"], [False, True])


@pytest.mark.parametrize(
    "answer",
    [
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1b]52;c;eHh4\x07",
        b"\x1b[?62;4c",
        b"\x1b[>0;276;0c",
        b"\x1b[?2026;2$y",
        b"\x1b[?997;1n",
        b"\x1bP>|tmux 3.4\x1b\\",
    ],
)
def test_a_late_answer_is_not_typed(answer):
    assert keys_of(b"a" + answer + b"b") == (["a", "b"], [])


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"\x1b", [Keys.Escape]),
        (b"\x1b]", [Keys.Escape, "]"]),
        (b"\x1bP", [Keys.Escape, "P"]),
        (b"\x1b[", [Keys.Escape, "["]),
        (b"\x1b[A", [Keys.Up]),
        (b"\x1b[1;5C", [Keys.ControlRight]),
        (b"\x1bOP", [Keys.F1]),
        (b"\x1b[24~", [Keys.F12]),
        (b"\x1b[200~a\x1b[Zb\x1b[201~", [Keys.BracketedPaste]),
        (b"\x1b]hello", [Keys.Escape, *"]hello"]),
        ("é漢".encode(), ["é", "漢"]),
    ],
)
def test_keys_are_what_they_were(sent, keys):
    assert keys_of(sent) == (keys, [])


PIECES = st.lists(
    st.sampled_from(
        [
            *("a", "é", "\r", "\x1b[A", "\x1b[1;5C", "\x1b[27;5;9~", "\x1b[13~", "\x1b[200~x\x1b[201~", "\x1bx"),
            *(
                "\x1b[I",
                "\x1b[O",
                "\x1b[13;2u",
                "\x1b[27;2;13~",
                "\x1b[?1;2c",
                "\x1b]11;rgb:0/0/0\x07",
                "\x1bP>|v\x1b\\",
            ),
        ]
    ),
    max_size=12,
)


@given(PIECES, st.lists(st.integers(1, 8)))
def test_however_the_input_is_cut_the_same_was_typed(pieces, cuts):
    whole: list[bool] = []
    in_pieces: list[bool] = []
    text = "".join(pieces)
    once = Reports(whole.append)
    expected = once.feed(text) + once.flush()
    reports, typed, rest = Reports(in_pieces.append), "", text
    for cut in cuts:
        typed, rest = typed + reports.feed(rest[:cut]), rest[cut:]
    assert typed + reports.feed(rest) + reports.flush() == expected
    assert in_pieces == whole == [piece == "\x1b[I" for piece in pieces if piece in {"\x1b[I", "\x1b[O"}]


@given(st.text(alphabet="\x1b[]P?>;:1273cnuIO~\x07\\$y a", max_size=40))
def test_nothing_that_is_typed_is_lost_but_reports(text):
    reports = Reports(lambda _: None)
    typed = reports.feed(text) + reports.flush()
    if "\x1b" not in text:
        assert typed == text
    assert len(typed) <= len(text)


# --- sequences --------------------------------------------------------------------------------------------------------


def test_a_title_can_do_nothing_but_be_shown():
    assert sequences.title("a\x1b]0;b\x07c\nd\x9ce\u202ef") == "\x1b]0;a ]0;b c d e f\x1b\\"
    assert sequences.title("x" * 500) == f"\x1b]0;{'x' * 119}…\x1b\\"
    assert sequences.title("\ud800") == "\x1b]0;?\x1b\\"


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


async def test_who_is_looking_is_not_notified():
    terminal, written = device()
    terminal.has_focus = True
    terminal.notify("done")
    assert written.getvalue() == ""
    terminal.has_focus = False
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
