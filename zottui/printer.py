"""A prompt_toolkit application below the terminal's scrollback. Finished lines are printed above it, once.

prompt_toolkit can draw such an area, but it erases with a sequence that makes tmux keep a copy, erases too few rows
after the terminal has become narrower, and removes the whole area for each printed line. So this module paints by
itself; layout, keys and editing are prompt_toolkit's. It is the only module that uses private parts of prompt_toolkit:
those of `Renderer` and `Application` that tests/zottui/test_printer.py names. Why: docs/decisions/0019.
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
"""Least seconds between two frames without a key press. A frame of 12 rows takes 2 ms, and the terminal has to paint it
too; people do not read faster. Typed keys are drawn at once: a delay of 70 ms is noticeable."""

SETTLE_S = 0.3
"""Seconds that a new size has to last before a frame is drawn for it. tmux rewraps its rows at once, but reports a size
at most every 0.25 s. A frame for an outdated width would leave rows in the scrollback for ever."""

BEGIN_UPDATE, END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: the terminal shows everything between them at once. Terminals without the mode ignore them."""

ERASE_LINE = "\x1b[K"

ERASE_BELOW = "\r\x1b[K\x1b[C\x1b[J\r"
"""Erase this row and all below it. A plain `CSI J` in the first column of the topmost row makes tmux and iTerm2 move the
whole screen into the scrollback. From the second column on it only erases."""

RESET = "\x1b[m"


class _Area(Renderer):
    """Paints rows below the scrollback, and remembers them so that it can erase all of them again."""

    def __init__(self, style: BaseStyle, output: Output, *, reflows: bool, pace: Pace) -> None:
        self._reflows = reflows
        self._pace = pace
        self.is_for_key = False
        """The next frame is for a typed key: if the terminal lags behind, finished lines wait for a later one."""
        self._finished: list[str] = []
        self._is_stale = False
        self._attrs: dict[str, Attrs] = {}
        self._looks: Hashable = None
        super().__init__(style, output)

    def reset(self, _scroll: bool = False, leave_alternate_screen: bool = True) -> None:
        super().reset(_scroll, leave_alternate_screen)
        self._rows: list[PaintedRow] = []

    def request_absolute_cursor_position(self) -> None:
        """Do nothing: the area starts at the cursor, so its position is known and no report has to be waited for."""

    def add(self, text: str) -> None:
        """Queue lines to print above the area with the next frame."""
        self._finished += text.split("\n")

    @property
    def has_more(self) -> bool:
        """Whether queued lines are left after the last frame."""
        return bool(self._finished)

    def repaint(self) -> None:
        """Paint all rows in the next frame, also unchanged ones."""
        self._is_stale = True

    @property
    def has_wrong_size(self) -> bool:
        """Whether the terminal's size differs from the size of the last frame."""
        return self._last_size not in {None, self.output.get_size()}

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Erase the area, print the queued lines in its place and leave the cursor below them."""
        self.output.write_raw(BEGIN_UPDATE)
        self._clear()
        self._print_finished()
        self.output.write_raw(END_UPDATE)
        self.reset(leave_alternate_screen=leave_alternate_screen)

    def render(self, app: Application[object], layout: Layout, is_done: bool = False) -> None:
        """Write one frame at once: the queued lines, then the changed rows. Write nothing if nothing has changed."""
        size = self.output.get_size()
        screen = self._laid_out(app, layout, size)
        self._follow_looks(app)
        rows = [self._row(screen, y, size.columns) for y in range(screen.height)]
        cursor = screen.get_cursor_position(layout.current_window)
        shape = app.cursor.get_cursor_shape(app)
        # On a slow connection, a frame for a key must be small: finished lines wait for the next one.
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
        screen.show_cursor = False  # a window with a cursor sets it again
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
        """Clear the cache of attributes when the style has changed."""
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
        # Drop invisible trailing cells: written spaces would count as content when the terminal rewraps the row.
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
            width = cell.width or 1  # at least one column, as in prompt_toolkit's own renderer
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
        """Erase the area and leave the cursor at its top."""
        self.output.cursor_up(self._rows_above_cursor(self.output.get_size().columns))
        self.output.write_raw(ERASE_BELOW)
        self._rows = []
        self._cursor_pos = Point(0, 0)
        self._is_stale = False

    def _rows_above_cursor(self, columns: int) -> int:
        """Return how many rows the area's top is above the cursor, after the terminal has rewrapped the painted rows.

        A cursor past the end of its row stays on the row's last part, though some terminals put it one row lower if
        that part is full. When in doubt this counts one row too few: that leaves a stale row of the area, while one too
        many would erase a finished line.
        """
        x, y = self._cursor_pos.x, self._cursor_pos.y
        # Wider terminals join only rows that were wrapped, and ours never are: autowrap is off while they are painted.
        if not self._reflows or self._last_size is None or columns >= self._last_size.columns:
            return y
        above = sum(row.fold(columns)[0] for row in self._rows[:y])
        if y >= len(self._rows):
            return above
        height, rows = self._rows[y].fold(columns)
        return above + (rows[x] if x < len(rows) else height - 1)

    def _print_finished(self, room: int | None = None) -> None:
        """Write queued lines unwrapped: the terminal wraps long lines itself, and joins them again when they are copied.

        After `room` characters the other lines wait for a later frame; None: write all.
        """
        printed = 0
        for line in self._finished:
            if room is not None and room <= 0:
                break
            # A reset behind lines with colours, so that an unterminated sequence cannot colour what follows.
            self.output.write_raw(f"{line}{RESET}\r\n" if "\x1b" in line else f"{line}\r\n")
            printed += 1
            room = None if room is None else room - len(line)
        del self._finished[:printed]

    def _paint(self, rows: list[PaintedRow], app: Application[object]) -> None:
        """Replace the area's rows by `rows`; write only those that differ."""
        self.output.disable_autowrap()  # a row must not wrap, even if the terminal counts a character wider than we do
        for y in range(max(len(rows), len(self._rows))):
            row = rows[y] if y < len(rows) else EMPTY
            if y < len(self._rows) and row == self._rows[y]:
                continue
            # Rewrite the whole row. tmux rewraps everything that was written to a row since it was last erased, not what
            # is visible. And a character whose width we count differently then shifts only its own row.
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
        """Move the cursor. Newlines create rows that do not exist yet; the column is always counted from the first."""
        self.output.cursor_up(max(self._cursor_pos.y - to.y, 0))
        self.output.write_raw("\r" + "\n" * max(to.y - self._cursor_pos.y, 0))
        self.output.cursor_forward(to.x)
        self._cursor_pos = to


