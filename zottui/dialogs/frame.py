"""How a dialog fills its room: a title, what it is about, and what keys do."""

from collections.abc import Callable, Sequence

from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import clean, fit, flowing, piece

Keys = Sequence[tuple[str, str]]
"""(key, what it does), the most important first."""


def framed(head: Row, body: Callable[[int], list[Row]], keys: Keys, *, width: int, height: int) -> list[Row]:
    """At most `height` rows; of the keys as many as there is room for, so that the body has most of it.

    `body` is given its height.
    """
    if height <= 0:
        return []
    hints = hinted(keys, width, max(1, height // 4)) if height > 2 else []
    middle = body(max(height - 1 - len(hints), 0))[: max(height - 1 - len(hints), 0)]
    return [fit(head, width), *(fit(row, width) for row in middle), *hints]


def hinted(keys: Keys, width: int, height: int) -> list[Row]:
    """What keys do, on at most `height` rows."""
    rows = flowing([[piece(TextRole.ACCENT, key), piece(TextRole.MUTED, f" {what}")] for key, what in keys], width)
    return rows[:height]


def headed(words: str, detail: str = "", role: TextRole = TextRole.STRONG) -> Row:
    """A title, and quieter what belongs to it; both are cleaned."""
    return [piece(role, clean(words)), *([piece(TextRole.MUTED, f"  {clean(detail)}")] if detail else [])]
