"""An `Inline` application for the tests of the terminal: lines that stream above an editor and a status bar.

    python -m tests.zottui.inline_program [RATE [LINES]]

RATE lines a second are printed, `marker 1 …` and so on, LINES in all, and a row that changes with each is shown below. What
is in the editor is printed at Enter; some words do more (`ACTIONS`). Ctrl-L paints again, Ctrl-Z stops, Ctrl-D ends. With
`GATE` in the environment it starts when that file, a FIFO, has been written to.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput

from zottui.printer import Inline
from zottui.terminal.background import Question
from zottui.terminal.device import Terminal, leaving_on_signals
from zottui.terminal.early import cbreak
from zottui.terminal.keyboard import Keyboard
from zottui.terminal.sequences import clipboard

PROSE = "a line that is long enough to be wrapped on a narrow terminal, and of course to be copied in one piece"


class Program:
    """A row that changes, rows that were asked for, the editor and the status bar."""

    def __init__(self, typed):
        self.tail, self.extra, self.printed = "", 0, 0
        self.editor = Buffer(multiline=True)
        prompt = BufferControl(self.editor, input_processors=[BeforeInput("PROMPT ")])
        layout = HSplit(
            [
                ConditionalContainer(
                    Window(FormattedTextControl(self.rows), dont_extend_height=True),
                    Condition(lambda: bool(self.rows())),
                ),
                Window(prompt, dont_extend_height=True, wrap_lines=True),
                Window(FormattedTextControl(lambda: f"STATUS BAR {self.printed} printed"), height=1),
            ]
        )
        self.app: Inline[None] = Inline(
            Layout(layout), key_bindings=self.keys(), input=Keyboard(sys.stdin, on_focus=self.focused, typed=typed)
        )
        self.app.ttimeoutlen = 0.1
        self.terminal = Terminal(self.app.output, os.environ)
        self.actions: dict[str, Callable[[int], None]] = {
            "say": lambda n: self.app.print_above("\n".join(f"said {i} {PROSE}" for i in range(1, n + 1))),
            "exact": lambda n: self.app.print_above(f"{'=' * n}\nbehind it"),
            "tall": self.grow,
            "wide": lambda _: self.app.print_above(
                "\x1b[31m漢字 👩‍🔬\x1b[m and \x1b]8;;file:///x\x1b\\a link\x1b]8;;\x1b\\."
            ),
            "title": lambda n: self.terminal.title(f"title {n}"),
            "notify": lambda n: self.terminal.notify(f"number {n}"),
            "copy": lambda n: self.terminal.write(clipboard("x" * n, os.environ)),
            "focus": lambda _: self.app.print_above(f"focus {self.has_focus}"),
            "stray": lambda _: self.stray(),
            "fail": lambda _: self.app.exit(exception=RuntimeError("asked for")),
        }

    def rows(self):
        return "\n".join([*([self.tail] if self.tail else []), *(f"extra {n}" for n in range(self.extra))])

    def grow(self, rows):
        self.extra = rows

    def stray(self):
        """Something else writes over the status bar."""
        os.write(1, b"\x1b7\r\nSTRAY\x1b8")

    def focused(self, has_focus):
        self.has_focus = has_focus
        self.terminal.focused(has_focus)

    def keys(self):
        keys = KeyBindings()
        keys.add("enter")(lambda _: self.entered())
        keys.add("escape", "enter")(lambda _: self.editor.insert_text("\n"))
        keys.add("c-j")(lambda _: self.editor.insert_text("\n"))
        keys.add("c-l")(lambda _: self.app.repaint())
        keys.add("c-d")(lambda _: self.app.exit())
        keys.add("c-z")(lambda _: get_app().create_background_task(self.terminal.stop()))
        return keys

    def entered(self):
        words = self.editor.text.split()
        if words and words[0] in self.actions:
            self.actions[words[0]](int(words[1]) if words[1:] else 0)
        else:
            self.app.print_above(f"you: {self.editor.text!r}")
        self.editor.reset()

    def leave(self):
        if not self.app.is_done:
            self.app.exit()

    async def stream(self, rate, lines):
        loop = asyncio.get_running_loop()
        start = loop.time()
        for n in count(1):
            if n > lines:
                break
            await asyncio.sleep(max(0, start + n / rate - loop.time()))
            self.tail = f"tail {n} {PROSE[: n * 7 % len(PROSE)]}"
            self.app.print_above(f"marker {n} {PROSE[: n * 13 % len(PROSE)]}")
            self.printed = n
        self.tail = ""
        self.app.invalidate()

    async def run(self, rate, lines):
        async with asyncio.TaskGroup() as group:
            stream = group.create_task(self.stream(rate, lines))
            with leaving_on_signals(self.leave), self.terminal.prepared():
                await self.app.run_async()
            stream.cancel()


def main():
    restore = cbreak()
    question = Question(os.environ)
    try:
        if gate := os.environ.get("GATE"):
            sys.stdout.write("starting\n")
            sys.stdout.flush()
            Path(gate).read_bytes()
        question.ask()
        rate, lines = [*map(float, sys.argv[1:]), 0, 0][:2]
        asyncio.run(Program(question.answer().typed).run(rate or 1, int(lines)))
        question.drain()
    finally:
        restore()
    sys.stdout.write("bye\n")


if __name__ == "__main__":
    main()
