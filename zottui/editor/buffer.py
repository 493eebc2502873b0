"""The text of a prompt: prompt_toolkit's buffer, in which what looks like one thing is one thing.

Neither the cursor nor a deletion stops inside a placeholder or a character of several code points (a letter with its
accents, a flag, a family), whichever command of Emacs or vi moves or deletes.
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
"""No character is longer for us: one can carry any number of accents."""

_HALVES = re.compile("[\ud800-\udfff]")
"""What is left of bytes that are no UTF-8; no frame can carry them."""


class PromptBuffer(Buffer):
    """Of one editor."""

    def __init__(self, placeholders: Placeholders) -> None:
        """`placeholders`: those that may be in the text; whoever adds one inserts it."""
        super().__init__(multiline=True, name="editor")
        self._placeholders = placeholders
        self._seen = ""
        self._at = 0
        self._is_edit = True
        self._given_back: tuple[str, int] | None = None
        """Text and cursor as long as nothing was done with what was given back."""
        self.on_text_changed += self._keep_whole
        self.on_cursor_position_changed += self._keep_outside

    def replace(self, text: str, cursor: int | None = None) -> None:
        """Hold `text` instead, with the cursor there, or at its end; undo brings back what was there."""
        self.save_to_undo_stack()
        self._correct(text, len(text) if cursor is None else cursor)

    def give_back(self, text: str) -> None:
        """Hold `text`, which the next character that is typed replaces, as if it were selected; any other key keeps it."""
        self.replace(text)
        self._given_back = (self.text, self.cursor_position)

    def insert_text(
        self,
        data: str,
        overwrite: bool = False,
        move_cursor: bool = True,
        fire_event: bool = True,
    ) -> None:
        """Insert at the cursor, as prompt_toolkit does."""
        if data != "\n" and self._given_back == (self.text, self.cursor_position):
            self.replace("")
        self._given_back = None
        super().insert_text(data, overwrite, move_cursor, fire_event)

    def undo(self) -> None:
        """The text as it was before the last change."""
        with self._as_it_is():
            super().undo()

    def redo(self) -> None:
        """The text as it was before the last `undo`."""
        with self._as_it_is():
            super().redo()

    @contextmanager
    def _as_it_is(self) -> Iterator[None]:
        """What comes is another text, and not an edit of this one."""
        self._is_edit = False
        try:
            yield
        finally:
            self._is_edit = True

    def _keep_whole(self, _: Buffer) -> None:
        before, self._seen = self._seen, self.text
        self._at = min(self._at, len(self.text))
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
        if self._at != self.cursor_position:
            self.cursor_position = outside(self.cursor_position, came_from, spans)


def encodable(text: str) -> str:
    """`text` with U+FFFD for bytes that were no UTF-8."""
    return _HALVES.sub("\ufffd", text)


def _grapheme_around(text: str, position: int) -> list[Span]:
    """The character of several code points that `position` is inside of; at most one."""
    if position in {0, len(text)} or text[position].isascii():
        return []
    start = grapheme_boundary_before(text, position + 1)
    return [(start, start + len(_first_grapheme(text, start)))]


def _first_grapheme(text: str, position: int) -> str:
    return next(iter_graphemes(text[position : position + GRAPHEME_CHARS]), "")
