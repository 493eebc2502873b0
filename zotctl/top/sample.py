"""One look at the daemon: its figures, its sessions, its extensions, and what the kernel says of their processes."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

import psutil

from zotd.client.blocking import Connection, Json
from zotd.client.choosing import sessions
from zotd.client.fields import child, children, number, text

MAX_SESSIONS = 200
"""Sessions that one look asks for: two pages, and more than any screen shows."""

COST_EVERY_S = 5.0
"""Between two looks at the cost of the day, for which the daemon sums up a table."""

CHARS_PER_TOKEN = 4
"""Of a reply that is being written, whose tokens nobody has counted yet."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a process and its descendants take."""

    cpu: float
    """Per cent of one core since the look before; 0 at the first one."""
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen."""

    at: float
    """Seconds of a clock that only goes forward."""
    status: Json
    sessions: list[Json]
    """Newest first."""
    extensions: list[Json]
    cost_today: float
    loads: dict[int, Load] = field(default_factory=dict)
    """By pid, of the daemon and of the extensions; without those that cannot be looked at."""

    def written(self) -> dict[str, float]:
        """Tokens that each session's models have written, with an estimate of the reply under way."""
        return {text(one, "id"): _written(one) for one in self.sessions}


class Observer:
    """Looks again and again; the processes of a remote daemon stay unseen."""

    def __init__(self, connection: Connection, *, is_local: bool) -> None:
        """`connection` stays the caller's."""
        self._connection = connection
        self._is_local = is_local
        self._cost = 0.0
        self._cost_due = 0.0

    def look(self) -> Sample:
        """Ask the daemon and the kernel; raises `ClientError` when the daemon is gone."""
        ask, now = self._connection.call, time.monotonic()
        status = ask("daemon.status")
        if now >= self._cost_due:
            self._cost, self._cost_due = self._cost_today(), now + COST_EVERY_S
        extensions = children(ask("ext.list"), "extensions")
        pids = {pid for one in extensions if (pid := number(one, "pid"))}
        return Sample(
            at=now,
            status=status,
            sessions=list(islice(sessions(self._connection), MAX_SESSIONS)),
            extensions=extensions,
            cost_today=self._cost,
            loads=self._loads(number(status, "pid"), pids) if self._is_local else {},
        )

    def _cost_today(self) -> float:
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
        rows = children(self._connection.call("usage.report", since=midnight.isoformat(), by="model"), "rows")
        return sum(cost for row in rows if isinstance(cost := row.get("cost_usd"), float))

    def _loads(self, daemon: int, extensions: set[int]) -> dict[int, Load]:
        """What the daemon takes by itself, and each extension with all that it has started."""
        there: dict[int, psutil.Process] = {}
        children_of: defaultdict[int, list[int]] = defaultdict(list)
        for process in psutil.process_iter(["ppid"]):  # the same objects each time: they remember the look before
            there[process.pid] = process
            children_of[process.info["ppid"]].append(process.pid)
        families = {pid: list(_family(pid, children_of)) for pid in extensions} | {daemon: [daemon]}
        return {
            pid: Load(sum(load.cpu for load in loads), sum(load.rss_bytes for load in loads))
            for pid, family in families.items()
            if (loads := [load for one in family if one in there and (load := _load(there[one]))])
        }


def _family(root: int, children_of: Mapping[int, list[int]]) -> Iterator[int]:
    yield root
    for one in children_of[root]:
        yield from _family(one, children_of)


def _load(process: psutil.Process) -> Load | None:
    try:
        return Load(process.cpu_percent(), process.memory_info().rss)
    except psutil.Error:  # it has ended, or is somebody else's
        return None


def _written(session: Json) -> float:
    return number(child(session, "usage"), "output") + number(session, "writing") / CHARS_PER_TOKEN
