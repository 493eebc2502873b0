"""Words in a conversation: in what is shown, and in the parts of calls that are folded away."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import groupby

from zotd.wire.content import Message, Text, ToolCall, ToolResult
from zottui.blocks import ToolRan
from zottui.viewer.laying import Laid, Laying, ScreenRow
from zottui.viewer.whole import is_fold


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for. Capitals count when there are some in it."""

    words: str

    @property
    def minds_case(self) -> bool:
        """Whether capitals count."""
        return self.words != self.words.lower()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it is in a line."""
        flags = 0 if self.minds_case else re.IGNORECASE
        return [found.span() for found in re.finditer(re.escape(self.words), text, flags)] if self.words else []

    def may_be_in(self, message: Message) -> bool:
        """Whether it is worth the time to lay this message out: each word is somewhere in it.

        Markdown may stand between two words, so that they are looked for one by one.
        """
        text = "\n".join(texts(message))
        text = text if self.minds_case else text.lower()
        return all(word in text for word in self.words.split())


def hits(query: Query, laid: Laid, laying: Laying) -> list[ScreenRow]:
    """The rows of a message with a hit. One for all that is folded away in a call: the row that says so."""
    found: list[ScreenRow] = []
    for _, rows in groupby(laid.rows, key=lambda row: row.block):
        found += _in_block(query, list(rows), laid, laying)
    return found


def _in_block(query: Query, rows: list[ScreenRow], laid: Laid, laying: Laying) -> list[ScreenRow]:
    number = rows[0].block
    orders = [row.order for row in rows]
    lines = laid.lines[number]
    starts = [(number, at, start) for at, line in enumerate(lines) for start, _ in query.spans(line)]
    found = {bisect_right(orders, start) - 1 for start in starts}
    block = laid.blocks[number]
    if isinstance(block, ToolRan) and number not in laid.expanded:
        hidden = sum(len(query.spans(line)) for line in laying.all_lines(block)) - len(starts)
        if hidden > 0:
            says = (at for at, row in enumerate(rows) if is_fold(lines[row.line]))
            found.add(next(says, int(not lines[0])))  # a card that says nothing: its first line, behind the blank one
    return [rows[at] for at in sorted(found)]


def texts(message: Message) -> list[str]:
    """All that is said in a message: text, calls with their arguments, results."""
    found: list[str] = []
    for part in message.content:
        match part:
            case Text(text=text):
                found.append(text)
            case ToolCall(name=name, args=args):
                found += [name, *map(str, args.values())]
            case ToolResult(content=content):
                found += [inner.text for inner in content if isinstance(inner, Text)]
            case _:
                pass
    return found
