"""Finds words in messages, also in the collapsed parts of tool calls."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from zotd.wire.content import Message, Text, ToolCall, ToolResult
from zottui.blocks import ToolRan
from zottui.viewer.layout import LaidOutMessage, RowLayout, ScreenRow
from zottui.viewer.whole import is_fold


@dataclass(frozen=True, slots=True)
class Query:
    """A search text. It is case-sensitive if it contains a capital letter."""

    words: str

    @property
    def minds_case(self) -> bool:
        """Whether the search is case-sensitive."""
        return self.words != self.words.lower()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each match in a line."""
        flags = 0 if self.minds_case else re.IGNORECASE
        return [found.span() for found in re.finditer(re.escape(self.words), text, flags)] if self.words else []

    def may_be_in(self, message: Message) -> bool:
        """Return whether the message can contain a match: each word occurs somewhere in it.

        A cheap test before the message is laid out. It looks for each word alone, since Markdown may be in between.
        """
        text = "\n".join(texts(message))
        text = text if self.minds_case else text.lower()
        return all(word in text for word in self.words.split())


def hits(query: Query, laid: LaidOutMessage, layout: RowLayout) -> list[ScreenRow]:
    """Return the rows of a message with a match. Matches in a collapsed call count for its row `… N more`."""
    found: list[ScreenRow] = []
    for _, rows in groupby(laid.rows, key=lambda row: row.block):
        found += _in_block(query, list(rows), laid, layout)
    return found


def _in_block(query: Query, rows: list[ScreenRow], laid: LaidOutMessage, layout: RowLayout) -> list[ScreenRow]:
    number = rows[0].block
    orders = [row.order for row in rows]
    lines = laid.lines[number]
    starts = [(number, at, start) for at, line in enumerate(lines) for start, _ in query.spans(line)]
    found = {bisect_right(orders, start) - 1 for start in starts}
    block = laid.blocks[number]
    if isinstance(block, ToolRan) and number not in laid.expanded:
        # Compare the number of matches with that of the expanded call: more there means that some are hidden.
        hidden = sum(len(query.spans(line)) for line in layout.all_lines(block)) - len(starts)
        if hidden > 0:
            says = (at for at, row in enumerate(rows) if is_fold(lines[row.line]))
            found.add(next(says, int(not lines[0])))  # a card without such a row: its first line after the blank one
    return [rows[at] for at in sorted(found)]


def conversation(messages: Iterable[Message]) -> str:
    """Return the texts of messages as one, for an external editor."""
    words = ("\n".join(texts(message)).rstrip("\n") for message in messages)
    return "\n\n".join(filter(None, words)) + "\n"


def texts(message: Message) -> list[str]:
    """Return all texts of a message: text, names and arguments of calls, results."""
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
