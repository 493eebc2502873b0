"""What `zotctl fleet top` shows: the daemons of a database, and the batches that they work through."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zotctl import fleet_waiting
from zotctl.top.live import View
from zotctl.top.render import Paint, columns, cut
from zotd.client.blocking import Connection, Json
from zotd.client.fields import amount, children, number, strings, text
from zotd.client.humanize import counted
from zotd.sanitize import one_line

DAEMON_COLUMNS = ("DAEMON", "STATE", "LEASE", "SESSIONS", "RUNNING", "PROMPTS", "ADDRESS", "LABELS")

BATCH_COLUMNS = ("BATCH", "SUBMITTER", "PRIORITY", "PROGRESS", "RUNNING", "WAITING", "ENDED")


@dataclass(frozen=True, slots=True)
class FleetSample:
    """The fleet at one moment, as one of its daemons knows it."""

    daemons: Sequence[Json]
    """Oldest first; none if the sessions are in a file."""
    waiting: Sequence[Json]
    """Prompts that no daemon runs yet, by the labels that they need."""
    batches: Sequence[Json]
    """Those that have prompts to run, newest first."""


def draw(looks: Sequence[FleetSample], paint: Paint, *, width: int, height: int | None) -> list[str]:
    """Return the newest sample as at most `height` lines (None: no limit) of at most `width` columns."""
    look = looks[-1]
    above = [_head(look), ""]
    between = [*(one_line(fleet_waiting.why(one)) for one in look.waiting), ""]
    room = None if height is None else max(0, height - len(above) - len(between))
    # Half of the lines for each table, and what one of them does not need for the other.
    batches_room = room and max(room // 2, room - len(look.daemons) - 1)
    batches = _table(BATCH_COLUMNS, [_batch(one) for one in look.batches], paint, batches_room)
    daemons = _table(DAEMON_COLUMNS, [_daemon(one) for one in look.daemons], paint, room and room - len(batches))
    lines = [*above, *(daemons or [fleet_waiting.ALONE]), *between, *batches]
    return [cut(line, width) for line in lines][:height]


def as_json(looks: Sequence[FleetSample]) -> Json:
    """Return the newest sample as a JSON object."""
    look = looks[-1]
    return {"v": 1, "daemons": look.daemons, "waiting": look.waiting, "batches": look.batches}


def _observe(connection: Connection) -> Callable[[], FleetSample]:
    def look() -> FleetSample:
        fleet = connection.call("fleet.list")
        batches = children(connection.call("batch.list", active=True), "batches")
        return FleetSample(children(fleet, "daemons"), children(fleet, "waiting"), batches)

    return look


VIEW = View(_observe, draw, as_json)


def _head(look: FleetSample) -> str:
    states = [text(one, "state") for one in look.daemons]
    counts = [f"{states.count(state)} {state}" for state in ("stopping", "expired") if state in states]
    sessions = counted(sum(number(one, "sessions") for one in look.daemons), "session")
    running = sum(number(one, "running") for one in look.daemons)
    prompts = sum(number(one, "running") for one in look.batches)
    waiting = sum(number(one, "waiting") for one in look.batches)
    known = [counted(len(states), "daemon"), *counts, sessions, f"{running:,} running"] if states else []
    return "   ".join([*known, f"prompts of batches: {prompts:,} running, {waiting:,} waiting"])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], paint: Paint, room: int | None) -> list[str]:
    """Return the lines of a table, at most `room`; none if it has no rows."""
    if not rows:
        return []
    shown = rows
    if room is not None and len(rows) + 1 > room:
        shown = rows[: max(1, room - 2)]  # a line for the head, and one for the number of those left out
    more = [f"… {len(rows) - len(shown)} more"] if len(shown) < len(rows) else []
    return [*columns([head, *shown], paint), *more]


def _daemon(one: Json) -> list[str]:
    lease_s = amount(one, "lease_s")
    return [
        text(one, "name") + (" (this one)" if one.get("is_this") is True else ""),
        text(one, "state"),
        f"{lease_s:.0f}s" if lease_s > 0 else "",
        str(number(one, "sessions")),
        str(number(one, "running")),
        str(number(one, "prompts")),
        text(one, "address") or "none",
        ", ".join(strings(one, "labels")),
    ]


def _batch(one: Json) -> list[str]:
    ended, running, waiting = (number(one, name) for name in ("ended", "running", "waiting"))
    every = ended + running + waiting
    return [
        text(one, "id") + (" (cancelled)" if one.get("cancelled") is True else ""),
        text(one, "submitter"),
        str(number(one, "priority")),
        f"{100 * ended // every}% of {every:,}",
        str(running),
        str(waiting),
        str(ended),
    ]
