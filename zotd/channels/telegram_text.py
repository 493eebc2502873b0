"""Converts the Markdown of a reply to messages in the HTML subset of Telegram's Bot API.

The reply is first converted to plain text with formatting spans, because the length of a message is limited without its
tags, and a span that reaches beyond a message has to be split. Lists, tables and headings have no tags and become text.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token
from wcwidth import wcswidth

PIECE_UNITS = 4096
"""Longest message, in UTF-16 code units without tags."""

LINKS = ("http://", "https://", "mailto:", "tg://")
"""Prefixes of links that Telegram supports; it shows others as text."""

RULE = "—————"
TAGS = {"strong": "b", "em": "i", "s": "s"}
"""HTML tag by the name of the token."""

_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@dataclass(frozen=True, slots=True)
class Piece:
    """One message, as plain text and as HTML."""

    text: str
    """Text without formatting, used if Telegram rejects the HTML."""
    html: str


@dataclass(slots=True)
class _Span:
    start: int
    opening: str
    closing: str
    end: int = 0


def pieces(markdown: str) -> Iterator[Piece]:
    """Split a reply into messages, at line ends if possible, else between words, never inside a character."""
    page = _Page()
    for token in _MARKDOWN.parse(markdown):
        page.take(token)
    text = "".join(page.parts)
    for start, end in _ranges(text):
        yield Piece(text[start:end], _html(text, page.spans, start, end))


@dataclass(slots=True)
class _Page:
    """The text and spans written so far."""

    parts: list[str] = field(default_factory=list)
    spans: list[_Span] = field(default_factory=list)
    """Sorted by start; two spans are nested or disjoint."""
    _size: int = 0
    _open: list[_Span] = field(default_factory=list)
    _gap: int = 0
    """Number of line ends before the next text."""
    _lists: list[int | None] = field(default_factory=list)
    """For each enclosing list, the number of its next item, or None for bullets."""
    _marker: str = ""
    """Marker of the list item whose text comes next."""
    _quotes: int = 0
    _table: list[list[str]] | None = None

    def take(self, token: Token) -> None:
        """Process the next token of the Markdown parser."""
        match token.type:
            case "inline":
                self._inline(token.children or ())
            case "paragraph_open":
                # The parser hides the paragraphs of tight lists, which take one line each.
                self._break(1 if token.hidden else 2)
            case "heading_open":
                self._break(2)
                self._begin("<b>", "</b>")
            case "heading_close":
                self._end()
            case "fence" | "code_block":
                self._code(token.content.rstrip("\n"), token.info.split()[0] if token.info.strip() else "")
            case "html_block":
                self._break(2)
                self._write(token.content.rstrip("\n"))
            case "hr":
                self._break(2)
                self._write(RULE)
            case _:
                self._container(token)

    def _container(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._break(1 if self._lists else 2)
                self._lists.append(int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self._break(1 if self._lists else 2)
            case "list_item_open":
                self._break(1)
                self._marker = self._next_marker()
            case "blockquote_open" | "blockquote_close":
                self._quote(opens=token.type == "blockquote_open")
            case "table_open":
                self._table = []
            case "tr_open" if self._table is not None:
                self._table.append([])
            case "table_close":
                rows, self._table = self._table or [], None
                # Telegram has no tables; a monospaced block keeps the columns aligned.
                self._code(_columns(rows), "")
            case _:
                pass

    def _inline(self, children: Sequence[Token]) -> None:
        if self._table is not None:
            # Without formatting: tags cannot be nested in a preformatted block.
            self._table[-1].append("".join(one.content for one in children))
            return
        for child in children:
            kind, _, edge = child.type.rpartition("_")
            match child.type:
                case "softbreak" | "hardbreak":
                    self._break(1)
                case "code_inline":
                    self._begin("<code>", "</code>")
                    self._write(child.content)
                    self._end()
                case "link_open":
                    url = str(child.attrs.get("href", ""))
                    is_link = url.startswith(LINKS)
                    self._begin(*(f'<a href="{html.escape(url)}">', "</a>") if is_link else ("", ""))
                case _ if edge == "open" and kind in TAGS:
                    self._begin(f"<{TAGS[kind]}>", f"</{TAGS[kind]}>")
                case _ if edge == "close":
                    self._end()
                case _:
                    self._write(child.content)  # the description of an image; HTML is shown as text

    def _code(self, text: str, language: str) -> None:
        self._break(2)
        # Only simple names, because Telegram rejects messages with other values of the attribute.
        named = language.replace("+", "p").replace("#", "sharp").isalnum()
        opening = f'<pre><code class="language-{html.escape(language)}">' if named else "<pre>"
        self._begin(opening, "</code></pre>" if named else "</pre>")
        self._write(text)
        self._end()
        self._break(2)

    def _quote(self, *, opens: bool) -> None:
        self._break(2)
        self._quotes += 1 if opens else -1
        if opens and self._quotes == 1:  # Telegram does not nest quotes
            self._begin("<blockquote>", "</blockquote>")
        elif not opens and self._quotes == 0:
            self._end()

    def _next_marker(self) -> str:
        number = self._lists[-1]
        if number is None:
            return "• "
        self._lists[-1] = number + 1
        return f"{number}. "

    def _break(self, lines: int) -> None:
        begins = bool(self._open) and self._open[-1].start == self._size
        if not self._marker and not begins:  # no line ends after an item's marker or at the start of a span
            self._gap = max(self._gap, lines)

    def _begin(self, opening: str, closing: str) -> None:
        # Pending line ends belong before the span, not into it.
        self._fill()
        span = _Span(self._size, opening, closing)
        self.spans.append(span)
        self._open.append(span)

    def _end(self) -> None:
        self._open.pop().end = self._size

    def _write(self, text: str) -> None:
        self._fill()
        self._put(text)

    def _fill(self) -> None:
        """Write the pending line ends, indentation and item marker."""
        if self._gap and self.parts:
            self._put("\n" * self._gap + "   " * max(0, len(self._lists) - bool(self._marker)))
        self._gap = 0
        marker, self._marker = self._marker, ""
        self._put(marker)

    def _put(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self._size += len(text)


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table for a monospaced font."""
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=False)]
    lines = [
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)) for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _width(text: str) -> int:
    return max(wcswidth(text), 0)


