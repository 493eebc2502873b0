"""Splits Markdown into blocks line by line, as soon as each block is finished.

The line after a block finishes it. So the result depends only on the lines and not on how the text was split into
deltas, and the work for a line does not grow with the text. Parsing the pending text again with each delta would have
neither property. `zottui.markdown.emit` handles the inside of blocks. The lines of a fence are passed on as they arrive.

    Nothing ──line──> Paragraph | Quote | Item | Fence
    Paragraph ──row of dashes below a row──> Table            every block ──end──> Nothing, or the block of that line
    Item ──fence in it──> Fence ──closed──> Item, its rest

It is more lenient than CommonMark where models are: lines of a fence in a list item need not be indented.
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

# Indentation from which on a line is code and cannot begin another block.
_CODE_INDENT = 4


@dataclass(frozen=True, slots=True)
class BetweenBlocks:
    """No block is open: the next line begins one."""


NOTHING = BetweenBlocks()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph. May still become an underlined heading, or a table."""

    text: Rope
    """All lines but the last one, with newlines."""
    last: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table; its rows with newlines."""

    text: Rope


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation; its lines with newlines."""

    text: Rope


@dataclass(frozen=True, slots=True)
class Item:
    """A list item with its nested blocks."""

    offset: int
    """Column of its content."""
    text: Rope = EMPTY
    """Its lines with newlines; empty right after a fence in it."""
    is_tight: bool = False
    """Whether no blank line precedes it."""
    is_rest: bool = False
    """Whether a fence in the item, and with it the item's beginning, is printed already."""
    has_gap: bool = False
    """Whether the last line was blank: then the next one belongs to the item only if it is indented."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced code block; its lines are printed as they arrive."""

    mark: str
    indent: int
    info: str
    before: tuple[str, ...] = ()
    """Its first lines so far; at most `CONTEXT_LINES`."""
    has_begun: bool = False
    item: Item | None = None
    """The list item that contains it."""


Open = BetweenBlocks | Paragraph | Table | Quote | Item | Fence
"""The unfinished block."""


def cut(begun: Open, lines: Sequence[str]) -> tuple[list[Block], Open]:
    """Return the blocks that these lines finish, and the unfinished block. Lines have no newlines."""
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
    """Return the unfinished block at the end of the text."""
    blocks: list[Block] = []
    if isinstance(begun, Fence):
        blocks.append(CodeLines(begun.info, (), begun.before, opens=not begun.has_begun, closes=True))
    else:
        _end(begun, blocks)
    return blocks


def source(begun: Open) -> Rope:
    """Return the source of the unfinished block; empty for a fence, whose lines are printed."""
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
    """Count the bars between the cells of a row, without those at its ends and escaped ones."""
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
    # Only the delimiter row tells that the paragraph's last line is the head of a table. Earlier lines are prose.
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
    """Return a new item, or the fence at its beginning."""
    indent, mark, space, content = found.groups()
    # As in CommonMark: five spaces after the marker are one, followed by code that is indented by four.
    offset = len(indent) + len(mark) + (len(space) if content and len(space) <= _CODE_INDENT else 1)
    if fence := _fence(" " * offset + content):
        blocks.append(Prose(f"{indent}{mark}", tight=is_tight))
        return replace(fence, item=Item(offset, is_rest=True))
    return Item(offset, EMPTY.add(f"{found[0]}\n"), is_tight)


def _longer(item: Item, line: str) -> Item:
    if item.is_rest:
        # The rest of the item is rendered without its beginning. Four columns of indentation would make it code.
        line = " " * min(item.offset, _CODE_INDENT - 1) + _dedented(line, item.offset)
    gap = "\n" if item.has_gap and item.text else ""
    return replace(item, text=item.text.add(f"{gap}{line}\n"), has_gap=False)


def _in_fence(fence: Fence, lines: Sequence[str], i: int, blocks: list[Block]) -> tuple[Open, int]:
    """Take lines from `i` to the end of the fence; return the block that is open then, and the next index."""
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


# --- kinds of lines ---------------------------------------------------------------------------------------------


def _is_blank(line: str) -> bool:
    return not line.strip(" ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _interrupts(line: str) -> bool:
    """Return whether the line ends a paragraph without a blank line."""
    if _indent(line) >= _CODE_INDENT:
        return False
    if _HEADING.match(line) or _RULE.match(line) or _QUOTE.match(line) or _fence(line):
        return True
    # Only 1 may begin a list within a paragraph: other numbers at the beginning of a line are often years.
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
    """Remove at most `columns` columns of leading space."""
    if not columns:
        return line
    start = len(line) - len(line.lstrip(" \t"))
    return line[:start].expandtabs(_CODE_INDENT)[columns:] + line[start:]


def _divides(line: str) -> bool:
    """Return whether the line is the delimiter row of a table."""
    return all(_DASHES.fullmatch(cell) for cell in line.strip(" ").strip("|").split("|"))
