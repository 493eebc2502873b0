"""The live rows: the text that the model is writing, calls without a result, and what the run waits for.

Everything here is printed in full when it is finished, so lines are cut and rows without room are left out.
"""

from zotd.client.humanize import count, duration
from zottui.calls import subject
from zottui.markdown.stream import tail
from zottui.state import LiveCall, ViewState
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import CUT, clean, cut, fit, piece, row_cells
from zottui.widgets.jobs import job_card
from zottui.widgets.plan import plan_card
from zottui.widgets.queue import queue

MAX_ROWS = 12
"""Most live rows: each costs about 0.8 ms per frame at 160 columns."""

TEXT_ROWS = 6
"""Most rows of the model's text."""

OUTPUT_ROWS = 5
"""Most rows of one tool's output."""

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

FRAMES_PER_S = 8
"""Spinner frames a second: smooth enough, and about half of the highest frame rate."""


def activity(state: ViewState, now: float, width: int, height: int, *, asked: str = "") -> list[Row]:
    """Return at most `height` rows: the live rows, the plan, the jobs, and the queue on at most half of the rows.

    `asked` is that of `live`.
    """
    waiting = queue(state, width, max(height // 2, 1))
    height -= len(waiting)
    jobs = job_card(state, now, width, height // 3)
    height -= len(jobs)
    card = plan_card(state, width, height // 2)
    return live(state, now, width, height - len(card), asked=asked) + card + jobs + waiting


def live(state: ViewState, now: float, width: int, height: int, *, asked: str = "") -> list[Row]:
    """Return at most `height` and at most `MAX_ROWS` rows; none when nothing runs.

    `asked` is the id of the call whose approval dialog is open; it is left out here.

    Rows are assigned in this order: one for each call, or one for what the run waits for; the output of calls; the
    model's text.
    """
    room = min(height, MAX_ROWS)
    if (state.run is None and not state.reply.calls) or room <= 0:
        return []
    written = [line for line in tail(state.reply.stream, TEXT_ROWS, width) if line.strip()] if width > 0 else []
    heads = _heads(state, now, width, room, asked=asked)
    if not heads and not asked and state.run is not None:
        heads = [(_waiting(state, now, is_writing=bool(written)), "")]
    room -= len(heads)
    rows: list[Row] = []
    for place, (head, output) in enumerate(heads):
        # Divide the remaining rows, rounded up, among the calls that are left.
        shown = _output(output, width, min(OUTPUT_ROWS, -(-room // (len(heads) - place))))
        room -= len(shown)
        rows += [fit(head, width), *shown]
    return [[piece(TextRole.TEXT, cut(line, width))] for line in (written[-room:] if room else [])] + rows


def _heads(state: ViewState, now: float, width: int, room: int, *, asked: str) -> list[tuple[Row, str]]:
    """Return a line and the output for each call; of too many calls the newest, and the number of the others."""
    calls = [call for call in state.reply.calls if call.id != asked]
    shown = calls if len(calls) <= room else calls[len(calls) - max(room - 1, 1) :]  # one row for "… N more calls"
    waiting = {one.tool_id for one in state.approvals}
    started = state.run.started if state.run is not None else {}
    heads = [
        (_call(call, now, width, since=started.get(call.id), needs_you=call.id in waiting), call.tail) for call in shown
    ]
    if len(shown) < len(calls) and room > 1:
        heads.insert(0, ([piece(TextRole.MUTED, f"… {len(calls) - len(shown)} more calls")], ""))
    return heads


def _call(call: LiveCall, now: float, width: int, *, since: float | None, needs_you: bool) -> Row:
    """Return the line of a call. Without room, its subject is cut first; name and duration stay.

    Only a call that the model is writing or that runs has a spinner.
    """
    if needs_you:
        mark = piece(TextRole.WARNING, "●")
    elif call.is_written and since is None:
        mark = piece(TextRole.MUTED, "○")
    else:
        mark = piece(TextRole.ACCENT, spinner(now))
    name = piece(TextRole.TOOL, f" {clean(call.name)}")
    progress = piece(
        TextRole.WARNING if needs_you else TextRole.MUTED, f"  {_progress(call, now, since=since, needs_you=needs_you)}"
    )
    room = width - row_cells([mark, name, progress])
    about = cut(f"  {subject(call.name, call.args)}", room) if call.args else ""
    return fit([mark, name, piece(TextRole.TEXT, about if about.strip(f" {CUT}") else ""), progress], width)


def _progress(call: LiveCall, now: float, *, since: float | None, needs_you: bool) -> str:
    if needs_you:
        return "needs you"
    if since is not None:
        return duration(now - since)
    if call.is_written:
        return "waits"
    return f"writing… {count(call.written)} characters" if call.written else "writing…"


def _waiting(state: ViewState, now: float, *, is_writing: bool) -> Row:
    """Return the line of a run without open calls: a retry, thinking, writing or working."""
    run, reply = state.run, state.reply
    assert run is not None
    turning = piece(TextRole.ACCENT, spinner(now))
    if run.retry:
        left_s = max(0.0, run.retry_at - now)
        when = f"next try in {duration(left_s)} (esc stops, /retry tries now)" if left_s else "trying again"
        return [piece(TextRole.WARNING, f"⟲ {when}: {clean(run.retry)}")]
    if reply.thinking_since is not None:
        word = "thinking…" if reply.thought else "working…"
        return [turning, piece(TextRole.MUTED, f" {word} {duration(now - reply.thinking_since)}")]
    word = "writing…" if is_writing else "working…"
    return [turning, piece(TextRole.MUTED, f" {word} {duration(now - run.since)}")]


def spinner(now: float) -> str:
    """Return the spinner's character at a time."""
    return FRAMES[int(now * FRAMES_PER_S) % len(FRAMES)]


def _output(printed: str, width: int, room: int) -> list[Row]:
    """Return the last lines of a tool's output. Text before a carriage return is dropped: a progress bar is one line."""
    lines = [line.rsplit("\r", 1)[-1] for line in printed.replace("\r\n", "\n").split("\n")]
    shown = [clean(line) for line in lines if line.strip()][-room:] if room > 0 else []
    return [[piece(TextRole.MUTED, cut(f"  {line}", width))] for line in shown]
