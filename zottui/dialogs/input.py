"""A dialog that asks for one line of text."""

from zottui.dialogs.answers import Answer, answered
from zottui.dialogs.frame import framed, headed
from zottui.dialogs.keys import named
from zottui.dialogs.line import Line
from zottui.ui_context import DialogHost, Row
from zottui.widgets.cells import POINTER

KEYS = (("enter", "done"), ("esc", "cancel"))


async def ask(ui: DialogHost, title: str, *, text: str = "", is_secret: bool = False) -> str | None:
    """Ask for a line and return it without surrounding spaces; None if the user cancels or types nothing.

    `text` is the initial content. With `is_secret`, the line is shown as dots.
    """
    return await answered(ui, lambda answer: InputDialog(title, answer, text=text, is_secret=is_secret))


class InputDialog:
    """A dialog with a title and an editable line."""

    has_editor = False

    def __init__(self, title: str, answer: Answer[str], *, text: str = "", is_secret: bool = False) -> None:
        """`answer` gets the text, or None."""
        self._title = title
        self._line = Line(text)
        self._is_secret = is_secret
        self._answer = answer

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the title, the line and the key hints; with one row only the line."""
        line = self._line.row(f"{POINTER} ", width, is_secret=self._is_secret)
        if height < 2:
            return [line][:height]
        return framed(headed(self._title), lambda _: [line], KEYS, width=width, height=height)

    def key(self, name: str, text: str) -> bool:
        """Answer with enter, cancel with escape, else edit the line."""
        match named(name):
            case "enter":
                self._answer(self._line.text.strip() or None)
                return True
            case "escape":
                self._answer(None)
                return True
            case _:
                return self._line.key(name, text)
