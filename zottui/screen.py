"""Where things stand below the scrollback.

live rows: the model's words, running calls, the queue; a dialog, or the popup of the editor; the editor; the status bar.
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
"""Height of the whole area: a row costs 0.8 ms in each frame."""

ROOMY_ROWS = 16
"""A terminal with fewer has no rows to spare for looks."""

LEAST_LIVE = 2
"""Rows for what happens, however tall the editor is: that it works, and what it works on."""


@dataclass(frozen=True, slots=True)
class Room:
    """The terminal."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Parts:
    """What is shown; each is asked in every frame."""

    live: Callable[[int, int], list[Row]]
    """(width, height) -> rows."""
    status: Callable[[int], Row]
    dialog: Callable[[], Dialog | None]
    """The one that has the keys."""
    editor: AnyContainer
    editor_rows: Callable[[], int]
    """Its height now."""
    room: Callable[[], Room]


class Screen:
    """The layout, and the rows of the frame that is being drawn."""

    def __init__(self, parts: Parts) -> None:
        """Nothing is drawn yet."""
        self._parts = parts
        self._live: list[Row] = []
        self._dialog: list[Row] = []
        self._status: list[Row] = []
        self._keys = FormattedTextControl(lambda: "", focusable=True, show_cursor=False)
        """Has the focus while a dialog hides the editor."""
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
        """No dialog hides it."""
        dialog = self._parts.dialog()
        return dialog is None or dialog.has_editor

    def focus(self) -> None:
        """Give the keys to what is shown: the editor, or the dialog that hides it."""
        self.layout.focus(self._parts.editor if self.shows_editor else self._keys)

    def prepare(self) -> None:
        """Make the rows of the next frame, once: prompt_toolkit asks for them several times."""
        room, dialog = self._parts.room(), self._parts.dialog()
        columns = room.columns - 1  # a full row would be wrapped by a narrower terminal
        most = min(MOST_ROWS, room.rows)
        if dialog is not None:
            most = max(most, room.rows // 3)  # it is drawn when a key is pressed, and shows more
        below = (self._parts.editor_rows() if self.shows_editor else 0) + 1
        self._status = [self._parts.status(room.columns)]
        self._dialog = dialog.rows(columns, max(most - below, 1)) if dialog is not None else []
        left = most - below - len(self._dialog)
        height = max(left, min(LEAST_LIVE, room.rows - below - len(self._dialog)))
        self._live = self._parts.live(columns, height) if self.shows_editor and height > 0 else []
        if below + len(self._dialog) + len(self._live) < most and room.rows >= ROOMY_ROWS:
            self._live = [[], *self._live]  # a blank row between what was said and what is below it


def _window(rows: Callable[[], list[Row]]) -> Window:
    """As high as it has rows."""

    def joined() -> StyleAndTextTuples:
        fragments: StyleAndTextTuples = []
        for row in rows():
            fragments += [("", "\n"), *row] if fragments else [("", ""), *row]
        return fragments

    return Window(FormattedTextControl(joined), height=lambda: len(rows()), dont_extend_height=True)
