"""What a daemon was doing when it was killed, from what it has stored."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.faults.stored import stored
from zotd.core import records
from zotd.core.records import DECODER, AnyRecord
from zotd.store.connection import SqlConnection
from zotd.testing.live_daemon import DaemonPaths

_SESSIONS = "SELECT key, state, records FROM sessions"

_NEW = "SELECT body FROM records WHERE session = ? AND number > ? ORDER BY number"


@dataclass
class Kills:
    """What was killed, and when."""

    instants: int = 0
    points: Counter[str] = field(default_factory=Counter)
    in_run: Counter[str] = field(default_factory=Counter)
    """Of both (`instants`, `points`), those that cut off a run that had gone on in that life."""
    cut: Counter[str] = field(default_factory=Counter)
    """Calls that were on record as started in that life, and their results not, by replay class."""

    def add(self, other: "Kills") -> None:
        """Sum up."""
        self.instants += other.instants
        for mine, its in ((self.points, other.points), (self.in_run, other.in_run), (self.cut, other.cut)):
            mine.update(its)


@dataclass(frozen=True, slots=True)
class Body:
    """What was found."""

    lengths: Mapping[int, int]
    """How many records each session has; the next examination looks at those behind them."""
    was_running: bool
    cut: Counter[str]


def examine(place: DaemonPaths, before: Mapping[int, int]) -> Body:
    """Look at what the life after `before` has left."""
    with stored(place) as connection:
        return _read(connection, before)


def _read(connection: SqlConnection, before: Mapping[int, int]) -> Body:
    lengths: dict[int, int] = {}
    cut: Counter[str] = Counter()
    was_running = False
    for key, state, length in connection.execute(_SESSIONS).fetchall():
        lengths[key] = length
        was_running |= state == "running" and length > before.get(key, 0)
        new = connection.execute(_NEW, (key, before.get(key, 0))).fetchall()
        cut.update(_cut([DECODER.decode(body) for (body,) in new]))
    return Body(lengths, was_running, cut)


def _cut(story: list[AnyRecord]) -> list[str]:
    started: dict[str, str] = {}
    for record in story:
        match record:
            case records.CallStarted():
                started[record.call_id] = record.replay
            case records.CallResult():
                started.pop(record.call_id, None)
            case _:
                pass
    return list(started.values())
