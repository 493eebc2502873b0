"""A line of text with a cursor, for dialogs that ask for a word or filter a list."""

from zottui.dialogs.keys import PASTED, TYPED, named
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import cells, clean, piece

CURSOR = ("[SetCursorPosition]", "")
"""Where the terminal's own cursor is to stand: input methods open their window there."""

HIDDEN = "•"
"""Shown for each character of a secret."""

MAX_CHARS = 10_000
"""A line; what is pasted beyond that was not meant to be one."""


class Line:
    """What has been typed so far."""

    def __init__(self, text: str = "") -> None:
        """Begins with `text`, and the cursor behind it."""
        self.text = text
        self._at = len(text)

    def key(self, name: str, text: str) -> bool:
        """Take a key that edits a line; False for any other."""
        if name in {TYPED, PASTED}:
            self._insert(clean(text))
            return True
        match named(name):
            case "left" | "c-b":
                self._at = max(self._at - 1, 0)
            case "right" | "c-f":
                self._at = min(self._at + 1, len(self.text))
            case "home" | "c-a":
                self._at = 0
            case "end" | "c-e":
                self._at = len(self.text)
            case key:
                return self._delete(key)
        return True

    def _insert(self, words: str) -> None:
        words = words[: MAX_CHARS - len(self.text)]
        self.text = self.text[: self._at] + words + self.text[self._at :]
        self._at += len(words)

    def _delete(self, key: str) -> bool:
        before, behind = self.text[: self._at], self.text[self._at :]
        match key:
            case "backspace":
                before = before[:-1]
            case "delete":
                behind = behind[1:]
            case "c-u":
                before = ""
            case "c-k":
                behind = ""
            case "c-w":
                before = before.rstrip().rpartition(" ")[0] + " " if " " in before.rstrip() else ""
            case _:
                return False
        self.text, self._at = before + behind, len(before)
        return True

    def row(self, label: str, width: int, *, is_secret: bool = False) -> Row:
        """The line behind its label; of a long one the part around the cursor."""
        shown = HIDDEN * len(self.text) if is_secret else self.text
        room = max(width - cells(label) - 1, 1)
        start = _start(shown, self._at, room)
        end = self._at
        while end < len(shown) and cells(shown[start : end + 1]) <= room:
            end += 1
        under = shown[self._at : self._at + 1] if end > self._at else ""
        return [
            piece(TextRole.ACCENT, label),
            piece(TextRole.TEXT, shown[start : self._at]),
            CURSOR,
            piece(TextRole.SELECTED, under or " "),
            piece(TextRole.TEXT, shown[self._at + len(under) : end]),
        ]


def _start(shown: str, at: int, room: int) -> int:
    """The first character that is shown, so that the cursor is."""
    start = at
    while start > 0 and cells(shown[start - 1 : at]) <= room - 1:
        start -= 1
    return start
