"""Lines of Markdown, one after the other, made into blocks as soon as these are finished.

A block is finished by the line behind it. So what is made of a text depends on its lines only, and not on the pieces in
which they come, and the work for a line does not grow with the text: neither would hold for parsing all that is left
over whenever more of it comes. What is inside a block, and what it looks like, is for `zottui.markdown.emit`; a fence
needs no end, and gives its lines as they come.

    Nothing ──line──> Paragraph | Quote | Item | Fence
    Paragraph ──row of dashes below a row──> Table            every block ──end──> Nothing, or the block of that line
    Item ──fence in it──> Fence ──closed──> Item, its rest

It is more lenient than CommonMark where models are: the lines of a fence in a list item need not be indented.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from zottui.blocks import Block, CodeLines, Prose
from zottui.markdown import CONTEXT_LINES
from zottui.markdown.rope import EMPTY, Rope

_HEADING = re.compile(r" {0,3}#{1,6}(?: |$)")
_RULE = re.compile(r" {0,3}([-*_])(?: *\1){2,} *$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+) *$")
_QUOTE = re.compile(r" {0,3}>")
_ITEM = re.compile(r"( {0,3})([-+*]|\d{1,9}[.)])( +|$)(.*)")
_FENCE = re.compile(r"( *)(?:(`{3,})([^`]*)|(~{3,})(.*))$")
_DASHES = re.compile(r" *:?-+:? *")

_CODE_INDENT = 4
"""Columns from which a line is code, and no marker of anything."""


@dataclass(frozen=True, slots=True)
class BetweenBlocks:
    """Between two blocks."""


NOTHING = BetweenBlocks()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Or a heading that will be underlined, or a table that has not shown it yet."""

    text: Rope
    """All lines but the last, each with its newline."""
    last: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, each with its newline."""

    text: Rope


@dataclass(frozen=True, slots=True)
class Quote:
    """Lines of a quotation, each with its newline."""

    text: Rope


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a list, with what is nested in it."""

    offset: int
    """Column in which its content begins."""
    text: Rope = EMPTY
    """Its lines, each with its newline; empty directly behind a fence in it."""
    is_tight: bool = False
    """No blank line before it."""
    is_rest: bool = False
    """A fence in the item has been printed, and its beginning with it."""
    has_gap: bool = False
    """The last line was blank: the next one belongs to it only if indented."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block, the lines of which are printed as they come."""

    mark: str
    indent: int
    info: str
    before: tuple[str, ...] = ()
    """Its first lines, as far as they came; at most `CONTEXT_LINES`."""
    has_begun: bool = False
    item: Item | None = None
    """The list item that it is in."""


Open = BetweenBlocks | Paragraph | Table | Quote | Item | Fence
"""What has begun and is not finished."""


def cut(begun: Open, lines: Sequence[str]) -> tuple[list[Block], Open]:
    """The blocks that these lines finish, and what is open behind them; lines without their newlines."""
    blocks: list[Block] = []
    i = 0
    while i < len(lines):
        if isinstance(begun, Fence):
            begun, i = _in_fence(begun, lines, i, blocks)
        else:
            begun = _next(begun, lines[i].expandtabs(_CODE_INDENT), blocks)
            i += 1
    return blocks, begun


def finish(begun: Open) -> list[Block]:
    """The block that is open, when nothing comes any more."""
    blocks: list[Block] = []
    if isinstance(begun, Fence):
        blocks.append(CodeLines(begun.info, (), begun.before, opens=not begun.has_begun, closes=True))
    else:
        _end(begun, blocks)
    return blocks


def source(begun: Open) -> Rope:
    """What is open, as it was written; of a fence nothing, since its lines are printed."""
    match begun:
        case BetweenBlocks() | Fence():
            return EMPTY
        case Paragraph(text, last):
            return text.add(f"{last}\n")
        case Table(text) | Quote(text):
            return text
        case Item():
            return begun.text


def bars(row: str) -> int:
    """How many bars stand between the cells of a row; those at its ends, and escaped ones, are none."""
    return len(re.findall(r"(?<!\\)\|", row.strip(" |")))


# --- one line ---------------------------------------------------------------------------------------------------


def _next(begun: BetweenBlocks | Paragraph | Table | Quote | Item, line: str, blocks: list[Block]) -> Open:
    match begun:
        case BetweenBlocks():
            return _begin(line, blocks)
        case Paragraph():
            return _in_paragraph(begun, line, blocks)
        case Table():
            goes_on = "|" in line and not _interrupts(line)
            return Table(begun.text.add(f"{line}\n")) if goes_on else _end_and_begin(begun, line, blocks)
        case Quote():
            goes_on = not _is_blank(line) and (_QUOTE.match(line) is not None or not _interrupts(line))
            return Quote(begun.text.add(f"{line}\n")) if goes_on else _end_and_begin(begun, line, blocks)
        case Item():
            return _in_item(begun, line, blocks)


def _begin(line: str, blocks: list[Block]) -> Open:
    if _is_blank(line):
        return NOTHING
    if _indent(line) >= _CODE_INDENT:
        return Paragraph(EMPTY, line)
    if fence := _fence(line):
        return fence
    if _HEADING.match(line) or _RULE.match(line):
        blocks.append(Prose(line.rstrip(" ")))
        return NOTHING
    if _QUOTE.match(line):
        return Quote(EMPTY.add(f"{line}\n"))
    if found := _ITEM.match(line):
        return _item(found, blocks, is_tight=False)
    return Paragraph(EMPTY, line)


