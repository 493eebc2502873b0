"""A terminal that is behind gets what was typed at once, and everything else when it has caught up."""

import asyncio
from contextlib import asynccontextmanager

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout import BufferControl, Layout, Window
from prompt_toolkit.output import DummyOutput

from zottui.pacing import PATIENCE_S, PORTION_BYTES, QUESTION, Pace
from zottui.printer import Inline
from zottui.terminal.keyboard import Reports

WAIT_S = 60


class Line(DummyOutput):
    """What was written, frame by frame."""

    def __init__(self):
        self.frames = [""]
        self.written = asyncio.Event()

    def write_raw(self, data):
        self.frames[-1] += data

    def flush(self):
        self.frames.append("")
        self.written.set()

    @property
    def text(self):
        return "".join(self.frames)

    async def has(self, words):
        """Wait until these were written."""
        async with asyncio.timeout(WAIT_S):
            while words not in self.text:
                self.written.clear()
                await self.written.wait()


@asynccontextmanager
async def running(pace):
    """(the application, what it writes, who types), after the first answer."""
    line, editor = Line(), Buffer()
    with create_pipe_input() as keyboard:
        layout = Layout(Window(BufferControl(editor)))
        app: Inline[None] = Inline(layout, input=keyboard, output=line, pace=pace)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(app.run_async())
            await line.has(QUESTION)
            app.caught_up()
            line.frames = [""]
            yield app, line, keyboard
            app.exit()


async def test_while_the_terminal_is_behind_keys_are_drawn_and_the_rest_waits():
    async with running(Pace(asks=True)) as (app, line, keyboard):
        app.print_above("first")
        await line.has(QUESTION)
        for number in range(40):
            app.print_above(f"line {number}")
            app.invalidate()
            keyboard.send_text("k")
            await line.has("k" * (number + 1))
        app.invalidate()
        assert isinstance(app._frame, asyncio.TimerHandle)
        assert app._frame.when() == app._pace.held_until  # and no frame without a key before that
        assert "line" not in line.text
        assert line.text.count(QUESTION) == 1
        app.caught_up()
        await line.has("line 39")
        assert [line.text.count(f"line {number}\r") for number in (0, 20, 39)] == [1, 1, 1]


async def test_on_a_slow_terminal_finished_lines_come_in_portions():
    pace = Pace(asks=True)
    async with running(pace) as (app, line, _):
        pace._lag_s = 1.0  # as after an answer that took so long
        app.print_above("\n".join(f"line {number:03} {'x' * 90}" for number in range(20)))
        await line.has(QUESTION)
        assert line.text.count("line") == -(-PORTION_BYTES // 99)
        for _ in range(3):
            asked = line.text.count(QUESTION)
            app.caught_up()
            pace._lag_s = 1.0
            async with asyncio.timeout(WAIT_S):
                while line.text.count(QUESTION) == asked:
                    line.written.clear()
                    await line.written.wait()
        await line.has("line 019")
        assert line.text.count("line") == 20


async def test_a_terminal_that_never_answers_is_written_to_as_before():
    line, editor = Line(), Buffer()
    with create_pipe_input() as keyboard:
        app: Inline[None] = Inline(
            Layout(Window(BufferControl(editor))), input=keyboard, output=line, pace=Pace(asks=True)
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(app.run_async())
            await line.has(QUESTION)
            app.print_above("one")
            await line.has("one")
            app.print_above("two")
            await line.has("two")
            app.exit()


async def test_an_answer_that_is_lost_is_not_waited_for_for_ever():
    pace = Pace(asks=True)
    pace.question()
    pace.answered()
    assert [pace.question(), pace.question()] == [QUESTION, ""]
    pace._asked_at = asyncio.get_running_loop().time() - PATIENCE_S
    assert pace.question() == QUESTION


async def test_lending_the_terminal_waits_for_a_pending_answer():
    due: list[bool] = []
    pace = Pace(asks=True, expect=due.append)
    await pace.settled()
    pace.question()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(pace.settled())
        await asyncio.sleep(0)
        assert not waiting.done()
        pace.answered()
    assert due == [True, False]


def test_an_answer_is_filtered_from_the_input_and_reported():
    told = []
    reports = Reports(lambda _: None, lambda: told.append("answer"))
    assert reports.feed("a\x1b[?62;22cb") == "ab"
    assert reports.feed("\x1b[?997;1n") == ""
    assert told == ["answer"]
