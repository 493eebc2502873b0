"""Blocks as lines for the terminal, printed once and then part of its scrollback.

What a block says is harmless when it is printed, and colours end on the line on which they begin.
"""

from zottui.amounts import counted, duration
from zottui.blocks import Block, Code, Note, Prose, Rule, Thought, ToolRan, UserSaid
from zottui.cards import INDENT, card_lines, has_body
from zottui.harmless import harmless
from zottui.theme import Role, Theme
from zottui.widgets.cells import POINTER

MODEL = "zot"
"""Who answers, where roles are said in words."""

_LEVELS = {"success": Role.SUCCESS, "warn": Role.WARNING, "error": Role.ERROR}
_WORDS = {"success": "done: ", "warn": "warning: ", "error": "error: "}
"""Of notes, by level: colours may be off, and not everybody sees them."""


def render(block: Block, width: int, theme: Theme, after: Block | None = None) -> list[str]:
    """The logical lines of a block, with SGR and without newlines, for a terminal of `width` columns.

    A paragraph is one line, however long: the terminal wraps it, joins it when it is copied, and wraps it again when it
    is resized. Nothing stands beside text or code that would be copied with it.

    `after` is the block that was printed before; it decides about a blank line at the front and, without colours, about
    who speaks. None: that is not known, or there is none.
    """
    lines = _lines(block, width, theme)
    if theme.is_plain and not isinstance(after, Prose | Code):
        lines = _said(block, lines)
    return ["", *lines] if lines and _has_gap(block, after) else lines


def _lines(block: Block, width: int, theme: Theme) -> list[str]:
    match block:
        case Prose():
            # Loaded with the first of them: 90 ms, for which the first paint need not wait.
            from zottui.markdown.emit import markdown_lines  # noqa: PLC0415

            return markdown_lines(block.source, width, theme)
        case Code():
            return _code(block, theme)
        case ToolRan():
            return card_lines(block, width, theme)
        case UserSaid():
            return _prompt(block, theme)
        case Thought():
            return _thought(block, theme)
        case Note():
            return _note(block, theme)
        case Rule():
            words = " ".join(harmless(block.text).split())
            return [f"--- {words} ---" if theme.is_plain else theme.paint(Role.MUTED, f"── {words} ──")]


def _has_gap(block: Block, after: Block | None) -> bool:
    match block:
        case Prose():
            return not block.tight
        case Code():
            return block.opens
        case Note():
            return after is not None and not (isinstance(after, Note) and _is_short(after) and _is_short(block))
        case ToolRan() if isinstance(after, ToolRan):
            return has_body(after) or has_body(block)
        case _:
            return True


def _is_short(note: Note) -> bool:
    return "\n" not in note.text.rstrip("\n")


def _said(block: Block, lines: list[str]) -> list[str]:
    """With the name of who speaks, where it is the model that begins to."""
    match block:
        case Prose(tight=False) if lines:
            return [f"{MODEL}: {lines[0]}", *lines[1:]]
        case Code(opens=True):
            return [f"{MODEL}:", *lines]
        case _:
            return lines


def _code(block: Code, theme: Theme) -> list[str]:
    from zottui.markdown.code import highlighted  # noqa: PLC0415  (as above)

    lines = highlighted(block.language, block.lines, block.before, theme)
    if not theme.is_plain:
        return lines
    opening = [f"```{harmless(block.language)}"] if block.opens else []
    return [*opening, *lines, *(["```"] if block.closes else [])]


def _prompt(block: UserSaid, theme: Theme) -> list[str]:
    sender = harmless(block.sender)
    if theme.is_plain:
        mark = f"{sender or 'you'}: "
    else:
        mark = (theme.paint(Role.MUTED, f"{sender} ") if sender else "") + theme.paint(Role.ACCENT, f"{POINTER} ")
    first, *others = harmless(block.text).split("\n")
    lines = [
        mark + theme.paint(Role.USER, first),
        *(theme.paint(Role.USER, INDENT + line if line else "") for line in others),
    ]
    if block.images:
        lines[-1] += theme.paint(Role.MUTED, f" [{counted(block.images, 'image')}]")
    return lines


def _thought(block: Thought, theme: Theme) -> list[str]:
    text = harmless(block.text).strip()
    said = [theme.paint(Role.MUTED, INDENT + line if line else "") for line in text.split("\n")] if text else []
    return [theme.paint(Role.MUTED, f"thought {duration(round(block.seconds))}"), *said]


def _note(block: Note, theme: Theme) -> list[str]:
    role = _LEVELS.get(block.level, Role.MUTED)
    mark = "" if theme.is_plain else "· "
    first, *others = harmless(block.text).rstrip("\n").split("\n")
    source = harmless(block.source)
    source = f"{source}: " if source and not first.startswith(f"{source} ") else ""
    head = theme.paint(role, f"{mark}{_WORDS.get(block.level, '')}{source}")
    indent = INDENT if mark else ""  # lists stand in columns
    return [head + first, *(indent + line if line else "" for line in others)]
