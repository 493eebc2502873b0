"""Asking for a line of text."""

from zottui.dialogs.answers import Answer, answered
from zottui.dialogs.frame import framed, headed
from zottui.dialogs.keys import named
from zottui.dialogs.line import Line
from zottui.ui_context import Row, UiContext
from zottui.widgets.cells import POINTER

KEYS = (("enter", "done"), ("esc", "cancel"))


async def ask(desk: UiContext, title: str, *, text: str = "", is_secret: bool = False) -> str | None:
    """What the user types, without blanks around it; None when they leave, or type nothing.

    `text`: what the line begins with. `is_secret`: shown as dots.
    """
    return await answered(desk, lambda answer: InputDialog(title, answer, text=text, is_secret=is_secret))


class InputDialog:
    """The line, as a dialog."""

    has_editor = False

    def __init__(self, title: str, answer: Answer[str], *, text: str = "", is_secret: bool = False) -> None:
        """`answer` is given the text."""
        self._title = title
        self._line = Line(text)
        self._is_secret = is_secret
        self._answer = answer

    def rows(self, width: int, height: int) -> list[Row]:
        """As `Dialog` says."""
        line = self._line.row(f"{POINTER} ", width, is_secret=self._is_secret)
        if height < 2:
            return [line][:height]
        return framed(headed(self._title), lambda _: [line], KEYS, width=width, height=height)

    def key(self, name: str, text: str) -> bool:
        """As `Dialog` says."""
        match named(name):
            case "enter":
                self._answer(self._line.text.strip() or None)
                return True
            case "escape":
                self._answer(None)
                return True
            case _:
                return self._line.key(name, text)
