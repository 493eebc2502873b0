"""The jobs in the live area: a line for each command that runs in the background."""

from zotd.client.humanize import duration
from zotd.client.jobs import places
from zottui.state import LiveJob, ViewState
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import CUT, clean, cut, fit, piece, row_cells

MAX_ROWS = 4
"""Most rows of the card; the oldest jobs are left out."""


def job_card(state: ViewState, now: float, width: int, height: int) -> list[Row]:
    """Return at most `height` rows; the time that a job runs is shown only while a run has the screen drawn again."""
    room = min(height, MAX_ROWS)
    if not state.jobs or room <= 0:
        return []
    shown = state.jobs if len(state.jobs) <= room else state.jobs[len(state.jobs) - max(room - 1, 1) :]
    rows = [_row(job, now if state.run is not None else None, width) for job in shown]
    if len(shown) < len(state.jobs) and room > 1:
        rows.insert(0, fit([piece(TextRole.MUTED, f"{CUT} {len(state.jobs) - len(shown)} more jobs")], width))
    return rows


def _row(job: LiveJob, now: float | None, width: int) -> Row:
    """Without room, the command is cut first; the id, the time and the ports stay."""
    head = [piece(TextRole.ACCENT, "▪"), piece(TextRole.STRONG, f" {clean(job.info.id)}")]
    time = "" if now is None else f"  {duration(now - job.since)}"
    gap, ports = ("  ", places(job.info.ports)) if job.info.ports else ("", "")
    end = [piece(TextRole.MUTED, f"{time}{gap}"), piece(TextRole.LINK, ports)]
    about = cut(f"  {clean(job.info.command)}", width - row_cells([*head, *end]))
    return fit([*head, piece(TextRole.TEXT, about if about.strip(f" {CUT}") else ""), *end], width)
