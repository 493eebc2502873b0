"""The editor's buffer: placeholders and multi-code-point characters are edited as one unit.

The cursor cannot enter, and a deletion cannot split, a placeholder or a character of several code points (a letter with
accents, a flag, a family emoji). prompt_toolkit has about 200 commands that move or delete, so this is not done in them:
the buffer corrects the result after each change.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from wcwidth import grapheme_boundary_before, iter_graphemes

from zottui.editor.placeholders import Placeholders
from zottui.editor.whole import Span, edit, mended, outside

GRAPHEME_CHARS = 64
"""Most code points that are treated as one character; Unicode allows any number of accents."""

# Surrogates, which stand for input bytes that are not UTF-8. JSON frames cannot carry them.
_HALVES = re.compile("[\ud800-\udfff]")


class PromptBuffer(Buffer):
    """The buffer of one editor."""

    def __init__(self, placeholders: Placeholders) -> None:
        """`placeholders` are those that may occur in the text. Insert the label after adding one."""
        super().__init__(multiline=True, name="editor")
        self._placeholders = placeholders
        self._seen = ""
        self._at = 0
        self._is_edit = True
        # Text and cursor right after `give_back`, to detect whether the user has done anything since.
        self._given_back: tuple[str, int] | None = None
        self.on_text_changed += self._keep_whole
        self.on_cursor_position_changed += self._keep_outside

    def replace(self, text: str, cursor: int | None = None) -> None:
        """Replace the whole text and put the cursor at `cursor`, or at the end; undo restores the old text."""
        self.save_to_undo_stack()
        self._correct(text, len(text) if cursor is None else cursor)

    def give_back(self, text: str) -> None:
        """Replace the text as if the new one were selected: the next typed character replaces it, any other key keeps it."""
        self.replace(text)
        self._given_back = (self.text, self.cursor_position)

    def insert_text(
        self,
        data: str,
        overwrite: bool = False,
        move_cursor: bool = True,
        fire_event: bool = True,
    ) -> None:
        """Insert at the cursor; replaces a text that was just given back."""
        if data != "\n" and self._given_back == (self.text, self.cursor_position):
            self.replace("")
        self._given_back = None
        super().insert_text(data, overwrite, move_cursor, fire_event)

    def undo(self) -> None:
        """Undo the last change."""
        with self._as_it_is():
            super().undo()

    def redo(self) -> None:
        """Redo the last undone change."""
        with self._as_it_is():
            super().redo()

    @contextmanager
    def _as_it_is(self) -> Iterator[None]:
        """Treat changes within the block as a new text, which needs no repair, and not as an edit."""
        self._is_edit = False
        try:
            yield
        finally:
            self._is_edit = True

    def _keep_whole(self, _: Buffer) -> None:
        before, self._seen = self._seen, self.text
        self._at = min(self._at, len(self.text))
        # `_correct` fires this event again, which returns here with `_is_edit` unset.
        if _HALVES.search(self.text):
            self._correct(encodable(self.text), self.cursor_position)
        elif self._is_edit:
            made = edit(before, self.text, self.cursor_position)
            spans = self._placeholders.lost(before, self.text)
            if made.start < made.end:
                spans += [*_grapheme_around(before, made.start), *_grapheme_around(before, made.end)]
            if repaired := mended(before, made, spans):
                self._correct(*repaired)

    def _correct(self, text: str, cursor: int) -> None:
        with self._as_it_is():
            self.document = Document(text, cursor)

    def _keep_outside(self, _: Buffer) -> None:
        self._given_back = None
        spans = [*self._placeholders.spans(self.text), *_grapheme_around(self.text, self.cursor_position)]
        self._at, came_from = outside(self.cursor_position, self._at, spans), self._at
        # Setting the cursor fires this event again; it ends there because the cursor is then outside of all spans.
        if self._at != self.cursor_position:
            self.cursor_position = outside(self.cursor_position, came_from, spans)


def encodable(text: str) -> str:
    """Return `text` with U+FFFD for bytes that are not UTF-8."""
    return _HALVES.sub("\ufffd", text)


def _grapheme_around(text: str, position: int) -> list[Span]:
    """Return the span of the multi-code-point character that `position` is inside of, if any."""
    if position in {0, len(text)} or text[position].isascii():
        return []
    start = grapheme_boundary_before(text, position + 1)
    return [(start, start + len(_first_grapheme(text, start)))]


def _first_grapheme(text: str, position: int) -> str:
    return next(iter_graphemes(text[position : position + GRAPHEME_CHARS]), "")
