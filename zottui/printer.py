"""A prompt_toolkit application below the terminal's own scrollback: finished lines go above it and are never touched again.

prompt_toolkit draws such an area too, but erases it with a sequence that makes tmux keep a copy of it, erases too few
rows after the terminal has become narrower, and takes the area away for everything that is printed. So the painting is
ours here; layout, keys and editing are prompt_toolkit's. This is the only module that uses private parts of it: those of
`Renderer` and `Application` that are named in tests/zottui/test_printer.py. Why: docs/decisions/0019.
"""

import asyncio
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import Attrs, BaseStyle

from zottui.pacing import Pace
from zottui.painted import EMPTY, PaintedRow

Result = TypeVar("Result")

FRAME_S = 1 / 15
"""The least time between two redraws that no key has asked for. One of 12 rows takes 2 ms, and the terminal has to paint
it too; nobody reads faster. What is typed is seen at once: a delay of 70 ms is felt."""

SETTLE_S = 0.3
"""How long a new size has to last before we draw for it: tmux rewraps its rows at once, but tells us at most every 0.25 s.
What is drawn in between, for a width that is gone, would stay in the scrollback for ever."""

BEGIN_UPDATE, END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
"""What is between them appears at once; terminals that do not know that ignore it."""

ERASE_LINE = "\x1b[K"

ERASE_BELOW = "\r\x1b[K\x1b[C\x1b[J\r"
"""Erase this row and those below it. The plain way, `CSI J` in the first column, makes tmux (and iTerm2) move the whole
screen into the scrollback when the row is the topmost; from the second column on it erases, and does nothing else."""

RESET = "\x1b[m"


