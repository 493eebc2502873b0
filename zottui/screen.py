"""The layout below the scrollback.

From the top: live rows (the model's text, running calls, the queue), a dialog or the editor's popup, the editor, the
status bar.
"""

from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.containers import AnyContainer
from prompt_toolkit.layout.controls import FormattedTextControl

from zottui.ui_context import Dialog, Row

MOST_ROWS = 12
"""Most rows of the area: each costs 0.8 ms in each frame."""

ROOMY_ROWS = 16
"""Terminals with fewer rows get no blank row above the area."""

LEAST_LIVE = 2
"""Live rows that stay however tall the editor is: one for the activity, one for what it is about."""


@dataclass(frozen=True, slots=True)
class Room:
    """The size of the terminal."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the screen. The functions are called for each frame."""

    live: Callable[[int, int], list[Row]]
    """(width, height) -> live rows."""
    status: Callable[[int], Row]
    dialog: Callable[[], Dialog | None]
    """The dialog that gets the keys, if any."""
    editor: AnyContainer
    editor_rows: Callable[[], int]
    """The editor's current height."""
    room: Callable[[], Room]


class Screen:
    """The layout, with the rows of the current frame."""

    def __init__(self, parts: Parts) -> None:
        """Build the layout; draws nothing."""
        self._parts = parts
        self._live: list[Row] = []
        self._dialog: list[Row] = []
        self._status: list[Row] = []
        # Gets the focus while a dialog hides the editor; prompt_toolkit needs a focused control to handle keys.
        self._keys = FormattedTextControl(lambda: "", focusable=True, show_cursor=False)
        self.layout = Layout(
            HSplit(
                [
                    _window(lambda: self._live),
                    _window(lambda: self._dialog),
                    ConditionalContainer(parts.editor, Condition(lambda: self.shows_editor)),
                    ConditionalContainer(Window(self._keys, height=0), Condition(lambda: not self.shows_editor)),
                    _window(lambda: self._status),
                ]
            ),
            focused_element=parts.editor,
        )

    @property
    def shows_editor(self) -> bool:
        """Whether no dialog hides the editor."""
        dialog = self._parts.dialog()
        return dialog is None or dialog.has_editor

    def focus(self) -> None:
        """Focus the editor, or the dialog that hides it."""
        self.layout.focus(self._parts.editor if self.shows_editor else self._keys)

    def prepare(self) -> None:
        """Build the rows of the next frame once; prompt_toolkit asks for them several times in each frame."""
        room, dialog = self._parts.room(), self._parts.dialog()
        columns = room.columns - 1  # a completely filled row would wrap as soon as the terminal gets narrower
        most = min(MOST_ROWS, room.rows)
        if dialog is not None:
            most = max(most, room.rows // 3)  # a dialog is drawn only after keys, so more rows are affordable
        below = (self._parts.editor_rows() if self.shows_editor else 0) + 1  # the status bar
        # The status bar and the editor always get their rows; the dialog comes next, and live rows take what is left.
        self._status = [self._parts.status(room.columns)]
        self._dialog = dialog.rows(columns, max(most - below, 1)) if dialog is not None else []
        left = most - below - len(self._dialog)
        height = max(left, min(LEAST_LIVE, room.rows - below - len(self._dialog)))
        self._live = self._parts.live(columns, height) if self.shows_editor and height > 0 else []
        if below + len(self._dialog) + len(self._live) < most and room.rows >= ROOMY_ROWS:
            self._live = [[], *self._live]  # a blank row below the scrollback


def _window(rows: Callable[[], list[Row]]) -> Window:
    """Return a window that is exactly as high as its rows."""

    def joined() -> StyleAndTextTuples:
        fragments: StyleAndTextTuples = []
        for row in rows():
            fragments += [("", "\n"), *row] if fragments else [("", ""), *row]
        return fragments

    return Window(FormattedTextControl(joined), height=lambda: len(rows()), dont_extend_height=True)
