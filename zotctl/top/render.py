"""Renders samples of the daemon as lines of text or as JSON. Pure, except that ages use the current time."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from zotctl.top.sample import Load, Sample
from zotd.client import choosing, colour
from zotd.client.blocking import Json
from zotd.client.columns import clipped, fitting, width_of
from zotd.client.families import in_families, indented
from zotd.client.fields import child, number, parent_id, session_id, text
from zotd.client.humanize import age, counted, duration, size
from zotd.client.table import table
from zotd.sanitize import COLOURS, one_line

STATES = {
    "running": colour.GREEN,
    "waiting": colour.YELLOW,
    "held": colour.YELLOW,
    "blocked": colour.RED,
    "failed": colour.RED,
    "parked": colour.RED,
    "restarting": colour.RED,
    "stopping": colour.YELLOW,
    "expired": colour.RED,
}
"""Colours of states."""

BUSY = ("waiting", "running", "held", "blocked", "failed")
"""Session states listed before idle ones, in this order."""

FLEET_FIGURES = {"LEASE", "SESSIONS", "PROMPTS", "RUNNING", "WAITING", "PRIORITY", "ENDED"}

FIGURES = frozenset({"TOK/S", "USD", "CLIENTS", "JOBS", "UPDATED", "PID", "CPU", "MEMORY"} | FLEET_FIGURES)
"""Columns that are aligned right, in these views."""

SESSION_COLUMNS = ("SESSION", "STATE", "MODEL", "TOK/S", "USD", "CLIENTS", "JOBS", "UPDATED", "DIRECTORY")

JOBS = SESSION_COLUMNS.index("JOBS")
"""A column that is left out if no job runs: few sessions have any."""

NAME_COLUMNS = 28
MODEL_COLUMNS = 26

Paint = Callable[[str, str], str]
"""Adds a colour to text, unless colours are off."""


def rates(looks: Sequence[Sample]) -> dict[str, float]:
    """Return output tokens per second by session ID, from the oldest sample to the newest."""
    if len(looks) < 2 or looks[-1].at <= looks[0].at:
        return {}
    before, now = looks[0].written(), looks[-1].written()
    seconds = looks[-1].at - looks[0].at
    return {one: max(0.0, (count - before[one]) / seconds) for one, count in now.items() if one in before}


def draw(looks: Sequence[Sample], paint: Paint, *, width: int, height: int | None) -> list[str]:
    """Return the newest sample as at most `height` lines (None: no limit) of at most `width` columns."""
    look, speed = looks[-1], rates(looks)
    head = _head(look, sum(speed.values()))
    extensions = _extensions(look, paint)
    below = ["", *extensions] if extensions else []
    ranked = list(in_families(sorted(look.sessions, key=_rank), session_id, parent_id))
    room = len(ranked) if height is None else max(1, height - len(head) - 2 - len(below))
    if room < len(ranked):
        room = max(1, room - 1)  # one line for the number of those left out
    rows = [[*SESSION_COLUMNS], *(_session(one, speed, depth) for one, depth in ranked[:room])]
    if not any(number(one, "jobs") for one, _ in ranked):
        for row in rows:
            del row[JOBS]
    lines = [*head, "", *columns(rows, paint)]
    if room < len(ranked):
        lines.append(f"… {len(ranked) - room} more")
    return [cut(line, width) for line in [*lines, *below]][:height]


def as_json(looks: Sequence[Sample]) -> Json:
    """Return the newest sample as a JSON object."""
    look, speed = looks[-1], rates(looks)
    return {
        "v": 1,
        "daemon": {**look.status, **_load(look.loads.get(number(look.status, "pid")))},
        "cost_today_usd": round(look.cost_today, 6),
        "tokens_per_s": round(sum(speed.values()), 1),
        "sessions": [{**one, "tokens_per_s": round(speed.get(text(one, "id"), 0.0), 1)} for one in look.sessions],
        "extensions": [{**one, **_load(look.loads.get(number(one, "pid")))} for one in look.extensions],
    }


def _load(load: Load | None) -> Json:
    return {"cpu_percent": load and round(load.cpu, 1), "rss_bytes": load and load.rss_bytes}


def _head(look: Sample, speed: float) -> list[str]:
    status, load = look.status, look.loads.get(number(look.status, "pid"))
    own = f"   cpu {load.cpu:.0f}%   memory {size(load.rss_bytes)}" if load else ""
    uptime = status.get("uptime_s")
    since = duration(uptime) if isinstance(uptime, int | float) else "?"
    states = [choosing.state(one) for one in look.sessions]
    counts = "".join(f"   {states.count(state)} {state}" for state in BUSY if state in states)
    spent = f"{speed:.0f} tokens/s   ${look.cost_today:.2f} today"
    return [
        f"zotd {one_line(text(status, 'version'))}   up {since}   pid {number(status, 'pid')}{own}",
        f"{counted(len(states), 'session')}{counts}   {counted(number(status, 'clients'), 'client')}   {spent}",
    ]


def _rank(session: Json) -> int:
    """Sort key: active sessions first; sorting is stable, so the newest stay first."""
    state = choosing.state(session)
    return BUSY.index(state) if state in BUSY else len(BUSY)


def _session(one: Json, speed: dict[str, float], depth: int) -> list[str]:
    cost = child(one, "usage").get("cost_usd")
    rate = speed.get(text(one, "id"), 0.0)
    return [
        clipped(indented(one_line(text(one, "name") or text(one, "id")), depth), NAME_COLUMNS),
        choosing.state(one),
        clipped(one_line(text(one, "model")), MODEL_COLUMNS),
        f"{rate:.0f}" if rate >= 0.5 else "",
        f"{cost:.2f}" if isinstance(cost, int | float) and cost else "",
        str(number(one, "clients") or ""),
        str(number(one, "jobs") or ""),
        _since(text(one, "updated")),
        text(one, "cwd"),
    ]


def _extensions(look: Sample, paint: Paint) -> list[str]:
    if not look.extensions:
        return []
    has_reasons = any(text(one, "reason") for one in look.extensions)
    rows = [["EXTENSION", "STATE", "PID", "CPU", "MEMORY", "DIRECTORY", "REASON" if has_reasons else ""]]
    for one in look.extensions:
        load = look.loads.get(number(one, "pid"))
        figures = [f"{load.cpu:.0f}%", size(load.rss_bytes)] if load else ["", ""]
        about = [clipped(one_line(text(one, "name")), NAME_COLUMNS), text(one, "state"), str(number(one, "pid") or "")]
        rows.append([*about, *figures, text(one, "cwd"), text(one, "reason")])
    return columns(rows, paint)


def columns(rows: Sequence[Sequence[str]], paint: Paint) -> list[str]:
    """Return the lines of a table: a bold head, states in their colours, numbers aligned right."""
    head = rows[0]
    right = {column for column, title in enumerate(head) if title in FIGURES}

    def painted(column: int, cell: str) -> str:
        return paint(cell, STATES[cell]) if head[column] == "STATE" and cell in STATES else cell

    lines = table(rows, right=right, paint=painted)
    return [paint(lines[0], colour.BOLD), *lines[1:]]


def cut(line: str, width: int) -> str:
    """Return what fits into `width` columns; colour sequences take no columns, and are reset at the cut."""
    room, kept = width, []
    for part in re.split(f"({COLOURS})", line):
        if part.startswith("\x1b"):
            kept.append(part)
            continue
        shown = fitting(part, room)
        kept.append(shown)
        room -= width_of(shown)
        if shown != part:
            return "".join(kept) + ("\x1b[0m" if len(kept) > 1 else "")
    return "".join(kept)


def _since(moment: str) -> str:
    try:
        return age((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    except ValueError:
        return ""