class _Area(Renderer):
    """Paints rows below the scrollback; it knows which they are, so that it can take all of them away again."""

    def __init__(self, style: BaseStyle, output: Output, *, reflows: bool, pace: Pace) -> None:
        self._reflows = reflows
        self._pace = pace
        self.is_for_key = False
        """The next frame shows what was typed, and while the terminal is behind nothing that can wait."""
        self._finished: list[str] = []
        self._is_stale = False
        self._attrs: dict[str, Attrs] = {}
        self._looks: Hashable = None
        super().__init__(style, output)

    def reset(self, _scroll: bool = False, leave_alternate_screen: bool = True) -> None:
        super().reset(_scroll, leave_alternate_screen)
        self._rows: list[PaintedRow] = []

    def request_absolute_cursor_position(self) -> None:
        """Nothing: the area is where the cursor is, as high as its rows. No answer to wait for, none that comes late."""

    def add(self, text: str) -> None:
        """Print these lines above with the next frame."""
        self._finished += text.split("\n")

    @property
    def has_more(self) -> bool:
        """Lines wait that were not in the last frame."""
        return bool(self._finished)

    def repaint(self) -> None:
        """Paint all rows with the next frame, also those that have not changed."""
        self._is_stale = True

    @property
    def has_wrong_size(self) -> bool:
        """Whether the terminal has another size than the one that this was painted for."""
        return self._last_size not in {None, self.output.get_size()}

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Take the area away, and leave the cursor where its top was; what waits is printed before that."""
        self.output.write_raw(BEGIN_UPDATE)
        self._clear()
        self._print_finished()
        self.output.write_raw(END_UPDATE)
        self.reset(leave_alternate_screen=leave_alternate_screen)

    def render(self, app: Application[object], layout: Layout, is_done: bool = False) -> None:
        """One frame, in one write: the lines that wait, then the rows that have changed. No write when there is nothing."""
        size = self.output.get_size()
        screen = self._laid_out(app, layout, size)
        self._follow_looks(app)
        rows = [self._row(screen, y, size.columns) for y in range(screen.height)]
        cursor = screen.get_cursor_position(layout.current_window)
        shape = app.cursor.get_cursor_shape(app)
        holds = self.is_for_key and self._pace.is_behind and not is_done
        is_whole = (self.has_more and not holds) or self._is_stale or self._last_size != size
        if is_whole or rows != self._rows or cursor != self._cursor_pos or shape != self._last_cursor_shape or is_done:
            self._begin()
            if is_whole:
                self._clear()
                self._print_finished(0 if holds else None if is_done else self._pace.portion)
            self._paint(rows, app)
            self._move(Point(0, len(rows)) if is_done else cursor)
            if shape != self._last_cursor_shape:
                self.output.set_cursor_shape(shape)
            self._end(shows_cursor=screen.show_cursor, asks=not (is_done or self.is_for_key))
        self._last_screen, self._last_size, self._last_cursor_shape = screen, size, shape
        layout.visible_windows = screen.visible_windows
        if is_done:
            self.reset()

    def _laid_out(self, app: Application[object], layout: Layout, size: Size) -> Screen:
        screen = Screen()
        screen.show_cursor = False  # a window that has one shows it
        height = min(layout.container.preferred_height(size.columns, size.rows).preferred, size.rows)
        layout.container.write_to_screen(
            screen,
            MouseHandlers(),
            WritePosition(0, 0, size.columns, height),
            parent_style="",
            erase_bg=False,
            z_index=None,
        )
        screen.draw_all_floats()
        screen.height = min(screen.height, size.rows)
        if app.exit_style:
            screen.append_style_to_content(app.exit_style)
        return screen

    def _follow_looks(self, app: Application[object]) -> None:
        """Forget the colours when another style is in force."""
        looks = (self.style.invalidation_hash(), app.style_transformation.invalidation_hash(), app.color_depth)
        if looks == self._looks:
            return
        self._looks = looks
        self._transform = app.style_transformation.transform_attrs
        self._attrs = {}
        self._is_stale = True

    def _look(self, style: str) -> Attrs:
        attrs = self._attrs.get(style)
        if attrs is None:
            attrs = self._attrs[style] = self._transform(self.style.get_attrs_for_style_str(style))
        return attrs

    def _is_seen(self, cell: Char) -> bool:
        if cell.char != " ":
            return True
        look = self._look(cell.style)
        return bool(look.bgcolor or look.underline or look.strike or look.reverse)

    def _row(self, screen: Screen, y: int, columns: int) -> PaintedRow:
        cells, escapes = screen.data_buffer[y], screen.zero_width_escapes[y]
        end = min(columns, 1 + max((x for x, cell in cells.items() if self._is_seen(cell)), default=-1))
        runs: list[tuple[str, str]] = []
        widths = bytearray()
        style, text, x = "", "", 0
        while x < end:
            cell = cells[x]
            if cell.style != style:
                if text:
                    runs.append((style, text))
                style, text = cell.style, ""
            text += escapes.get(x, "") + cell.char
            width = cell.width or 1
            widths.append(width)
            x += width
        if text:
            runs.append((style, text))
        return PaintedRow(tuple(runs), bytes(widths)) if runs else EMPTY

    def _begin(self) -> None:
        self.output.write_raw(BEGIN_UPDATE)
        self.output.hide_cursor()
        if not self._bracketed_paste_enabled:
            self.output.enable_bracketed_paste()
            self._bracketed_paste_enabled = True
        if not self._cursor_key_mode_reset:
            self.output.reset_cursor_key_mode()
            self._cursor_key_mode_reset = True

    def _end(self, *, shows_cursor: bool, asks: bool) -> None:
        if shows_cursor:
            self.output.show_cursor()
        self.output.write_raw(END_UPDATE + (self._pace.question() if asks else ""))
        self.output.flush()

    def _clear(self) -> None:
        """Erase the area; the cursor is then where its top was."""
        self.output.cursor_up(self._rows_above_cursor(self.output.get_size().columns))
        self.output.write_raw(ERASE_BELOW)
        self._rows = []
        self._cursor_pos = Point(0, 0)
        self._is_stale = False

    def _rows_above_cursor(self, columns: int) -> int:
        """How far the top is, in a terminal that has wrapped our rows again if it has become narrower.

        A cursor behind the end of its row stays on the last part of it. Some terminals put it one row below when that
        part is full; one row too few leaves a line of ours behind, one too many would erase a finished one.
        """
        x, y = self._cursor_pos.x, self._cursor_pos.y
        if not self._reflows or self._last_size is None or columns >= self._last_size.columns:
            return y
        above = sum(row.fold(columns)[0] for row in self._rows[:y])
        if y >= len(self._rows):
            return above
        height, rows = self._rows[y].fold(columns)
        return above + (rows[x] if x < len(rows) else height - 1)

    def _print_finished(self, room: int | None = None) -> None:
        """Lines as they are: the terminal wraps the long ones itself, and knows that they are one when they are copied.

        `room`: characters after which the rest waits; None: there is room for all.
        """
        printed = 0
        for line in self._finished:
            if room is not None and room <= 0:
                break
            self.output.write_raw(f"{line}{RESET}\r\n" if "\x1b" in line else f"{line}\r\n")
            printed += 1
            room = None if room is None else room - len(line)
        del self._finished[:printed]

    def _paint(self, rows: list[PaintedRow], app: Application[object]) -> None:
        """Make the rows of the area these, writing those that differ."""
        self.output.disable_autowrap()
        for y in range(max(len(rows), len(self._rows))):
            row = rows[y] if y < len(rows) else EMPTY
            if y < len(self._rows) and row == self._rows[y]:
                continue
            # The whole row: a terminal wraps again what was ever written to a row since it was erased, and a character
            # whose width we see differently must not shift more than its own row.
            self._move(Point(0, y))
            self.output.write_raw(ERASE_LINE)
            self._write(row.runs, app)
        self.output.enable_autowrap()
        self._rows = rows

    def _write(self, runs: Iterable[tuple[str, str]], app: Application[object]) -> None:
        for style, text in runs:
            self.output.set_attributes(self._look(style), app.color_depth)
            self.output.write_raw(text)
        self.output.write_raw(RESET)

    def _move(self, to: Point) -> None:
        """Move the cursor, to the right from the first column; a row that does not exist yet is made."""
        self.output.cursor_up(max(self._cursor_pos.y - to.y, 0))
        self.output.write_raw("\r" + "\n" * max(to.y - self._cursor_pos.y, 0))
        self.output.cursor_forward(to.x)
        self._cursor_pos = to


class Inline(Application[Result], Generic[Result]):
    """An application of at most a dozen rows below what the terminal has shown before, and what it prints above itself.

    Redraws are frames: one after the keys that were pressed, else at most 15 in a second, and none when nothing has changed.
    The area is as high as its layout wants to be, at most as high as the terminal; when it becomes lower, rows below it
    become blank. At the end it is taken away.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        style: BaseStyle | None = None,
        key_bindings: KeyBindingsBase | None = None,
        input: Input | None = None,  # noqa: A002  (the name that it has in prompt_toolkit)
        output: Output | None = None,
        reflows: bool = True,
        pace: Pace | None = None,
    ) -> None:
        """`reflows`: the terminal wraps its rows again when it becomes narrower (`zottui.terminal.environment.reflows`).

        `pace`: how far the terminal is behind; whoever reads its answers calls `caught_up`.

        What else an `Application` has (`editing_mode`, `cursor`, `clipboard`, `ttimeoutlen`) is set as an attribute.
        """
        super().__init__(
            layout=layout,
            style=style,
            include_default_pygments_style=False,
            key_bindings=key_bindings,
            erase_when_done=True,
            terminal_size_polling_interval=None,  # SIGWINCH says it; this would be a timer that never ends
            input=input,
            output=output,
        )
        self._pace = pace or Pace()
        self._area = _Area(self._merged_style, self.output, reflows=reflows, pace=self._pace)
        self.renderer = self._area
        self._settling: asyncio.TimerHandle | None = None
        self._frame: asyncio.Handle | None = None
        """The next one, if there is to be one."""
        self._drawn_at = -FRAME_S
        """By the clock of the loop."""
        self.key_processor.after_key_press += lambda _: self._draw_soon()

    def invalidate(self) -> None:
        """Draw the next frame when its time has come; in the thread of the event loop."""
        if self._frame is None and self.is_running and self.loop is not None:
            due = max(self.loop.time(), self._drawn_at + FRAME_S, self._pace.held_until)
            self._frame = self.loop.call_at(due, self._draw)

    def caught_up(self) -> None:
        """The terminal has answered, so it has drawn what was written: a frame that waited for that is drawn."""
        self._pace.answered()
        if self._frame is not None:
            self._drop_frame()
            self.invalidate()

    def _draw_soon(self) -> None:
        """Draw it when all keys that were read have been handled."""
        if self.is_running and self.loop is not None:
            self._drop_frame()
            self._frame = self.loop.call_soon(self._draw_for_key)

    def _draw(self) -> None:
        self._frame = None
        self._redraw()
        if self._area.has_more:
            self.invalidate()

    def _draw_for_key(self) -> None:
        self._area.is_for_key = True
        try:
            self._draw()
        finally:
            self._area.is_for_key = False

    def _drop_frame(self) -> None:
        if self._frame:
            self._frame.cancel()
            self._frame = None

    def print_above(self, text: str) -> None:
        """Print lines above the area, with the next frame, and together with what the area is by then.

        `text`: lines without the last newline (an empty text is a blank line); they may hold SGR and OSC 8, and else
        nothing that moves or controls. A long line is one line for whoever copies it. What is printed before the
        application runs or while it is suspended appears when it is drawn again; after its end nothing does.
        """
        self._area.add(text)
        self.invalidate()

    def repaint(self) -> None:
        """Paint the area afresh, after somebody else has written to the terminal; what is above stays."""
        self._area.repaint()
        self.invalidate()

    def begin_again(self) -> None:
        """Draw the area where the cursor is: others have used the terminal meanwhile, and were not expected."""
        self._area.reset()
        self.invalidate()

    def _on_resize(self) -> None:
        # Also when the size ends as it began: a terminal that became lower in between has dropped rows of ours.
        self._area.repaint()
        if self._settling:
            self._settling.cancel()
        self._settling = asyncio.get_running_loop().call_later(SETTLE_S, self._has_settled)

    def _has_settled(self) -> None:
        self._settling = None
        super()._redraw()

    def _redraw(self, render_as_done: bool = False) -> None:
        if render_as_done:
            self._drop_frame()
            if self._settling:
                self._settling.cancel()
                self._settling = None
        elif self._settling:
            return
        elif self._area.has_wrong_size:  # SIGWINCH is on its way
            self._on_resize()
            return
        self._drawn_at = asyncio.get_running_loop().time()
        super()._redraw(render_as_done)
