"""Renders the inline content of Markdown: emphasis, code, links."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from markdown_it.tree import SyntaxTreeNode

from zotd.client.columns import width_of
from zottui.columns import word_spans
from zottui.sanitize import harmless
from zottui.theme import TextRole, Theme

# Addresses that may become clickable links. Other schemes may start programs.
_LINKABLE = re.compile(r"(?:https?://|mailto:)[!-~]+")

_LIKE_AN_ADDRESS = re.compile(r"\s*(?:\w+://|(?:[\w-]+\.)+[a-z]{2,}(?:/|\s*$))", re.IGNORECASE)

_ROLES = {
    "strong": TextRole.STRONG,
    "em": TextRole.EMPHASIS,
    "s": TextRole.STRUCK,
    "link": TextRole.LINK,
    "image": TextRole.LINK,
}

_HARD_BREAK, _SOFT_BREAK = "\n", "\r"
"""Markers that no other text equals; `lines_of` turns them into a newline or a space."""


@dataclass(frozen=True, slots=True)
class StyledText:
    """Text without newlines in one style."""

    text: str
    roles: tuple[TextRole, ...] = ()
    address: str = ""
    """Target of a click; empty: none."""


Line = list[StyledText]


def lines_of(inline: SyntaxTreeNode, theme: Theme, *, keeps_newlines: bool = False) -> list[Line]:
    """Return the lines of an `inline` node; each hard break begins a new one.

    With `keeps_newlines`, so does each newline of the source, which otherwise is a space.
    """
    lines: list[Line] = [[]]
    for piece in _pieces(inline.children, StyledText(""), theme):
        if piece.text == _HARD_BREAK or (keeps_newlines and piece.text == _SOFT_BREAK):
            lines.append([])
        else:
            lines[-1].append(replace(piece, text=" ") if piece.text == _SOFT_BREAK else piece)
    return lines


def wrapped(line: Line, width: int, *, breaks_words: bool = False) -> list[Line]:
    """Break a line between words into at least one row. See `zottui.columns.word_spans`."""
    spans = word_spans("".join(piece.text for piece in line), width, breaks_words=breaks_words)
    return [line] if len(spans) == 1 else [list(_part(line, start, end)) for start, end in spans]


def _part(line: Line, start: int, end: int) -> Iterator[StyledText]:
    at = 0
    for piece in line:
        first, last = max(start - at, 0), min(end - at, len(piece.text))
        if first < last:
            yield replace(piece, text=piece.text[first:last])
        at += len(piece.text)


def columns(line: Iterable[StyledText]) -> int:
    """Return the width of a line on a terminal."""
    return sum(width_of(piece.text) for piece in line)


def painted(line: Iterable[StyledText], theme: Theme, *under: TextRole) -> str:
    """Return a line with SGR and OSC 8; `under` are roles of the whole line."""
    return "".join(_linked(piece.address, theme.paint_all((*under, *piece.roles), piece.text)) for piece in line)


def _linked(address: str, text: str) -> str:
    """Return a link (OSC 8); see Egmont Koblinger's specification of hyperlinks in terminal emulators."""
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\" if address else text


# --- nodes ------------------------------------------------------------------------------------------------------


def _pieces(nodes: Iterable[SyntaxTreeNode], outer: StyledText, theme: Theme) -> Iterator[StyledText]:
    """Yield the styled texts of nodes; `outer` has the style that they inherit."""
    for node in nodes:
        roles = (*outer.roles, _ROLES[node.type]) if node.type in _ROLES else outer.roles
        match node.type:
            case "hardbreak":
                yield StyledText(_HARD_BREAK)
            case "softbreak":
                yield StyledText(_SOFT_BREAK, roles, outer.address)
            case "link":
                yield from _link(node, StyledText("", roles, str(node.attrs.get("href", ""))), theme)
            case "image":
                yield StyledText("image: " if node.children else "image", roles)
                yield from _link(node, StyledText("", roles, str(node.attrs.get("src", ""))), theme)
            case "code_inline":
                text = harmless(node.content)
                yield StyledText(f"`{text}`" if theme.is_plain else text, (*roles, TextRole.CODE), outer.address)
            case "s" if theme.is_plain:
                yield StyledText("~~", roles)
                yield from _pieces(node.children, StyledText("", roles, outer.address), theme)
                yield StyledText("~~", roles)
            case "strong" | "em" | "s":
                yield from _pieces(node.children, StyledText("", roles, outer.address), theme)
            case _:
                yield StyledText(harmless(node.content), roles, outer.address)


def _link(node: SyntaxTreeNode, link: StyledText, theme: Theme) -> Iterator[StyledText]:
    """Yield a link's text. The address follows it if it cannot be clicked, or if the text looks like another address."""
    can_be_clicked = theme.has_links and _LINKABLE.fullmatch(link.address) is not None
    shown = list(_pieces(node.children, StyledText("", link.roles, link.address if can_be_clicked else ""), theme))
    yield from shown
    text = "".join(piece.text for piece in shown)
    if text == link.address.removeprefix("mailto:"):  # an autolink: its text is the address
        return
    if link.address and (not can_be_clicked or _LIKE_AN_ADDRESS.match(text)):
        yield StyledText(f" ({harmless(link.address)})", (TextRole.MUTED,))
