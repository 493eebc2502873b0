"""The status bar: one line that drops its least important items when the terminal is narrow."""

from dataclasses import dataclass

from zotd.client.humanize import count, money
from zottui.state import LinkState, ViewState
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import cells, clean, cut, cut_front, fit, piece

GAP = " · "

YELLOW_PERCENT = 70
RED_PERCENT = 85
"""Percent of the context window from which on it is red. At about this the daemon compacts the conversation."""

PATH_CELLS = 32
"""Columns for the directory; its end is kept, since it tells projects apart."""

NAME_CELLS = 28
UNCONFINED = "yolo"
"""The mode that is shown as a warning: nothing confines what the model runs."""

USUAL = "workspace"
"""The mode that makes room for the directory: most sessions have it."""

SEGMENT_CELLS = 32
"""Columns for an extension's segment; there may be several."""


@dataclass(frozen=True, slots=True)
class _Item:
    rank: int
    """Priority; the lowest number gets its room first."""
    role: TextRole
    text: str


def status(state: ViewState, width: int, *, home: str, vi_mode: str = "") -> Row:
    """Return the status bar, at most `width - 1` columns wide: a filled row would wrap when the terminal gets narrower.

    The directory `home` is shown as `~`. `vi_mode` is `INSERT`, `NORMAL`, …, or empty.
    """
    items = [item for item in _items(state, home, vi_mode) if item.text]
    row: Row = []
    for item in _fitting(items, width - 1):
        row += [piece(TextRole.MUTED, GAP)] if row else []
        row.append(piece(item.role, item.text))
    return fit(row, width - 1)


def _fitting(items: list[_Item], width: int) -> list[_Item]:
    """Return the most important items that fit, in their order; always at least one."""
    fitting: list[_Item] = []
    room = width + cells(GAP)
    # By priority, but a long item that does not fit does not keep shorter ones out.
    for item in sorted(items, key=lambda item: item.rank):
        taken = cells(item.text) + cells(GAP)
        if taken <= room or not fitting:
            fitting.append(item)
            room -= taken
    return [item for item in items if item in fitting]


def _items(state: ViewState, home: str, vi_mode: str) -> list[_Item]:
    """Return all items in display order."""
    session, waiting = state.session, len(state.approvals)
    # The one that answers, while it is a fallback.
    model = (session.fallback or f"{session.provider}/{session.model}") if session else ""
    name = session.name if session else ""  # not the id, which tells users nothing; /status shows it
    mode = "planning" if state.planning else session.mode if session else ""
    context, alarm = _context(state)
    return [
        _Item(0, TextRole.WARNING, "" if state.link is LinkState.LIVE else f"{state.link.value}…"),
        _Item(1, TextRole.STATUS, f"-- {vi_mode} --" if vi_mode else ""),
        _Item(2, TextRole.WARNING, f"{waiting} need you" if waiting > 1 else "needs you" * waiting),
        _Item(6, TextRole.ACCENT, cut(clean(name), NAME_CELLS)),
        _Item(4, TextRole.STATUS, clean(model)),
        _Item(9 if mode == USUAL else 4, TextRole.WARNING if mode == UNCONFINED else TextRole.STATUS, clean(mode)),
        _Item(8, TextRole.STATUS, short_path(session.cwd, home) if session else ""),
        _Item(10, TextRole.STATUS, clean(state.branch)),
        _Item(3, alarm, context),
        _Item(7, TextRole.STATUS, money(state.usage.cost_usd) if state.usage.cost_usd else ""),
        _Item(11, TextRole.STATUS, _today(state)),
        _Item(5, TextRole.STATUS, f"{len(state.clients)} clients" if len(state.clients) > 1 else ""),
        *(
            _Item(12 + place, TextRole.STATUS, cut(clean(text).strip(), SEGMENT_CELLS))
            for place, (_, text) in enumerate(state.segments)
        ),
    ]


def short_path(path: str, home: str) -> str:
    """Shorten a directory: `~` for the home, and a `…` for the beginning of a long one."""
    if home and (path == home or path.startswith(f"{home.rstrip('/')}/")):
        path = f"~{path[len(home.rstrip('/')) :]}"
    return cut_front(clean(path), PATH_CELLS)


def _today(state: ViewState) -> str:
    """Return the cost of all sessions since midnight; empty if it equals this session's."""
    today = money(state.cost_today or 0.0)
    return f"{today} today" if state.cost_today and today != money(state.usage.cost_usd) else ""


def _context(state: ViewState) -> tuple[str, TextRole]:
    """Return how full the model's context window is, and the colour for it."""
    if not state.window:
        return (count(state.context) if state.context else ""), TextRole.STATUS
    percent = 100 * state.context / state.window
    alarm = (
        TextRole.ERROR if percent > RED_PERCENT else TextRole.WARNING if percent > YELLOW_PERCENT else TextRole.STATUS
    )
    figures = f" {count(state.context)}/{count(state.window)}" if state.context else ""
    return f"{percent:.0f}%{figures}", alarm
