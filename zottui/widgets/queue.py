"""The queue of inputs in the live area."""

from zotd.wire.events import QueueItem
from zottui.state import ViewState
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import clean, fit, piece

MAX_ROWS = 4
"""Most rows of the queue."""

WORDS = {"queue": "queued", "steer": "steer "}
"""Labels of equal length, so that the texts are aligned."""


def queue(state: ViewState, width: int, height: int) -> list[Row]:
    """Return a row for each queued input, oldest first, after one that tells if the queue is held; at most `height`."""
    room = min(height, MAX_ROWS)
    rows = [_held()] if state.held else []  # first: it explains why nothing happens
    left = room - len(rows)
    # If not all fit, the last row tells how many are missing.
    shown = state.queue if len(state.queue) <= left else state.queue[: max(left - 1, 0)]
    rows += [_item(item, width, is_own=item.id in state.own) for item in shown]
    if len(shown) < len(state.queue):
        rows.append([piece(TextRole.MUTED, f"… {len(state.queue) - len(shown)} more")])
    return [fit(row, width) for row in rows[: max(room, 0)]]


def _held() -> Row:
    return [piece(TextRole.WARNING, "paused"), piece(TextRole.MUTED, "  /continue resumes")]


def _item(item: QueueItem, width: int, *, is_own: bool) -> Row:
    row = [piece(TextRole.MUTED, WORDS.get(item.mode, clean(item.mode)))]
    if item.sender and not is_own:
        row.append(piece(TextRole.USER, f"  {clean(item.sender)}:"))
    return [*row, piece(TextRole.TEXT, f"  {clean(item.text.lstrip()[:width]).rstrip()}")]
