"""Samples of the daemon: its status, sessions and extensions, and the load of their processes."""

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
"""Most sessions in a sample: two pages, more than a screen shows."""

COST_EVERY_S = 5.0
"""Seconds between requests for today's cost, which make the daemon sum a table."""

CHARS_PER_TOKEN = 4
"""Estimate for a reply in progress, before the provider reports its tokens."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a process and its descendants."""

    cpu: float
    """Per cent of one core since the previous sample; 0 in the first one."""
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the daemon at one moment."""

    at: float
    """Monotonic time in seconds."""
    status: Json
    sessions: list[Json]
    """Newest first."""
    extensions: list[Json]
    cost_today: float
    loads: dict[int, Load] = field(default_factory=dict)
    """Loads of the daemon and the extensions by pid; processes that cannot be inspected are missing."""

    def written(self) -> dict[str, float]:
        """Return output tokens by session ID, including an estimate for a reply in progress."""
        return {text(one, "id"): _written(one) for one in self.sessions}


class Observer:
    """Takes samples; for a remote daemon, without process loads."""

    def __init__(self, connection: Connection, *, is_local: bool) -> None:
        """The caller keeps ownership of `connection`."""
        self._connection = connection
        self._is_local = is_local
        self._cost = 0.0
        self._cost_due = 0.0

    def look(self) -> Sample:
        """Take a sample; raises `ClientError` if the daemon does not answer."""
        ask, now = self._connection.call, time.monotonic()
        status = ask("daemon.status")
        if now >= self._cost_due:
            self._cost, self._cost_due = self._cost_today(), now + COST_EVERY_S
        extensions = children(ask("ext.list"), "extensions")
        pids = {pid for one in extensions if (pid := number(one, "pid"))}
        return Sample(
            at=now,
            status=status,
            sessions=list(islice(sessions(self._connection, subagents=True), MAX_SESSIONS)),
            extensions=extensions,
            cost_today=self._cost,
            loads=self._loads(number(status, "pid"), pids) if self._is_local else {},
        )

    def _cost_today(self) -> float:
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
        rows = children(self._connection.call("usage.report", since=midnight.isoformat(), by="model"), "rows")
        return sum(cost for row in rows if isinstance(cost := row.get("cost_usd"), float))

    def _loads(self, daemon: int, extensions: set[int]) -> dict[int, Load]:
        """Return the load of the daemon alone, and of each extension with its descendants."""
        there: dict[int, psutil.Process] = {}
        children_of: defaultdict[int, list[int]] = defaultdict(list)
        for process in psutil.process_iter(
            ["ppid"]
        ):  # returns cached objects, which cpu_percent() needs to compare with the previous call
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
    except psutil.Error:  # it has ended, or belongs to another user
        return None


def _written(session: Json) -> float:
    return number(child(session, "usage"), "output") + number(session, "writing") / CHARS_PER_TOKEN
