"""Expanded tool calls: all arguments and the whole result."""

import re

from zotd.sanitize import SGR
from zottui.blocks import Block, CodeLines, NoteLine, Prose, Rule, Thought, ToolRan, UserSaid
from zottui.diffs import diff_lines, unified
from zottui.render import render
from zottui.sanitize import harmless
from zottui.theme import TextRole, Theme
from zottui.tool_cards import INDENT

WIDEST = 1_000_000
"""A width that nothing exceeds: the viewer folds long lines instead of cutting them."""

_MORE = re.compile(r"(\s*… \d+ more) \(ctrl\+t\)")


def card(block: Block, width: int, theme: Theme, after: Block | None) -> list[str]:
    """Render a block as in the scrollback, but name the viewer's key for more lines."""
    lines = render(block, width, theme, after, is_whole=True)
    return [line.replace("(ctrl+t)", "(enter)") if is_fold(line) else line for line in lines]


def is_fold(line: str) -> bool:
    """Return whether a line of a card is `… N more`."""
    return "more (" in line and _MORE.fullmatch(SGR.sub("", line).replace("(enter)", "(ctrl+t)")) is not None


def whole(call: ToolRan, width: int, theme: Theme, after: Block | None) -> list[str]:
    """Return the card's first line and below it all arguments and the whole result."""
    lines = render(call, width, theme, after)
    header = lines[:2] if lines and not lines[0] else lines[:1]
    given = [INDENT + line for line in _given(call, "".join(header), theme)]
    return [*header, *given, *(INDENT + line for line in _outcome(call, theme))]


def words_of(block: Block) -> str:
    """Return the sanitized text to copy: a block's source, or a call's result."""
    match block:
        case Prose(source=text) | UserSaid(text=text) | Thought(text=text) | NoteLine(text=text) | Rule(text=text):
            return harmless(text)
        case CodeLines(lines=lines):
            return harmless("\n".join(lines))
        case ToolRan(result=result):
            return harmless(result).rstrip("\n")


def _given(call: ToolRan, header: str, theme: Theme) -> list[str]:
    """Return the text arguments that neither the header nor the result contains completely."""
    lines: list[str] = []
    shown = SGR.sub("", header)
    for name, value in call.args.items():
        if isinstance(value, str) and value not in call.result and " ".join(harmless(value).split()) not in shown:
            added = call.name == "write" and name == "content"
            role = TextRole.ADDED if added else TextRole.MUTED
            lines += [theme.paint(TextRole.MUTED, f"{harmless(name)}:")]
            lines += [theme.paint(role, INDENT + line) for line in harmless(value).rstrip("\n").split("\n")]
    return lines


def _outcome(call: ToolRan, theme: Theme) -> list[str]:
    changes = unified(call.result) if call.name == "edit" and not call.is_error else []
    if changes:
        return diff_lines(changes, theme, WIDEST)
    role = TextRole.ERROR if call.is_error else TextRole.TEXT
    return [theme.paint(role, line) for line in words_of(call).split("\n")] if call.result else []
