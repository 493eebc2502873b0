"""Renders a block of Markdown as lines for the terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from zottui.blocks import CodeLines
from zottui.markdown.code import RULE_COLUMNS, fenced
from zottui.markdown.cutting import bars
from zottui.markdown.inline import Line, lines_of, painted, wrapped
from zottui.markdown.tables import table_lines
from zottui.sanitize import harmless
from zottui.theme import TextRole, Theme

PARSED_CHARS = 20_000
"""Longer blocks are shown as source: the parser may take a second for them."""

NESTED = 40
"""Deepest nesting; deeper blocks are shown as source. The parser has such a limit too, and drops what is below it."""

COLOURED_HEADINGS = 2
"""Heading levels with a colour; lower ones are bold."""

NARROWEST = 20
"""Least columns of prose, however deep it is nested; the terminal wraps what does not fit."""

# Check boxes of task lists.
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}

# Most columns of a block's own indentation; four would mean code.
_INDENT = 3


def markdown_lines(source: str, width: int, theme: Theme) -> list[str]:
    """Return the lines of a block, without blank ones at its beginning and end."""
    text = harmless(source)
    nodes = _parsed(text)
    if nodes is None:
        return text.split("\n")
    indent = len(text) - len(text.lstrip(" "))
    start = " " * indent if indent <= _INDENT else ""
    emitter = Emitter(theme, text.split("\n"), width - len(start))
    return [f"{start}{line}" if line else "" for line in emitter.blocks(nodes)]


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Return a parser for CommonMark with tables. HTML and link definitions stay text, so that nothing is lost."""
    options = {"html": False, "maxNesting": NESTED}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).disable("reference")


def _parsed(text: str) -> list[SyntaxTreeNode] | None:
    """Parse text; None if it should be shown as source."""
    if len(text) > PARSED_CHARS:
        return None
    tokens = _parser().parse(text)
    # The parser stops at this level without an error, so a token that reaches it may have lost content.
    if any(inner.level >= NESTED - 1 for token in tokens for inner in (token, *(token.children or ()))):
        return None
    return SyntaxTreeNode(tokens).children


@dataclass(frozen=True, slots=True)
class Emitter:
    """Renders syntax tree nodes as lines."""

    theme: Theme
    source: Sequence[str]
    """The parsed lines."""
    width: int
    depth: int = 0
    """Number of lists around it."""
    under: tuple[TextRole, ...] = ()
    """Roles of all text here."""

    def blocks(self, nodes: Iterable[SyntaxTreeNode], *, is_tight: bool = False) -> list[str]:
        """Return the lines of all nodes, with a blank line between two of them unless `is_tight`."""
        lines: list[str] = []
        for node in nodes:
            if lines and not is_tight:
                lines.append("")
            lines += self._block(node)
        return lines

    def _block(self, node: SyntaxTreeNode) -> list[str]:
        match node.type:
            case "paragraph":
                return self._paragraph(node)
            case "heading":
                return self._heading(node)
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "blockquote":
                return self._quote(node)
            case "table":
                return self._table(node)
            case "hr":
                return [_rule(self.theme, self.width)]
            case _:
                return self._code(node)

    def _paragraph(self, node: SyntaxTreeNode) -> list[str]:
        inline = node.children[0]
        # HTML is shown as text; joining its lines would make it unreadable.
        lines = lines_of(inline, self.theme, keeps_newlines=inline.content.startswith("<"))
        return [painted(row, self.theme, *self.under) for row in self._rows(lines)]

    def _rows(self, lines: Sequence[Line], taken: int = 0) -> list[Line]:
        """Break lines between words, leaving `taken` columns free."""
        if not self.theme.wraps_words:
            return list(lines)
        return [row for line in lines for row in wrapped(line, max(self.width - taken, NARROWEST))]

    def _heading(self, node: SyntaxTreeNode) -> list[str]:
        level = int(node.tag.removeprefix("h"))
        role = TextRole.HEADING if level <= COLOURED_HEADINGS else TextRole.STRONG
        mark = f"{'#' * level} " if self.theme.is_plain else ""
        rows = self._rows(lines_of(node.children[0], self.theme), taken=len(mark))
        return [mark + painted(row, self.theme, *self.under, role) for row in rows]

    def _list(self, node: SyntaxTreeNode) -> list[str]:
        lines: list[str] = []
        is_tight = not any(
            child.type == "paragraph" and not child.hidden for item in node.children for child in item.children
        )
        for item in node.children:
            if lines and not is_tight:
                lines.append("")
            lines += self._item(item, is_tight=is_tight)
        return lines

    def _item(self, item: SyntaxTreeNode, *, is_tight: bool) -> list[str]:
        mark = f"{item.info}{item.markup} " if item.info else self._bullet()
        inside = replace(self, depth=self.depth + 1, width=self.width - len(mark))
        first, *others = inside.blocks(item.children, is_tight=is_tight) or [""]
        if first[:4] in _BOXES and not self.theme.is_plain:
            first = _BOXES[first[:4]] + first[4:]
        indent = " " * len(mark)
        return [self.theme.paint(TextRole.ACCENT, mark) + first, *(indent + line if line else "" for line in others)]

    def _bullet(self) -> str:
        if self.theme.is_plain:
            return "- "
        return "◦ " if self.depth % 2 else "• "

    def _quote(self, node: SyntaxTreeNode) -> list[str]:
        bar = ">" if self.theme.is_plain else self.theme.paint(TextRole.MUTED, "│")
        inside = replace(self, under=(*self.under, TextRole.QUOTE), width=self.width - 2)
        return [f"{bar} {line}" if line else bar for line in inside.blocks(node.children)]

    def _table(self, node: SyntaxTreeNode) -> list[str]:
        begin, end = node.map or (0, 0)
        raw = self.source[begin:end]
        rows = [
            [lines_of(cell.children[0], self.theme)[0] for cell in row.children]
            for part in node.children
            for row in part.children
        ]
        if any(bars(line.strip(" >")) >= len(rows[0]) for line in raw):
            return [*raw]  # the parser drops cells beyond the number of columns, so show the source
        head = node.children[0].children[0].children
        sides = [str(cell.attrs.get("style", "")).removeprefix("text-align:") for cell in head]
        return table_lines(rows, sides, self.width, self.theme)

    def _code(self, node: SyntaxTreeNode) -> list[str]:
        code = CodeLines(node.info, tuple(node.content.removesuffix("\n").split("\n")), opens=True, closes=True)
        return fenced(code, self.width, self.theme)


def _rule(theme: Theme, width: int) -> str:
    return "---" if theme.is_plain else theme.paint(TextRole.MUTED, "─" * min(RULE_COLUMNS, width))
