"""Source code in colours, line by line.

A fence is printed while it is written, and what is printed never changes. So a line is painted by what is known when it
ends: by itself, and by the state in which the lines before have left the lexer. Pygments keeps that state to itself, and
would have to begin again at the first line for each further one; so its tables of rules are followed here instead.
Lexers that have none (JSON, a shell's session) or that add to them (YAML, Ruby) get each line by itself.
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
"""Length of a rule: not of the terminal, which would break it when it becomes narrower."""

FENCE = "```"
"""Set before and behind code where there are no colours."""

LINE_CHARS = 1_000
"""Longer lines, as in what was made by a program, stay without colours: some rules take quadratic time in them."""

CARRIED_CHARS = 8_000
"""How much of a comment or string that has not ended is looked at again with each further line."""

REMEMBERED = 8
"""Fences of which is known how their last line has left the lexer; a few sessions may write at the same time."""

MOVES_AT_ONE_PLACE = 100
"""Changes of state without a character taken; there are lexers that would go on for ever."""

_CLOSERS = "*/-->"
"""What ends a comment in most languages. It stands behind each line while that is lexed: many languages have one rule for
a whole comment, which does not match as long as the end is missing."""

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
"""By the type of Pygments; a type that is not here is what the type above it is."""

Piece = tuple[Syntax | None, str]

Token = tuple[int, tuple[str, ...], str]
"""(place, type, text); the place counts from the beginning of what is lexed."""

Kind = tuple[str, ...] | Callable[[Lexer, re.Match[str]], Iterable[Token]] | None
"""What a match is; or what finds that out; None: nothing to be shown."""

Moves = tuple[str, ...] | str | int | None
"""The states to go to; a negative number: so many back."""

Rule = tuple[Callable[[str, int], re.Match[str] | None], Kind, Moves]


@dataclass(frozen=True, slots=True)
class Lexed:
    """How a line has left the lexer."""

    stack: tuple[str, ...] = ("root",)
    carried: str = ""
    """The text of a token that had not ended with the line."""


_after: dict[tuple[str, tuple[str, ...]], Lexed] = {}
"""By fence, the newest last. To forget costs time only: all follows from the lines."""


def fenced(code: CodeLines, width: int, theme: Theme) -> list[str]:
    """A piece of a fence, between lines that set it apart and name its language.

    Nothing stands beside the code, so that it can be copied, and its lines are left to the terminal to wrap.
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
    """Lines of a fence, harmless and painted; `before` are those above, up to `CONTEXT_LINES`.

    A language that nobody knows is painted as `TextRole.CODE`; what is behind `CONTEXT_LINES` stays as it is.
    """
    shown = [harmless(line) for line in lines]
    lexer = _lexer(language_of(info))
    if theme.is_plain:
        return shown
    if lexer is None:
        return [theme.paint(TextRole.CODE, line) for line in shown]
    coloured = max(0, CONTEXT_LINES - len(before))
    state = _state(lexer, before)
    painted_lines: list[str] = []
    for line in shown[:coloured]:
        pieces, state = _lex(lexer, line, state)
        painted_lines.append("".join(painted(theme.code.get(kind, "") if kind else "", text) for kind, text in pieces))
    _remember(lexer, (*before, *lines[:coloured]), state)
    return painted_lines + shown[coloured:]


def language_of(info: str) -> str:
    """The language in the line that opens a fence: `python` of "python title=x", "{.python}" and "Python"."""
    found = re.search(r"[\w+#.-]+", info)
    return found[0].lstrip(".").lower() if found else ""


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    """None: nobody knows that language. That is remembered too: Pygments looks through all plugins for one."""
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
    """The line in pieces, and the state behind it."""
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
    """The tokens of `text`, and from where and in which states to go on when there is more of it.

    That is its end, or the beginning of a token that goes on behind it.
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
        if callable(kind):
            tokens += kind(lexer, found)
        elif kind is not None:
            tokens.append((place, kind, found[0]))
        if found.end() > len(text):
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
    """Go to other states, as the documentation of `RegexLexer.tokens` says; the last one is never left."""
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
    """What `text` is from `begin` on, in as few pieces as possible; none of it is left out."""
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
