"""What happens, and what waits behind it: the rows above the dialog and the editor."""

from zottui.desk import Row
from zottui.state import State
from zottui.widgets.live import live
from zottui.widgets.queue import queue


def activity(state: State, now: float, width: int, height: int, *, asked: str = "") -> list[Row]:
    """At most `height` rows, of which what waits has half; `asked`: the call that a dialog is about."""
    waiting = queue(state, width, max(height // 2, 1))
    return live(state, now, width, height - len(waiting), asked=asked) + waiting