class Inline(Application[Result], Generic[Result]):
    """An application of about a dozen rows below the scrollback, which can print lines above itself.

    It draws one frame after pressed keys, else at most 15 a second, and none when nothing has changed. The area is as high
    as its layout, at most as high as the terminal. When it becomes lower, the rows below it become blank. At the end it is
    erased.
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
        """Create the application.

        `reflows`: the terminal rewraps its rows when it becomes narrower (`zottui.terminal.environment.reflows`).
        `pace` measures the terminal's lag; the reader of the terminal's answers must call `caught_up`.

        Set other options of `Application` (`editing_mode`, `cursor`, `clipboard`, `ttimeoutlen`) as attributes.
        """
        super().__init__(
            layout=layout,
            style=style,
            include_default_pygments_style=False,
            key_bindings=key_bindings,
            erase_when_done=True,
            terminal_size_polling_interval=None,  # SIGWINCH reports it; polling would wake an idle client
            input=input,
            output=output,
        )
        self._pace = pace or Pace()
        self._area = _Area(self._merged_style, self.output, reflows=reflows, pace=self._pace)
        self.renderer = self._area
        self._settling: asyncio.TimerHandle | None = None
        # The scheduled frame, if any.
        self._frame: asyncio.Handle | None = None
        # Loop time of the last frame.
        self._drawn_at = -FRAME_S
        self.key_processor.after_key_press += lambda _: self._draw_soon()

    def invalidate(self) -> None:
        """Schedule a frame as soon as the rate limit and the terminal's lag allow. Only in the event loop's thread."""
        if self._frame is None and self.is_running and self.loop is not None:
            due = max(self.loop.time(), self._drawn_at + FRAME_S, self._pace.held_until)
            self._frame = self.loop.call_at(due, self._draw)

    def caught_up(self) -> None:
        """Take the terminal's answer: it has drawn the last frame, so draw a waiting one."""
        self._pace.answered()
        if self._frame is not None:
            self._drop_frame()
            self.invalidate()

    def _draw_soon(self) -> None:
        """Schedule a frame for after the keys that were read together: a paste then costs one frame, not one a key."""
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
        """Print lines above the area with the next frame.

        `text` has no trailing newline; an empty text is a blank line. It may contain SGR and OSC 8 sequences, but nothing
        that moves the cursor. Long lines stay one line when they are copied. Lines that are printed before the
        application runs or while it is suspended appear with its next frame; after its end they are lost.
        """
        self._area.add(text)
        self.invalidate()

    def repaint(self) -> None:
        """Repaint the whole area, after another program has written over it; the scrollback stays."""
        self._area.repaint()
        self.invalidate()

    def begin_again(self) -> None:
        """Draw the area at the cursor without erasing the old one: after SIGCONT the shell's output is in between."""
        self._area.reset()
        self.invalidate()

    def _on_resize(self) -> None:
        # Repaint even if the size ends up as before: a terminal that was lower in between has dropped some of our rows.
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
        elif self._area.has_wrong_size:  # the size changed, and SIGWINCH has not been handled yet
            self._on_resize()
            return
        self._drawn_at = asyncio.get_running_loop().time()
        super()._redraw(render_as_done)
