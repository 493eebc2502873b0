"""The words of shell commands, in the tree that tree-sitter makes of a line; for `zotd.core.shell`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_GLOB = re.compile(r"[*?\[]|\{[^}]*(?:,|\.\.)")


class SyntaxNode(Protocol):
    """What is used of a node of tree-sitter, which is not imported with this module."""

    @property
    def type(self) -> str:
        """As tree-sitter has it."""
        ...

    @property
    def text(self) -> bytes | None:
        """As tree-sitter has it."""
        ...

    @property
    def children(self) -> "Sequence[SyntaxNode]":
        """As tree-sitter has it."""
        ...

    @property
    def child_count(self) -> int:
        """As tree-sitter has it."""
        ...

    @property
    def has_error(self) -> bool:
        """As tree-sitter has it."""
        ...

    @property
    def is_missing(self) -> bool:
        """As tree-sitter has it."""
        ...


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    text: str
    """Without quotes; as it was written where only the shell knows its value."""
    is_fixed: bool = True
    """Its value is known."""


class UnknownError(Exception):
    """The text does not say what would run."""


def tree(text: str) -> SyntaxNode:
    """The root of what `text` is parsed to; raises `UnknownError` where there is no parser."""
    try:
        from tree_sitter import Language, Parser  # noqa: PLC0415  (50 ms that no daemon without rules has to pay)
        from tree_sitter_bash import language  # noqa: PLC0415
    except ImportError as error:  # a platform without it: then each line that a rule could be about is asked about
        raise UnknownError from error
    return Parser(Language(language())).parse(text.encode(errors="replace")).root_node


def words_of(command: SyntaxNode) -> list[Word]:
    """Its name and arguments, without assignments and redirections."""
    words = []
    for node in command.children:
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
            return Word(source[2:-1], "\\" not in source)
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
    """Whether nothing but words is in it, whose values no other command gives."""
    waiting = list(command.children)
    if any(node.type == "variable_assignment" or node.type in _REDIRECTS for node in waiting):
        return False
    while waiting:
        node = waiting.pop()
        if node.type in {"command_substitution", "process_substitution", "ERROR"} or node.is_missing:
            return False
        waiting += node.children
    return True
