"""The common layout of dialogs: a title, a body and key hints."""

from collections.abc import Callable, Sequence

from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import clean, fit, flowing, piece

Keys = Sequence[tuple[str, str]]
"""Key hints as (key, action), the most important first."""


def framed(head: Row, body: Callable[[int], list[Row]], keys: Keys, *, width: int, height: int) -> list[Row]:
    """Return at most `height` rows: title, body, and hints on at most a quarter of the rows.

    `body` gets the height that is left for it.
    """
    if height <= 0:
        return []
    hints = hinted(keys, width, max(1, height // 4)) if height > 2 else []
    middle = body(max(height - 1 - len(hints), 0))[: max(height - 1 - len(hints), 0)]
    return [fit(head, width), *(fit(row, width) for row in middle), *hints]


def hinted(keys: Keys, width: int, height: int) -> list[Row]:
    """Return the key hints on at most `height` rows; the last ones are dropped."""
    rows = flowing([[piece(TextRole.ACCENT, key), piece(TextRole.MUTED, f" {what}")] for key, what in keys], width)
    return rows[:height]


def headed(words: str, detail: str = "", role: TextRole = TextRole.STRONG) -> Row:
    """Return a title and a muted detail after it; control characters in both are made visible."""
    return [piece(role, clean(words)), *([piece(TextRole.MUTED, f"  {clean(detail)}")] if detail else [])]
