"""What is being done now: what the model writes, the calls that run, and what is waited for.

Everything here is shown again in full when it is finished; so lines are cut, and what has no room is left out.
"""

from zotd.client.humanize import count, duration
from zottui.calls import subject
from zottui.markdown.stream import tail
from zottui.state import LiveCall, ViewState
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import CUT, clean, cut, fit, piece, row_cells
from zottui.widgets.queue import queue

MAX_ROWS = 12
"""Each row costs some 0.8 ms per frame at 160 columns."""

TEXT_ROWS = 6
"""Of what the model is writing."""

OUTPUT_ROWS = 5
"""Of what one tool has printed."""

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

FRAMES_PER_S = 8
"""Of the spinner: smooth enough, and half of what the live area is drawn with at most."""


def activity(state: ViewState, now: float, width: int, height: int, *, asked: str = "") -> list[Row]:
    """What happens, and below it what waits behind it; at most `height` rows, of which what waits has half.

    `asked`: as of `live`.
    """
    waiting = queue(state, width, max(height // 2, 1))
    return live(state, now, width, height - len(waiting), asked=asked) + waiting


def live(state: ViewState, now: float, width: int, height: int, *, asked: str = "") -> list[Row]:
    """At most `height` rows, and never more than `MAX_ROWS`; none when nothing happens.

    `asked`: the id of the call about which a dialog asks, so that nothing more need be said of it.

    Of the room, first comes a line for each call, or the one that says what is waited for; then the output of the
    calls; then what the model is writing.
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
        shown = _output(output, width, min(OUTPUT_ROWS, -(-room // (len(heads) - place))))
        room -= len(shown)
        rows += [fit(head, width), *shown]
    return [[piece(TextRole.TEXT, cut(line, width))] for line in (written[-room:] if room else [])] + rows


def _heads(state: ViewState, now: float, width: int, room: int, *, asked: str) -> list[tuple[Row, str]]:
    """For each call its line and its output; of too many calls the newest, and how many there are besides."""
    calls = [call for call in state.reply.calls if call.id != asked]
    shown = calls if len(calls) <= room else calls[len(calls) - max(room - 1, 1) :]
    waiting = {one.tool_id for one in state.approvals}
    started = state.run.started if state.run is not None else {}
    heads = [
        (_call(call, now, width, since=started.get(call.id), needs_you=call.id in waiting), call.tail) for call in shown
    ]
    if len(shown) < len(calls) and room > 1:
        heads.insert(0, ([piece(TextRole.MUTED, f"… {len(calls) - len(shown)} more calls")], ""))
    return heads


def _call(call: LiveCall, now: float, width: int, *, since: float | None, needs_you: bool) -> Row:
    """Its name and how long it has been running stay when there is no room for what it is about.

    Only a call that is being written or runs has a spinner.
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
    """The line of a run in which no call is open."""
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
    """A character that turns, so that one sees that it goes on: the one for this moment."""
    return FRAMES[int(now * FRAMES_PER_S) % len(FRAMES)]


def _output(printed: str, width: int, room: int) -> list[Row]:
    """The last lines of what a tool has printed, each cut: a progress bar is one line."""
    lines = [line.rsplit("\r", 1)[-1] for line in printed.replace("\r\n", "\n").split("\n")]
    shown = [clean(line) for line in lines if line.strip()][-room:] if room > 0 else []
    return [[piece(TextRole.MUTED, cut(f"  {line}", width))] for line in shown]
