"""Takes Markdown apart as it comes: what is finished is printed, what is not is shown below."""

import re
import unicodedata
from dataclasses import dataclass, replace

from wcwidth import grapheme_boundary_before

from zottui.blocks import Block
from zottui.columns import word_wrapped, wrapped
from zottui.markdown.cutting import NOTHING, Open, cut, finish, source
from zottui.markdown.rope import EMPTY, Rope
from zottui.sanitize import harmless

_CHARS_PER_CELL = 4
"""How many characters are looked at for each cell of the tail; an emoji that is made of more is rare."""

_BEGUN_SEQUENCE = re.compile(r"\x1b(?:\[[\d;:?]*|[\]PX^_][^\x07\x1b\n]*)?\Z")
_GROWING = {"So", "Sk", "Mn", "Me", "Cf"}
"""Categories of characters that what comes next may still change the width of: emoji, flags, marks, joiners."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The end of a text whose beginning has been printed. A value: `feed` gives the next one."""

    begun: Open = NOTHING
    """The block that is not finished."""
    line: Rope = EMPTY
    """The line that has not ended."""

    @property
    def pending(self) -> str:
        """What is not printed, raw; takes time in proportion to it."""
        return f"{source(self.begun)}{self.line}"

    def feed(self, delta: str) -> tuple[tuple[Block, ...], "Stream"]:
        """The blocks that are finished now, and what is left.

        However a text is cut into deltas, the same lines are printed; work is done where a line ends, and is in
        proportion to the delta.
        """
        if "\n" not in delta:
            return (), replace(self, line=self.line.add(delta))
        first, *lines = delta.split("\n")
        whole = [str(self.line.add(first)), *lines]
        blocks, begun = cut(self.begun, [line.removesuffix("\r") for line in whole[:-1]])
        return tuple(blocks), Stream(begun, EMPTY.add(lines[-1]))

    def end(self) -> tuple[Block, ...]:
        """The blocks of what is left."""
        blocks, begun = cut(self.begun, [str(self.line).removesuffix("\r")] if self.line else [])
        return (*blocks, *finish(begun))


def tail(stream: Stream, rows: int, width: int) -> list[str]:
    """The last lines of what is not printed, raw, for the live area: at most `rows`, of at most `width` columns each.

    Held back is a character or an escape sequence at the very end that what comes next could still change: lines that
    become narrower by a character would be drawn wrongly by many terminals.
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
    """Without what is not complete at its end."""
    text = _BEGUN_SEQUENCE.sub("", text)
    if not text or unicodedata.category(text[-1]) not in _GROWING:
        return text
    return text[: grapheme_boundary_before(text, len(text))]
