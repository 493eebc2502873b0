"""Highlights source code line by line.

A fence is printed while the model writes it, and printed lines cannot change. So each line is highlighted when it ends,
from the lexer's state after the previous lines. Pygments does not expose that state, and would have to start at the first
line again for each new one, so this module interprets its rule tables itself. Lexers without tables (JSON, shell
sessions) or with additional code (YAML, Ruby) get each line alone.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pygments.lexer import ExtendedRegexLexer, Lexer, RegexLexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from zotd.client.columns import clipped
from zottui.blocks import CodeLines
from zottui.markdown import CONTEXT_LINES
from zottui.sanitize import harmless
from zottui.theme import Syntax, TextRole, Theme, painted

RULE_COLUMNS = 40
"""Length of the rules around code. Not the terminal's width: they would wrap when it becomes narrower."""

FENCE = "```"
"""Printed before and after code in the plain theme."""

LINE_CHARS = 1_000
"""Longer lines, as in generated files, are not highlighted: some lexer rules take quadratic time."""

CARRIED_CHARS = 8_000
"""Most characters of an unfinished comment or string that are lexed again with the next line."""

REMEMBERED = 8
"""Fences whose lexer state is cached."""

MOVES_AT_ONE_PLACE = 100
"""Most state changes without progress; some lexers would loop for ever."""

# Ends of comments in most languages. They are appended to each line while it is lexed: many lexers match a whole
# comment by one rule, which does not match before its end is there.
_CLOSERS = "*/-->"

# Our kinds by Pygments token type; a type that is missing here has the kind of its parent.
_SYNTAX = {
    "Comment": Syntax.COMMENT,
    "Comment.Preproc": Syntax.KEYWORD,
    "Comment.PreprocFile": Syntax.STRING,
    "Keyword": Syntax.KEYWORD,
    "Keyword.Constant": Syntax.NUMBER,
    "Keyword.Type": Syntax.BUILTIN,
    "Literal.String": Syntax.STRING,
    "Literal.String.Affix": Syntax.KEYWORD,
    "Literal.String.Interpol": Syntax.BUILTIN,
    "Literal.Number": Syntax.NUMBER,
    "Name.Function": Syntax.NAME,
    "Name.Class": Syntax.NAME,
    "Name.Attribute": Syntax.NAME,
    "Name.Tag": Syntax.NAME,
    "Name.Builtin": Syntax.BUILTIN,
    "Name.Builtin.Pseudo": Syntax.NUMBER,
    "Name.Decorator": Syntax.BUILTIN,
    "Name.Exception": Syntax.BUILTIN,
    "Name.Variable": Syntax.BUILTIN,
    "Operator.Word": Syntax.KEYWORD,
    "Generic.Inserted": Syntax.ADDED,
    "Generic.Deleted": Syntax.REMOVED,
    "Generic.Heading": Syntax.NAME,
    "Generic.Subheading": Syntax.NAME,
    "Generic.Prompt": Syntax.COMMENT,
}

Piece = tuple[Syntax | None, str]

Token = tuple[int, tuple[str, ...], str]
"""(index, type, text); the index counts from the beginning of the lexed text."""

Kind = tuple[str, ...] | Callable[[Lexer, re.Match[str]], Iterable[Token]] | None
"""A token type, a function that yields tokens from the match, or None for no token."""

Moves = tuple[str, ...] | str | int | None
"""States to push; a negative number pops that many."""

Rule = tuple[Callable[[str, int], re.Match[str] | None], Kind, Moves]


@dataclass(frozen=True, slots=True)
class Lexed:
    """The lexer's state after a line."""

    stack: tuple[str, ...] = ("root",)
    carried: str = ""
    """Text of a token that did not end with the line."""


# Cache of states by lexer and lines, newest last. A lost entry only costs time.
_after: dict[tuple[str, tuple[str, ...]], Lexed] = {}


def fenced(code: CodeLines, width: int, theme: Theme) -> list[str]:
    """Return the lines of a part of a fence, with rules at its beginning and end; the first one names the language.

    There is no frame beside the code, so that it can be copied, and the terminal wraps its lines.
    """
    lines = highlighted(code.language, code.lines, code.before, theme)
    if theme.is_plain:
        first, last = f"{FENCE}{harmless(code.language)}", FENCE
    else:
        length = min(RULE_COLUMNS, width)
        label = clipped(language_of(harmless(code.language)) or "code", length - len("──  ─"))
        first, last = (theme.paint(TextRole.MUTED, line.ljust(length, "─")) for line in (f"── {label} ", ""))
    return [*([first] if code.opens else []), *lines, *([last] if code.closes else [])]


