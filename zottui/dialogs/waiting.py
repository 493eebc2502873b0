"""A dialog that waits for something outside of the terminal, and can only be cancelled."""

from zottui.dialogs.answers import Answer, answered
from zottui.dialogs.frame import framed
from zottui.dialogs.keys import named
from zottui.theme import TextRole
from zottui.ui_context import DialogHost, Row
from zottui.widgets.cells import folded, piece

KEYS = (("esc", "cancel"),)


async def ask(ui: DialogHost, text: str) -> None:
    """Show `text`, which may have several lines, until the user cancels; cancel the call when the wait is over."""
    _: bool | None = await answered(ui, lambda answer: WaitingDialog(text, answer))


class WaitingDialog:
    """A dialog with a text that escape closes."""

    has_editor = False

    def __init__(self, text: str, answer: Answer[bool]) -> None:
        """`answer` gets None when the user cancels."""
        self._text = text
        self._answer = answer

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the text, folded to `width`, and the key hints."""
        first, *others = ([piece(TextRole.STRONG, line)] for line in folded(self._text, width))
        return framed(first, lambda room: others[:room], KEYS, width=width, height=height)

    def key(self, name: str, text: str) -> bool:
        """Cancel with escape, and swallow other keys; ctrl+c and ctrl+d still leave the client."""
        del text
        match named(name):
            case "escape":
                self._answer(None)
            case "c-c" | "c-d":
                return False
            case _:
                pass
        return True
