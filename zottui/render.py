"""Renders blocks as lines for the scrollback.

All text is sanitized here. Colours end on the line on which they begin, so that any line can be the last one printed.
"""

from collections.abc import Sequence
from dataclasses import replace

from zotd.client.columns import width_of
from zotd.client.humanize import counted, duration
from zotd.sanitize import SGR
from zottui.blocks import Block, CodeLines, NoteLine, Prose, Rule, Thought, ToolRan, UserSaid
from zottui.columns import word_wrapped
from zottui.sanitize import harmless
from zottui.theme import TextRole, Theme
from zottui.tool_cards import INDENT, card_lines, has_body
from zottui.widgets.cells import POINTER

MODEL = "zot"
"""Name of the model's role, where the theme has no colours to tell roles apart."""

PROMPT_LINES = 12
"""Most lines of a prompt that are printed; the viewer has all of a long paste."""

PROMPT_CHARS = 2_000
"""Most characters of a prompt that are printed: a paste may be one long line."""

NARROWEST = 20
"""Least columns for text after a long name."""

_LEVELS = {"success": TextRole.SUCCESS, "warn": TextRole.WARNING, "error": TextRole.ERROR}
# Prefixes of notes by level. In words too, since colours may be off or invisible to the reader.
_WORDS = {"success": "done: ", "warn": "warning: ", "error": "error: "}


def render(block: Block, width: int, theme: Theme, after: Block | None = None, *, is_whole: bool = False) -> list[str]:
    """Return the lines of a block for a terminal of `width` columns, with SGR and without newlines.

    Prose is broken between words, unless the theme leaves that to the terminal. There are no frames beside text or code,
    which would be copied with it.

    Args:
        block: what to render.
        width: columns of the terminal.
        theme: colours, and whether words are wrapped.
        after: the block printed before; decides about a leading blank line and, without colours, about the model's name.
            None: unknown, or there is none.
        is_whole: do not cut long prompts.
    """
    is_named = (
        theme.is_plain and isinstance(block, Prose) and not block.tight and not isinstance(after, Prose | CodeLines)
    )
    room = width - len(f"{MODEL}: ") if is_named else width  # the name is put before the first line
    lines = _prompt(block, width, theme) if is_whole and isinstance(block, UserSaid) else _lines(block, room, theme)
    if theme.is_plain and not isinstance(after, Prose | CodeLines):
        lines = _said(block, lines)
    return ["", *lines] if lines and _has_gap(block, after) else lines


def _lines(block: Block, width: int, theme: Theme) -> list[str]:
    match block:
        case Prose():
            # Imported with the first use: markdown-it takes 90 ms, which would delay the first paint.
            from zottui.markdown.emit import markdown_lines  # noqa: PLC0415

            return markdown_lines(block.source, width, theme)
        case CodeLines():
            from zottui.markdown.code import fenced  # noqa: PLC0415  (as above)

            return fenced(block, width, theme)
        case ToolRan():
            return card_lines(block, width, theme)
        case UserSaid():
            return _prompt_beginning(block, width, theme)
        case Thought():
            return _thought(block, width, theme)
        case NoteLine():
            return _note(block, width, theme)
        case Rule():
            words = " ".join(harmless(block.text).split())
            return [f"--- {words} ---" if theme.is_plain else theme.paint(TextRole.MUTED, f"── {words} ──")]


def _has_gap(block: Block, after: Block | None) -> bool:
    match block:
        case Prose():
            return not block.tight
        case CodeLines():
            return block.opens
        case NoteLine():
            return after is not None and not (isinstance(after, NoteLine) and _is_short(after) and _is_short(block))
        case ToolRan() if isinstance(after, ToolRan):
            return has_body(after) or has_body(block)
        case _:
            return True


def _is_short(note: NoteLine) -> bool:
    return "\n" not in note.text.rstrip("\n")


def _said(block: Block, lines: list[str]) -> list[str]:
    """Put the model's name before its first line."""
    match block:
        case Prose(tight=False) if lines:
            return [f"{MODEL}: {lines[0]}", *lines[1:]]
        case CodeLines(opens=True):
            return [f"{MODEL}:", *lines]
        case _:
            return lines


def _prompt(block: UserSaid, width: int, theme: Theme) -> list[str]:
    sender = harmless(block.sender)
    if theme.is_plain:
        mark = f"{sender or 'you'}: "
    else:
        mark = (theme.paint(TextRole.MUTED, f"{sender} ") if sender else "") + theme.paint(
            TextRole.ACCENT, f"{POINTER} "
        )
    text = harmless(block.text).split("\n")
    first, *others = _hanging(text, width, theme, first_taken=width_of(SGR.sub("", mark)))
    lines = [
        mark + theme.paint(TextRole.USER, first),
        *(theme.paint(TextRole.USER, INDENT + line if line else "") for line in others),
    ]
    if block.images:
        lines[-1] += theme.paint(TextRole.MUTED, f" [{counted(block.images, 'image')}]")
    return lines


def _prompt_beginning(block: UserSaid, width: int, theme: Theme) -> list[str]:
    lines = block.text.split("\n")
    if len(lines) <= PROMPT_LINES + 1 and len(block.text) <= PROMPT_CHARS:
        return _prompt(block, width, theme)
    beginning = "\n".join(lines[:PROMPT_LINES])[:PROMPT_CHARS]
    # A line that is cut in the middle counts as left out.
    left_out = len(lines) - (beginning.count("\n") + 1 if len(beginning) < PROMPT_CHARS else beginning.count("\n"))
    more = theme.paint(TextRole.MUTED, f"… {left_out} more (ctrl+t)")
    return [*_prompt(replace(block, text=beginning), width, theme), INDENT + more]


def _thought(block: Thought, width: int, theme: Theme) -> list[str]:
    text = harmless(block.text).strip()
    rows = _hanging(text.split("\n"), width, theme) if text else []
    said = [theme.paint(TextRole.MUTED, INDENT + row if row else "") for row in rows]
    return [theme.paint(TextRole.MUTED, f"thought {duration(round(block.seconds))}"), *said]


def _note(block: NoteLine, width: int, theme: Theme) -> list[str]:
    role = _LEVELS.get(block.level, TextRole.MUTED)
    mark = "" if theme.is_plain else "· "
    lines = harmless(block.text).rstrip("\n").split("\n")
    source = harmless(block.source)
    source = f"{source}: " if source and not lines[0].startswith(f"{source} ") else ""
    head = f"{mark}{_WORDS.get(block.level, '')}{source}"
    first, *others = _hanging(lines, width, theme, first_taken=width_of(head))
    indent = INDENT if mark else ""  # aligned with the text after the mark
    return [theme.paint(role, head) + first, *(indent + line if line else "" for line in others)]


def _hanging(lines: Sequence[str], width: int, theme: Theme, *, first_taken: int = len(INDENT)) -> list[str]:
    """Break lines into rows that fit after `INDENT`; the first row after a prefix of `first_taken` columns."""
    if not theme.wraps_words:
        return list(lines)
    room = max(width - max(first_taken, len(INDENT)), NARROWEST)
    return [row for line in lines for row in word_wrapped(line, room)]
