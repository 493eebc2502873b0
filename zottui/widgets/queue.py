"""What waits to be said to the model."""

from zotd.wire.events import QueueItem
from zottui.state import State
from zottui.theme import Role
from zottui.ui_context import Row
from zottui.widgets.cells import clean, fit, piece

MAX_ROWS = 4
"""What waits is short, or it is not read."""

WORDS = {"queue": "queued", "steer": "steer "}
"""As long as each other, so that the texts stand below each other."""


def queue(state: State, width: int, height: int) -> list[Row]:
    """A row for each input, first one first, and one that says when they are held; at most `height`."""
    room = min(height, MAX_ROWS)
    rows = [_held()] if state.held else []
    left = room - len(rows)
    shown = state.queue if len(state.queue) <= left else state.queue[: max(left - 1, 0)]
    rows += [_item(item, width, is_own=item.id in state.own) for item in shown]
    if len(shown) < len(state.queue):
        rows.append([piece(Role.MUTED, f"… {len(state.queue) - len(shown)} more")])
    return [fit(row, width) for row in rows[: max(room, 0)]]


def _held() -> Row:
    return [piece(Role.WARNING, "paused"), piece(Role.MUTED, "  /continue goes on")]


def _item(item: QueueItem, width: int, *, is_own: bool) -> Row:
    row = [piece(Role.MUTED, WORDS.get(item.mode, clean(item.mode)))]
    if item.sender and not is_own:
        row.append(piece(Role.USER, f"  {clean(item.sender)}:"))
    return [*row, piece(Role.TEXT, f"  {clean(item.text.lstrip()[:width]).rstrip()}")]