def _in_paragraph(begun: Paragraph, line: str, blocks: list[Block]) -> Open:
    if _UNDERLINE.match(line):
        _end(Paragraph(begun.text.add(f"{begun.last}\n"), line), blocks)
        return NOTHING
    if _is_blank(line) or _interrupts(line):
        return _end_and_begin(begun, line, blocks)
    if "|" in begun.last and _divides(line) and bars(begun.last) == bars(line):
        _add(begun.text, blocks)
        return Table(EMPTY.add(f"{begun.last}\n{line}\n"))
    return Paragraph(begun.text.add(f"{begun.last}\n"), line)


def _in_item(begun: Item, line: str, blocks: list[Block]) -> Open:
    if _is_blank(line):
        return replace(begun, has_gap=True)
    if _indent(line) >= begun.offset:
        if fence := _fence(line):
            _end(begun, blocks)
            return replace(fence, item=Item(begun.offset, is_rest=True))
        return _longer(begun, line)
    found = _ITEM.match(line)
    if found and not _RULE.match(line):
        _end(begun, blocks)
        return _item(found, blocks, is_tight=bool(begun.text) and not begun.has_gap)
    if begun.has_gap or not begun.text or _interrupts(line):
        return _end_and_begin(begun, line, blocks)
    return _longer(begun, line)


def _item(found: re.Match[str], blocks: list[Block], *, is_tight: bool) -> Open:
    """A new item, or the fence that it begins with."""
    indent, mark, space, content = found.groups()
    # Five spaces are one, and code that is indented by four.
    offset = len(indent) + len(mark) + (len(space) if content and len(space) <= _CODE_INDENT else 1)
    if fence := _fence(" " * offset + content):
        blocks.append(Prose(f"{indent}{mark}", tight=is_tight))
        return replace(fence, item=Item(offset, is_rest=True))
    return Item(offset, EMPTY.add(f"{found[0]}\n"), is_tight)


def _longer(item: Item, line: str) -> Item:
    if item.is_rest:
        # What is left of an item stands by itself now. Four columns would make code of it.
        line = " " * min(item.offset, _CODE_INDENT - 1) + _dedented(line, item.offset)
    gap = "\n" if item.has_gap and item.text else ""
    return replace(item, text=item.text.add(f"{gap}{line}\n"), has_gap=False)


def _in_fence(fence: Fence, lines: Sequence[str], i: int, blocks: list[Block]) -> tuple[Open, int]:
    """Take lines from `i` on, up to the end of the fence; what is open then, and the line behind."""
    end = next((k for k in range(i, len(lines)) if _closes(fence, lines[k])), len(lines))
    is_closed = end < len(lines)
    shown = tuple(_dedented(line, fence.indent) for line in lines[i:end])
    blocks.append(CodeLines(fence.info, shown, fence.before, opens=not fence.has_begun, closes=is_closed))
    if is_closed:
        return fence.item or NOTHING, end + 1
    before = fence.before + shown[: CONTEXT_LINES - len(fence.before)]
    return replace(fence, before=before, has_begun=True), end


def _end_and_begin(begun: Open, line: str, blocks: list[Block]) -> Open:
    _end(begun, blocks)
    return _begin(line, blocks)


def _end(begun: Open, blocks: list[Block]) -> None:
    _add(source(begun), blocks, is_tight=isinstance(begun, Item) and begun.is_tight)


def _add(text: Rope, blocks: list[Block], *, is_tight: bool = False) -> None:
    if text:
        blocks.append(Prose(str(text).rstrip("\n"), tight=is_tight))


# --- what a line is ---------------------------------------------------------------------------------------------


def _is_blank(line: str) -> bool:
    return not line.strip(" ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _interrupts(line: str) -> bool:
    """Whether the line ends a paragraph without a blank line between."""
    if _indent(line) >= _CODE_INDENT:
        return False
    if _HEADING.match(line) or _RULE.match(line) or _QUOTE.match(line) or _fence(line):
        return True
    # A number at the beginning of a line is the first of a list, or a year.
    found = _ITEM.match(line)
    return found is not None and bool(found[4]) and found[2] in {"-", "+", "*", "1.", "1)"}


def _fence(line: str) -> Fence | None:
    found = _FENCE.match(line)
    if not found:
        return None
    indent, ticks, info, tildes, other = found.groups()
    return Fence(ticks or tildes, len(indent), (info or other or "").strip())


def _closes(fence: Fence, line: str) -> bool:
    mark = line.strip(" \t")
    is_mark = len(mark) >= len(fence.mark) and not mark.strip(fence.mark[0])
    return is_mark and _indent(line.expandtabs(_CODE_INDENT)) < fence.indent + _CODE_INDENT


def _dedented(line: str, columns: int) -> str:
    """Without so many columns of space at the beginning, or as many as there are."""
    if not columns:
        return line
    start = len(line) - len(line.lstrip(" \t"))
    return line[:start].expandtabs(_CODE_INDENT)[columns:] + line[start:]


def _divides(line: str) -> bool:
    """Whether it is what stands between the head of a table and its rows."""
    return all(_DASHES.fullmatch(cell) for cell in line.strip(" ").strip("|").split("|"))
