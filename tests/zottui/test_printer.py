"""Printing above a live area, on a real terminal: tmux, which keeps what was ever moved into its scrollback."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.layout import BufferControl, Layout, Window
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.renderer import Renderer

from tests.zottui.inline_program import PROSE
from tests.zottui.tmux import Tmux
from zottui.printer import Inline

ROOT = Path(__file__).parents[2]

TRIALS = 6


@pytest.fixture
def start(tmp_path):
    """Starts the program; `words` are its arguments."""

    def starter(*words, columns=100, rows=30):
        command = [sys.executable, "-m", "tests.zottui.inline_program", *words]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return Tmux(command, folder=tmp_path, env=env, columns=columns, rows=rows)

    return starter


def enter(terminal, text):
    terminal.type(text)
    terminal.key("Enter")


def has_no_ghosts(terminal):
    """Everything that was painted is painted once, in all that the terminal has ever shown."""
    history = terminal.history()
    return history.count("STATUS BAR") == 1 and history.count("PROMPT") == 1 and "tail" not in history


def markers(terminal):
    return [int(n) for n in re.findall(r"^marker (\d+) ", terminal.history(), re.MULTILINE)]


def test_printed_lines_appear_above_text_typed_meanwhile(start):
    with start("100", "300") as terminal:
        terminal.wait("^marker 1 ")
        for n in range(20):
            terminal.type(f"w{n} ")
            terminal.wait(f"^PROMPT .*w{n}$")
        terminal.wait("STATUS BAR 300 printed")
        terminal.until(lambda: has_no_ghosts(terminal), "the tail's end")
        typed = "".join(f"w{n} " for n in range(20))
        assert terminal.screen().splitlines()[-2:] == [f"PROMPT {typed}".rstrip(), "STATUS BAR 300 printed"]
        assert terminal.cursor == (len(f"PROMPT {typed}"), 28)
        assert markers(terminal) == list(range(1, 301))


@pytest.mark.parametrize("rate", [50, 300])
def test_eight_resizes_while_it_streams_leave_nothing_behind(start, rate):
    # A frame that was written for the old width and is read for the new one cannot be right, and the busier the machine,
    # the more resizes meet such a frame. A printer that counts its rows wrongly fails every time.
    clean = any(resized_eight_times(start, rate) for _ in range(TRIALS))
    assert clean, f"{TRIALS} times of {TRIALS} a row of the live area stayed in the scrollback, or a line was lost"


def resized_eight_times(start, rate):
    """Whether every line is there once afterwards, and nothing of the live area but its last frame."""
    sizes = [(60, 30), (40, 20), (120, 30), (100, 24), (50, 24), (45, 16), (80, 30), (90, 28)]
    lines = rate * 6
    with start(str(rate), str(lines)) as terminal:
        terminal.wait("^marker 1 ")
        for n, size in enumerate(sizes):
            terminal.type(f"w{n} ")
            terminal.resize(*size)
            terminal.wait(f"^PROMPT .*w{n}$", where="history")  # drawn for that size
        terminal.wait(rf"^PROMPT w0 w1 w2 w3 w4 w5 w6 w7\nSTATUS BAR {lines} printed")
        return has_no_ghosts(terminal) and markers(terminal) == list(range(1, lines + 1))


def test_resizes_in_quick_succession_are_followed_when_they_have_ended(start):
    with start("300", "900") as terminal:
        terminal.wait("marker")
        enter(terminal, "tall 6")
        terminal.wait("extra 5")
        terminal.type(PROSE)
        for columns in (*range(99, 30, -4), *range(31, 90, 6)):
            terminal.resize(columns, 30)
        terminal.wait("STATUS BAR 900 printed")
        terminal.until(lambda: has_no_ghosts(terminal), "a screen without ghosts")
        assert markers(terminal) == list(range(1, 901))
        assert terminal.history().count("extra 0") == 1


@pytest.mark.parametrize("dropped", [1, 6])
def test_a_terminal_that_shrinks_and_grows_again_gets_the_rows_back_that_it_dropped(start, dropped):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "tall 9")
        terminal.wait(r"extra 8\nPROMPT\nSTATUS BAR 0 printed\Z")
        for rows in (30 - 19 - dropped, 30):  # nothing is left below the status bar, and then not even that
            terminal.resize(100, rows)
        terminal.wait(r"extra 8\nPROMPT\nSTATUS BAR 0 printed\Z")
        assert has_no_ghosts(terminal)


def test_the_first_line_that_is_printed_on_a_full_screen_leaves_no_prompt_in_the_scrollback(start):
    with start(rows=8) as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "tall 6")
        terminal.wait("extra 5")
        assert terminal.screen().splitlines()[0] == "extra 0"
        terminal.key("C-l")
        enter(terminal, "hello")
        terminal.wait("you: 'hello'", where="history")
        enter(terminal, "again")
        terminal.wait("you: 'again'", where="history")
        assert terminal.history().splitlines()[:2] == ["you: 'hello'", "you: 'again'"]
        assert has_no_ghosts(terminal)


def test_eight_rows_are_enough(start):
    with start("100", "100", rows=8) as terminal:
        terminal.wait("STATUS BAR 100 printed")
        terminal.until(lambda: has_no_ghosts(terminal), "the tail's end")
        assert markers(terminal) == list(range(1, 101))


def test_the_area_is_at_most_as_high_as_the_terminal(start):
    with start(rows=8) as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "tall 20")
        terminal.wait("extra 2")
        enter(terminal, "tall 0")
        terminal.wait(r"\APROMPT\nSTATUS BAR")
        assert terminal.history() == terminal.screen()


def test_an_area_that_becomes_lower_leaves_blank_rows_below(start):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "say 3")
        terminal.wait("said 3")
        before = terminal.screen()
        for rows in (5, 9, 2):
            enter(terminal, f"tall {rows}")
            terminal.wait(rf"extra {rows - 1}\nPROMPT\nSTATUS BAR 0 printed\Z")
        enter(terminal, "tall 0")
        terminal.until(lambda: terminal.screen() == before, "the screen as it was")


def test_a_long_line_is_copied_as_one_line(start):
    with start(columns=40) as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "say 2")
        terminal.wait("said 2")
        assert terminal.history().splitlines()[:2] == [f"said 1 {PROSE}", f"said 2 {PROSE}"]


@pytest.mark.parametrize("columns", [39, 40, 41, 80])
def test_a_line_that_just_fills_its_rows_is_whole_and_no_blank_one_follows(start, columns):
    with start(columns=40) as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, f"exact {columns}")
        terminal.wait("^behind it")
        assert terminal.history().splitlines()[:2] == ["=" * columns, "behind it"]


def test_wide_characters_colours_and_links_go_through(start):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "wide")
        terminal.wait("^漢字 .* and a link.$")
        assert "\x1b[31m漢字" in terminal.screen(colours=True)
        assert b"\x1b]8;;file:///x\x1b\\a link\x1b]8;;\x1b\\" in terminal.raw()
        terminal.type("漢字漢字")
        terminal.wait("PROMPT 漢字漢字")
        assert terminal.cursor[0] == len("PROMPT ") + 8
        terminal.key("BSpace")
        terminal.wait("PROMPT 漢字漢$")
        assert terminal.cursor[0] == len("PROMPT ") + 6


@pytest.mark.parametrize("draft", ["漢" * 30, "x" * 73, "x" * 72, "x" * 34 + "漢" * 20], ids=len)
@pytest.mark.parametrize("columns", [17, 40])
def test_a_draft_is_found_again_however_the_terminal_wraps_it(start, draft, columns):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "say 9")
        terminal.type(draft)
        terminal.wait(rf"said 9 .*\nPROMPT {draft}$", where="history")
        terminal.resize(columns, 30)
        terminal.type("!")
        terminal.until(lambda: "!" in terminal.history(), "what was typed then")
        assert has_no_ghosts(terminal)
        lines = terminal.history().splitlines()
        assert lines[:9] == [f"said {n} {PROSE}" for n in range(1, 10)]
        assert "".join(lines[9:]).startswith(f"PROMPT {draft}!")


def test_painting_again_takes_away_what_others_have_written_over_it(start):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "hello")
        terminal.wait("you: 'hello'")
        enter(terminal, "stray")
        terminal.wait("STRAY")
        terminal.key("C-l")
        terminal.wait(r"\Ayou: 'hello'\nPROMPT\nSTATUS BAR 0 printed\Z")


def test_at_the_end_the_area_is_erased_and_printed_lines_stay(start):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "hello")
        terminal.key("C-d")
        terminal.until(lambda: terminal.exit_code == 0, "the end")
        assert terminal.screen() == "you: 'hello'\nbye"


def test_a_frame_is_one_update_and_nothing_is_written_when_nothing_changes(start):
    with start() as terminal:
        terminal.wait("STATUS BAR")
        enter(terminal, "hello")
        terminal.wait("hello'")
        before = terminal.raw()
        assert before.count(b"\x1b[?2026h") == before.count(b"\x1b[?2026l")
        frame = re.findall(rb"\x1b\[\?2026h((?:(?!\x1b\[\?2026).)*)\x1b\[\?2026l", before, re.DOTALL)[-1]
        assert b"you: 'hello'" in frame
        assert b"STATUS BAR" in frame
        terminal.type("x")
        terminal.wait("PROMPT x")
        assert b"STATUS" not in terminal.raw()[len(before) :]


async def test_typed_text_is_drawn_at_once():
    editor = Buffer()
    with create_pipe_input() as keyboard:
        app: Inline[None] = Inline(Layout(Window(BufferControl(editor))), input=keyboard, output=DummyOutput())
        drawn: asyncio.Queue[str] = asyncio.Queue()
        app.after_render += lambda _: drawn.put_nowait(editor.text)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(app.run_async())
            assert await drawn.get() == ""
            app.invalidate()  # 70 ms from now: a frame has just been drawn
            app.key_processor.feed_multiple([KeyPress(letter) for letter in "word"])
            app.key_processor.process_keys()
            await asyncio.sleep(0)
            assert drawn.get_nowait() == "word"
            assert drawn.empty()
            app.exit()


def test_prompt_toolkit_has_the_private_parts_that_the_printer_uses():
    app: Application[None] = Application(Layout(Window()), output=DummyOutput())
    assert {"_on_resize", "_redraw", "_merged_style"} <= set(dir(app))
    parts = {"_cursor_pos", "_last_screen", "_last_size", "_last_cursor_shape"}
    assert parts | {"_bracketed_paste_enabled", "_cursor_key_mode_reset"} <= set(vars(app.renderer))
    assert {"reset", "erase", "render", "request_absolute_cursor_position"} <= set(vars(Renderer))