def highlighted(info: str, lines: Sequence[str], before: tuple[str, ...], theme: Theme) -> list[str]:
    """Return sanitized and highlighted lines of a fence; `before` are its earlier lines, up to `CONTEXT_LINES`.

    Unknown languages are painted as `TextRole.CODE`. Lines after `CONTEXT_LINES` are not highlighted.
    """
    shown = [harmless(line) for line in lines]
    lexer = _lexer(language_of(info))
    if theme.is_plain:
        return shown
    if lexer is None:
        return [theme.paint(TextRole.CODE, line) for line in shown]
    coloured = max(0, CONTEXT_LINES - len(before))  # of these lines, so that a long fence costs no more than its limit
    state = _state(lexer, before)
    painted_lines: list[str] = []
    for line in shown[:coloured]:
        pieces, state = _lex(lexer, line, state)
        painted_lines.append("".join(painted(theme.code.get(kind, "") if kind else "", text) for kind, text in pieces))
    _remember(lexer, (*before, *lines[:coloured]), state)
    return painted_lines + shown[coloured:]


def language_of(info: str) -> str:
    """Return the language in a fence's info string: `python` for "python title=x", "{.python}" and "Python"."""
    found = re.search(r"[\w+#.-]+", info)
    return found[0].lstrip(".").lower() if found else ""


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    """Return the lexer of a language; None if unknown. Both are cached: for an unknown one Pygments loads all plugins."""
    try:
        return get_lexer_by_name(language) if language else None
    except ClassNotFound:
        return None


def _state(lexer: Lexer, lines: tuple[str, ...]) -> Lexed:
    state = _after.get((lexer.name, lines))
    if state is None:
        state = Lexed()
        for line in lines:
            _, state = _lex(lexer, harmless(line), state)
    return state


def _remember(lexer: Lexer, lines: tuple[str, ...], state: Lexed) -> None:
    _after[lexer.name, lines] = state
    for oldest in list(islice(_after, max(0, len(_after) - REMEMBERED))):
        del _after[oldest]


# --- one line ---------------------------------------------------------------------------------------------------


def _lex(lexer: Lexer, line: str, state: Lexed) -> tuple[list[Piece], Lexed]:
    """Return the line in fragments, and the state after it."""
    if len(line) > LINE_CHARS:
        return [(None, line)], state
    rules: dict[str, list[Rule]] | None = getattr(lexer, "_tokens", None)
    if not isinstance(lexer, RegexLexer) or isinstance(lexer, ExtendedRegexLexer) or rules is None:
        return _pieces(lexer.get_tokens_unprocessed(f"{line}\n"), line, 0), state
    text = f"{state.carried}{line}\n"
    tokens, following, stack = _follow(lexer, rules, text, state.stack)
    carried = text[following:] if len(text) - following <= CARRIED_CHARS else ""
    return _pieces(tokens, text[:-1], len(state.carried)), Lexed(stack, carried)


def _follow(
    lexer: Lexer, rules: Mapping[str, list[Rule]], text: str, states: tuple[str, ...]
) -> tuple[list[Token], int, tuple[str, ...]]:
    """Return the tokens of `text`, and the index and states from which to continue with the next line.

    The index is the end of `text`, or the beginning of a token that is not finished.
    """
    tokens: list[Token] = []
    stack = list(states)
    seen = text + _CLOSERS
    place = moves_here = 0
    while place < len(text):
        found, kind, moves = _first_match(rules[stack[-1]], seen, place)
        if not found or moves_here > MOVES_AT_ONE_PLACE:
            place, moves_here = place + 1, 0
            continue
        if callable(kind):  # a callback such as `bygroups`
            tokens += kind(lexer, found)
        elif kind is not None:
            tokens.append((place, kind, found[0]))
        if found.end() > len(text):  # the match needs the appended closers: the token is not finished
            break
        moves_here = moves_here + 1 if found.end() == place else 0
        place = found.end()
        _move(stack, moves)
    return tokens, place, tuple(stack)


def _first_match(rules: list[Rule], text: str, place: int) -> tuple[re.Match[str] | None, Kind, Moves]:
    for matches, kind, moves in rules:
        found = matches(text, place)
        if found:
            return found, kind, moves
    return None, None, None


def _move(stack: list[str], moves: Moves) -> None:
    """Change the state stack as documented for `RegexLexer.tokens`; the last state is never popped."""
    if isinstance(moves, int):
        del stack[max(1, len(stack) + moves) :]
        return
    for move in (moves,) if isinstance(moves, str) else moves or ():
        if move == "#push":
            stack.append(stack[-1])
        elif move != "#pop":
            stack.append(move)
        elif len(stack) > 1:
            stack.pop()


def _pieces(tokens: Iterable[Token], text: str, begin: int) -> list[Piece]:
    """Return `text` from `begin` on in as few fragments as possible, including text without tokens."""
    pieces: list[Piece] = []
    position = begin
    for place, kind, token in tokens:
        start, end = max(place, position), min(place + len(token), len(text))
        if start >= end:
            continue
        syntax = _syntax(kind)
        if start > position:
            pieces.append((None, text[position:start]))
        if pieces and pieces[-1][0] == syntax:
            pieces[-1] = syntax, pieces[-1][1] + text[start:end]
        else:
            pieces.append((syntax, text[start:end]))
        position = end
    return [*pieces, (None, text[position:])]


@lru_cache(maxsize=512)
def _syntax(kind: tuple[str, ...]) -> Syntax | None:
    while kind:
        found = _SYNTAX.get(".".join(kind))
        if found:
            return found
        kind = kind[:-1]
    return None
