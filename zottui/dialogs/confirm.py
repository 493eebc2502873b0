"""A yes-or-no question before something that cannot be undone."""

from zottui.dialogs.answers import Answer, answered
from zottui.dialogs.frame import framed
from zottui.dialogs.keys import letter
from zottui.theme import TextRole
from zottui.ui_context import DialogHost, Row
from zottui.widgets.cells import folded, piece

KEYS = (("y", "yes"), ("n", "no"))


async def ask(ui: DialogHost, question: str) -> bool:
    """Return whether the user answers yes. Enter and escape mean no. `question` may have several lines."""
    said: bool | None = await answered(ui, lambda answer: Confirm(question, answer))
    return said is True


class Confirm:
    """A dialog with a question that `y` or `n` answers."""

    has_editor = False

    def __init__(self, question: str, answer: Answer[bool]) -> None:
        """`answer` gets True for yes and False for no."""
        self._question = question
        self._answer = answer

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the question, folded to `width`, and the key hints."""
        first, *others = ([piece(TextRole.STRONG, line)] for line in folded(self._question, width))
        return framed(first, lambda room: others[:room], KEYS, width=width, height=height)

    def key(self, name: str, text: str) -> bool:
        """Answer, or swallow the key: no other letter may answer by accident. ctrl+c and ctrl+d still leave the client."""
        match letter(name, text):
            case "y":
                self._answer(True)
            case "n" | "enter" | "escape":
                self._answer(False)
            case "c-c" | "c-d":
                return False
            case _:
                pass
        return True