def _html(text: str, spans: Sequence[_Span], start: int, end: int) -> str:
    """Return a part of the text with its tags."""
    parts: list[str] = []
    around: list[_Span] = []
    position = start

    def up_to(place: int) -> None:
        nonlocal position
        parts.append(html.escape(text[position:place], quote=False))
        position = max(position, place)

    def close_before(place: int) -> None:
        while around and around[-1].end <= place:
            up_to(min(around[-1].end, end))
            parts.append(around.pop().closing)

    # A span that began in an earlier message is opened again at the start of this one.
    for span in spans:
        if span.start < end and span.end > start and span.start < span.end:
            close_before(span.start)
            up_to(max(span.start, start))
            parts.append(span.opening)
            around.append(span)
    while around:
        up_to(min(around[-1].end, end))
        parts.append(around.pop().closing)
    up_to(end)
    return "".join(parts)


def _ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each message, without white space between them."""
    start = 0
    while start < len(text) and text[start:].strip():
        end = _fitting(text, start)
        cut = end
        if end < len(text):
            # A cut in the first half would make a very short message; a long line is split in the middle instead.
            half = start + (end - start) // 2
            cuts = (text.rfind("\n", half, end), text.rfind(" ", half, end))
            cut = next((place for place in cuts if place > 0), end)
        shown = len(text[start:cut].rstrip())
        if shown:
            yield start, start + shown
        start = cut
        # White space at a cut is not repeated at the start of the next message.
        while start < len(text) and text[start] in "\n ":
            start += 1


def _fitting(text: str, start: int) -> int:
    """Return where a message that begins at `start` must end at the latest."""
    units = 0
    for position in range(start, len(text)):
        # Telegram counts UTF-16 code units, of which a character beyond the BMP takes two.
        units += 1 + (ord(text[position]) > 0xFFFF)
        if units > PIECE_UNITS:
            return position
    return len(text)
