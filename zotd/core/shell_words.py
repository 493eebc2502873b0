"""Words of shell commands, from the syntax tree of tree-sitter; for `zotd.core.shell`."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_GLOB = re.compile(r"[*?\[]|\{[^}]*(?:,|\.\.)")


class SyntaxNode(Protocol):
    """The part of a tree-sitter node that is used here; tree-sitter itself is imported only when needed."""

    @property
    def type(self) -> str:
        """Node type of the bash grammar, such as `command`."""
        ...

    @property
    def text(self) -> bytes | None:
        """Source text of the node, in UTF-8."""
        ...

    @property
    def start_byte(self) -> int:
        """Position of its first byte in the text that was parsed."""
        ...

    @property
    def end_byte(self) -> int:
        """Position behind its last byte."""
        ...

    @property
    def children(self) -> "Sequence[SyntaxNode]":
        """Child nodes, including anonymous ones such as quotes."""
        ...

    @property
    def child_count(self) -> int:
        """Number of child nodes."""
        ...

    @property
    def has_error(self) -> bool:
        """Whether the node contains a syntax error."""
        ...

    @property
    def is_missing(self) -> bool:
        """Whether the parser inserted the node to recover from an error."""
        ...


class Word(Struct, frozen=True):
    """A word of a command."""

    text: str
    """The value without quotes; the source text if only the shell can compute the value."""
    is_fixed: bool = True
    """Whether the value is known, i.e. it contains no expansion and no glob."""


class UnknownError(Exception):
    """The text does not show which commands would run."""


class _NodeOfOriginal:
    """A node of the masked text, with its own text as it was before."""

    def __init__(self, node: SyntaxNode, original: str) -> None:
        self._node = node
        self._original = original
        self.start_byte = node.start_byte
        self.end_byte = node.end_byte
        self.type = node.type
        self.child_count = node.child_count
        self.has_error = node.has_error
        self.is_missing = node.is_missing

    @property
    def text(self) -> bytes:
        return self._original[self.start_byte : self.end_byte].encode(errors="replace")

    @property
    def children(self) -> Sequence[SyntaxNode]:
        return [_NodeOfOriginal(child, self._original) for child in self._node.children]


def tree(text: str) -> SyntaxNode:
    """Parse `text` and return the root node; raises `UnknownError` if tree-sitter is not installed.

    The scanner of the bash grammar passes every character to `isalpha` and the like, whose table ends at 255: others read
    memory beside it, and some crash the process. So it gets `%` instead of any character that is not ASCII. That is part
    of a word as well, and not of a name; where it means something else, such as in `${%}`, the line is not understood.
    """
    try:
        # Imported here: it takes 50 ms, which a daemon without rules need not spend.
        from tree_sitter import Language, Parser  # noqa: PLC0415
        from tree_sitter_bash import language  # noqa: PLC0415
    except ImportError as error:  # no wheel for this platform: every line that a rule could apply to needs an approval
        raise UnknownError from error
    masked = text if text.isascii() else _NOT_ASCII.sub("%", text)
    root = Parser(Language(language())).parse(masked.encode()).root_node
    return root if masked is text else _NodeOfOriginal(root, text)


def words_of(command: SyntaxNode) -> list[Word]:
    """Return the command's name and arguments, without assignments and redirections."""
    words = []
    for node in command.children:
        # Assignments of `export` and the like are its arguments, and stay.
        if node.type in _REDIRECTS or (node.type == "variable_assignment" and command.type == "command"):
            continue
        words.append(_word(node.children[0] if node.type == "command_name" and node.children else node))
    return words


def _word(node: SyntaxNode) -> Word:
    source = (node.text or b"").decode(errors="replace")
    match node.type:
        case "word" | "number" | "variable_name" | "special_variable_name":
            return Word(
                re.sub(r"\\(.)", r"\1", source, flags=re.DOTALL), not _GLOB.search(source) or _is_quoted(source)
            )
        case "raw_string":
            return Word(source[1:-1])
        case "ansi_c_string":
            return Word(source[2:-1], "\\" not in source)  # escapes are not decoded, so their value is unknown
        case "translated_string" | "string":
            inner = source.removeprefix("$")[1:-1]
            is_fixed = all(child.type in {'"', "$", "string_content"} for child in _leaves(node))
            return Word(re.sub(r'\\([$`"\\])', r"\1", inner), is_fixed)
        case "concatenation":
            parts = [_word(child) for child in node.children]
            text = "".join(part.text for part in parts)
            is_brace = bool(_GLOB.search(source)) and "{" in source
            return Word(text, all(part.is_fixed for part in parts) and not is_brace)
        case _ if node.child_count == 0:
            return Word(source)  # `[`, `export`
        case _:
            return Word(source, is_fixed=False)


def _leaves(node: SyntaxNode) -> Iterator[SyntaxNode]:
    for child in node.children:
        if child.type == "string":
            yield from _leaves(child)
        else:
            yield child


def _is_quoted(source: str) -> bool:
    return all(source[max(found.start() - 1, 0)] == "\\" for found in _GLOB.finditer(source))


def is_simple(command: SyntaxNode) -> bool:
    """Whether the command consists of words only, none of which contains the output of another command."""
    waiting = list(command.children)
    # An assignment can change what the command does: `PATH=/tmp git log`.
    if any(node.type == "variable_assignment" or node.type in _REDIRECTS for node in waiting):
        return False
    while waiting:
        node = waiting.pop()
        if node.type in {"command_substitution", "process_substitution", "ERROR"} or node.is_missing:
            return False
        waiting += node.children
    return True
