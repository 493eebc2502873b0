"""An editable line of text, for dialogs that ask for a word or filter a list."""

from zottui.dialogs.keys import PASTED, TYPED, named
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import cells, clean, piece

CURSOR = ("[SetCursorPosition]", "")
"""Fragment that places the terminal's own cursor. Input methods open their window at it."""

HIDDEN = "•"
"""Replaces each character of a secret."""

MAX_CHARS = 10_000
"""Longest line. A larger paste was not meant for a one-line input."""


class Line:
    """The text of the line and its cursor."""

    def __init__(self, text: str = "") -> None:
        """Begin with `text` and the cursor at its end."""
        self.text = text
        self._at = len(text)

    def key(self, name: str, text: str) -> bool:
        """Take a key that edits the line; False for any other key."""
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
        """Return the label and the line; of a long line the part around the cursor."""
        shown = HIDDEN * len(self.text) if is_secret else self.text
        room = max(width - cells(label) - 1, 1)
        start = _start(shown, self._at, room)
        end = self._at
        # Columns, not characters: wide characters take two.
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
    """Return the index of the first character to show so that the cursor stays visible."""
    start = at
    while start > 0 and cells(shown[start - 1 : at]) <= room - 1:
        start -= 1
    return start
