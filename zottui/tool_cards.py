"""Tool calls as cards of a few lines: the call, its outcome and part of its output. The viewer shows all of it."""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from zotd.client.columns import clipped, width_of
from zotd.client.humanize import counted, took
from zotd.sanitize import PLAIN, coloured
from zotd.wire.base import BadFrameError, convert
from zotd.wire.plan import ACTIVE, DONE, PlanStep, step_lines
from zottui.blocks import ToolRan
from zottui.calls import subject
from zottui.diffs import ADDED, DiffLine, between, count, diff_lines, focused, unified
from zottui.sanitize import TAB_COLUMNS, harmless
from zottui.theme import TextRole, Theme

BODY_LINES = 8
"""Most lines of a result. On a screen of 30 rows this leaves room for the model's text about it."""

HEAD_LINES = 3
"""Lines from the beginning when the end matters more, as in the output of a command."""

SLOW_S = 1.0
"""Seconds from which on a card shows the duration."""

INDENT = "  "
"""Indentation of the lines below the first one."""

_BASH_END = re.compile(r"\[([^\n\]]*)\]  Took [\d.]+s\s*\Z")


_NEW_ERRORS = re.compile(r"(\d+ new errors?) after this change:$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Card:
    """The content of a card."""

    about: str
    """What the call is about: sanitized, one line."""
    facts: tuple[tuple[TextRole, str], ...] = ()
    """Short facts after it: changed lines, an exit code."""
    lines: tuple[str, ...] = ()
    """Lines of the result, not sanitized yet."""
    role: TextRole = TextRole.MUTED
    changes: tuple[DiffLine, ...] = ()
    """A diff to show instead of `lines`."""
    is_ending_shown: bool = False
    """Whether a cut result shows its last lines too."""


def card_lines(call: ToolRan, width: int, theme: Theme) -> list[str]:
    """Return the lines of a card, each cut to `width` columns: unlike prose, they are not meant to be copied."""
    card = _card(call)
    return [_header(call, card, width, theme), *(INDENT + line for line in _body(card, width - len(INDENT), theme))]


def has_body(call: ToolRan) -> bool:
    """Return whether the card has more than its first line."""
    card = _card(call)
    return bool(card.lines or card.changes)


# --- the first line ---------------------------------------------------------------------------------------------


def _header(call: ToolRan, card: Card, width: int, theme: Theme) -> str:
    mark = "tool: " if theme.is_plain else "○ " if call.is_open else "● "
    name = harmless(call.name)
    facts = list(card.facts)
    if call.is_open:
        facts.append((TextRole.MUTED, "no result yet"))
    # "failed" only if no other fact, such as an exit code, tells it already.
    if call.is_error and not any(role is TextRole.ERROR for role, _ in facts):
        facts.insert(0, (TextRole.ERROR, "failed"))
    if call.images:
        facts.append((TextRole.MUTED, counted(call.images, "image")))
    if call.seconds is not None and call.seconds >= SLOW_S:
        facts.append((TextRole.MUTED, took(call.seconds)))
    if call.extension:
        facts.append((TextRole.MUTED, f"({harmless(call.extension)})"))
    # Facts are short and always shown; the subject gets the remaining columns.
    taken = width_of(mark + name) + sum(2 + width_of(text) for _, text in facts) + 2
    about = clipped(card.about, max(width - taken, 0))
    outcome = theme.paint(_outcome(call), mark)
    pieces = [theme.paint(TextRole.TOOL, name), about, *(theme.paint(role, text) for role, text in facts)]
    return outcome + "  ".join(filter(None, pieces))


def _outcome(call: ToolRan) -> TextRole:
    if call.is_open:
        return TextRole.MUTED
    return TextRole.ERROR if call.is_error else TextRole.SUCCESS


# --- kinds of calls -----------------------------------------------------------------------------------------------


def _card(call: ToolRan) -> Card:
    about = subject(call.name, call.args)
    # The cases below know the results of built-in tools. An extension's tool may have the same name.
    if call.extension or call.is_open:
        return _any(call, about)
    match call.name:
        case "bash":
            return _bash(call, about)
        case "read" if not call.is_error:
            size = call.result.rstrip("\n").count("\n") + 1
            return Card(about, ((TextRole.MUTED, counted(size, "line")),) if not call.images else ())
        case "edit" if not call.is_error:
            return _checked(_changed(about, unified(call.result) or _wanted(call.args)), call.result)
        case "write" if not call.is_error:
            return _checked(_written(call, about), call.result)
        case "plan" if not call.is_error:
            return _planned(call)
        case _:
            return _any(call, about)


def _any(call: ToolRan, about: str) -> Card:
    return Card(about, lines=_lines(call.result), role=TextRole.ERROR if call.is_error else TextRole.MUTED)


def _bash(call: ToolRan, about: str) -> Card:
    """Return the card of a bash call without the repeated command; the exit code moves to the header."""
    text = call.result
    # Match at the start of the last line instead of searching: on a long line of `[` a search takes minutes.
    found = _BASH_END.match(text, text.rstrip().rfind("\n") + 1)
    if not found or not text.startswith("$ "):
        return _any(call, about)
    command = f"$ {call.args.get('command')}\n\n"
    output = text[: found.start()]
    output = output.removeprefix(command) if output.startswith(command) else output.partition("\n\n")[2]
    facts = () if found[1] == "exit 0" else ((TextRole.ERROR, found[1]),)
    return Card(about, facts, _lines(output), is_ending_shown=True)


def _written(call: ToolRan, about: str) -> Card:
    content = call.args.get("content")
    if not isinstance(content, str):
        return _any(call, about)
    lines = content.removesuffix("\n").split("\n") if content else []
    if call.result.startswith("Created "):
        return _changed(about, [DiffLine(ADDED, line, number) for number, line in enumerate(lines, 1)])
    return Card(about, ((TextRole.MUTED, f"replaced, {counted(len(lines), 'line')}"),), tuple(lines))


def _checked(card: Card, result: str) -> Card:
    """Add the number of errors that the change has caused, as language servers say at the end of the result."""
    found = _NEW_ERRORS.match(result, result.rfind("\n\n") + 2)
    return card if found is None else replace(card, facts=(*card.facts, (TextRole.ERROR, found[1])))


def _planned(call: ToolRan) -> Card:
    """Return the steps of a plan that is not begun; of one that is, the step that is being done: the live area has the others."""
    try:
        steps = convert(call.args.get("steps"), list[PlanStep])
    except BadFrameError:
        return _any(call, "")
    changed = [line for line in call.result.split("\n") if line.startswith("[")]  # a person has approved other steps
    done = sum(step.state == DONE for step in steps)
    current = next((step.text for step in steps if step.state == ACTIVE), "")
    facts = ((TextRole.MUTED, f"{done} of {len(steps)} done"),)
    is_begun = bool(done or current)
    return Card(" ".join(harmless(current).split()), facts, () if is_begun else tuple(changed or step_lines(steps)))


def _wanted(args: Mapping[str, object]) -> list[DiffLine]:
    """Return the diff of the requested edits, for a result that contains no diff."""
    edits = args.get("edits")
    changes: list[DiffLine] = []
    for edit in edits if isinstance(edits, list) else []:
        if isinstance(edit, dict):
            changes += between(str(edit.get("oldText", "")), str(edit.get("newText", "")))
    return changes


def _changed(about: str, changes: Sequence[DiffLine]) -> Card:
    come, gone = count(changes)
    facts = ((TextRole.ADDED, f"+{come}"), (TextRole.REMOVED, f"-{gone}"))
    return Card(about, tuple(fact for fact in facts if fact[1][1:] != "0"), changes=tuple(focused(changes)))


# --- the body -----------------------------------------------------------------------------------------------------


def _lines(text: str) -> tuple[str, ...]:
    """Split text into lines as a terminal would show them: text before a carriage return is overwritten."""
    lines = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n"))
    kept = list(dropwhile(operator.not_, lines))
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def _body(card: Card, width: int, theme: Theme) -> list[str]:
    if card.changes:
        shown = diff_lines(card.changes[:BODY_LINES], theme, width)
        return shown + _more(len(card.changes) - len(shown), theme)
    left_out = len(card.lines) - BODY_LINES
    if left_out <= 0:
        return _painted(card.lines, card.role, width, theme)
    head = HEAD_LINES if card.is_ending_shown else BODY_LINES
    first, last = card.lines[:head], card.lines[len(card.lines) - (BODY_LINES - head) :]
    return [
        *_painted(first, card.role, width, theme),
        *_more(left_out, theme),
        *_painted(last, card.role, width, theme),
    ]


def _painted(lines: Sequence[str], role: TextRole, width: int, theme: Theme) -> list[str]:
    """Paint lines in the program's own colours, or without any in the colour of `role`."""
    # Cut first: a single line may be the whole result, megabytes long.
    cut = [line[: width * 8] for line in lines]  # eight characters a column leave room for escape sequences
    if theme.is_plain or not any("\x1b" in line for line in cut):
        return [theme.paint(role, clipped(harmless(line), width)) for line in cut]
    painted, looks = [], PLAIN
    for line in cut:
        pieces, looks = coloured(line.expandtabs(TAB_COLUMNS), looks)
        painted.append(_coloured(pieces, role, width, theme))
    return painted


def _coloured(pieces: Sequence[tuple[str, str]], role: TextRole, width: int, theme: Theme) -> str:
    """Return as much of the pieces as fits; text without its own colour gets that of `role`."""
    painted, room = "", width
    for looks, text in pieces:
        shown = clipped(text, room)
        painted += f"\x1b[{looks}m{shown}\x1b[m" if looks else theme.paint(role, shown)
        room -= width_of(shown)
        if shown != text or room <= 0:
            break
    return painted


def _more(left_out: int, theme: Theme) -> list[str]:
    return [theme.paint(TextRole.MUTED, f"… {left_out} more (ctrl+t)")] if left_out > 0 else []
