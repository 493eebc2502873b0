"""Splits streamed Markdown into finished blocks, which are printed, and a pending rest for the live area."""

import re
import unicodedata
from dataclasses import dataclass, replace

from wcwidth import grapheme_boundary_before

from zottui.blocks import Block
from zottui.columns import word_wrapped, wrapped
from zottui.markdown.cutting import NOTHING, Open, cut, finish, source
from zottui.markdown.rope import EMPTY, Rope
from zottui.sanitize import harmless

# Code points examined for each column of the tail; emoji with more are rare.
_CHARS_PER_CELL = 4

_BEGUN_SEQUENCE = re.compile(r"\x1b(?:\[[\d;:?]*|[\]PX^_][^\x07\x1b\n]*)?\Z")
# Categories of characters whose width the next one may still change: emoji, flags, marks, joiners.
_GROWING = {"So", "Sk", "Mn", "Me", "Cf"}


@dataclass(frozen=True, slots=True)
class Stream:
    """The pending end of a text whose beginning is printed. Immutable: `feed` returns the next one."""

    begun: Open = NOTHING
    """The unfinished block."""
    line: Rope = EMPTY
    """The unfinished line."""

    @property
    def pending(self) -> str:
        """The unprinted source; takes time proportional to its length."""
        return f"{source(self.begun)}{self.line}"

    def feed(self, delta: str) -> tuple[tuple[Block, ...], "Stream"]:
        """Return the blocks that are finished now, and the next stream.

        The result does not depend on how the text is split into deltas. The work is proportional to the delta.
        """
        if "\n" not in delta:  # the usual case: a delta is a few characters
            return (), replace(self, line=self.line.add(delta))
        first, *lines = delta.split("\n")
        whole = [str(self.line.add(first)), *lines]
        # A final "\r" may be half of "\r\n", so it is removed only from complete lines.
        blocks, begun = cut(self.begun, [line.removesuffix("\r") for line in whole[:-1]])
        return tuple(blocks), Stream(begun, EMPTY.add(lines[-1]))

    def end(self) -> tuple[Block, ...]:
        """Return the blocks of the pending rest."""
        blocks, begun = cut(self.begun, [str(self.line).removesuffix("\r")] if self.line else [])
        return (*blocks, *finish(begun))


def tail(stream: Stream, rows: int, width: int) -> list[str]:
    """Return the last lines of the pending source for the live area: at most `rows`, each at most `width` columns.

    A final character or escape sequence that the next delta could change is held back: many terminals draw a line
    wrongly when a character in it becomes narrower.
    """
    wanted = rows * width * _CHARS_PER_CELL
    text = stream.line.end(wanted)
    if len(text) < wanted:
        text = source(stream.begun).end(wanted) + text
    shown = harmless(_settled(text[-wanted:])).rstrip("\n")
    lines = (
        [
            row
            for line in shown.split("\n")[-rows:]
            for part in word_wrapped(line, width)
            for row in wrapped(part, width)
        ]
        if shown
        else []
    )
    return lines[-rows:]


def _settled(text: str) -> str:
    """Remove an incomplete sequence or character at the end."""
    text = _BEGUN_SEQUENCE.sub("", text)
    if not text or unicodedata.category(text[-1]) not in _GROWING:
        return text
    return text[: grapheme_boundary_before(text, len(text))]
