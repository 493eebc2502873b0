"""kill -9 at every point of store and driver, and at random instants (rows 1 and 2 of `docs/reliability.md`).

Each home is a story of its own (`tests.faults.homes`), and some are at work side by side. For each tool and each way to
go on, one home is not killed: it tells how often a life reaches each point, and so which kills there are.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from tests.faults import homes
from tests.faults.autopsy import Kills
from tests.faults.check import Findings, Promise
from tests.faults.daemon import Nursery
from tests.faults.homes import MIX, RESUME, Outcome, Task
from tests.faults.row import Options, Row
from zotd.core.ports import Replay
from zotd.runs import context
from zotd.store import writer

POINTS = (*writer.POINTS, *context.POINTS)

TOOLS = ("bash", "relay", "stamp", "transfer", "write", "edit", "read")
"""One of each replay class first; then what else a built-in tool does to the disk."""

CLASSES = 4
"""So many of them."""

SURE = 8
"""So often every life comes to every point within a second, however it began."""

INSTANTS = 1000

PER_HOME = 25
"""Kills in one home: making one costs as much as a kill, and looking at one takes longer the longer its story is."""

LANES = 3
"""Homes at work side by side: two cores and a disk that is waited for have nothing left for a fourth."""

IN_RUN = 0.9
"""The least part of the kills at random instants that has to cut off a run."""

KILLED = tuple(promise for promise in Promise if promise is not Promise.EVENTS)
"""What the first row is about; the second is about the rest."""

SHOWN = 5
"""Problems of a home that are printed; what is kept of it has the others."""

Kind = tuple[str, str]
"""A tool, and a way to go on."""

Place = tuple[str, int]
"""A point, and which time a life comes there."""


async def run(options: Options) -> list[Row]:
    """Both rows."""
    started = time.monotonic()
    async with Nursery.open() as nursery:
        rig = Rig(nursery, options)
        places = await _all_places(rig) if options.share == 1 else _some_places(options)
        await rig.do([*_at_points(places, options), *at_instants(options)])
    return rows(rig, "kills", time.monotonic() - started)


class Rig:
    """Does tasks, some side by side, and sums up what comes of them."""

    def __init__(self, nursery: Nursery, options: Options, database: Callable[[], str] | None = None) -> None:
        """`database`: see `homes.run`."""
        self.options = options
        self._database = database
        self.kills = Kills()
        self.findings = Findings()
        self._nursery = nursery

    async def do(self, tasks: Sequence[Task]) -> list[tuple[Task, Outcome]]:
        """The tasks with their outcomes, in the order in which they ended."""
        found: list[tuple[Task, Outcome]] = []
        left = iter(tasks)

        async def lane() -> None:
            for task in left:
                outcome = await homes.run(task, self._nursery, self._database)
                found.append((task, outcome))
                self._add(task, outcome, f"home {len(found)} of {len(tasks)}")

        async with asyncio.TaskGroup() as group:
            for number in range(LANES):
                group.create_task(lane(), name=f"lane {number}")
        return found

    def _add(self, task: Task, outcome: Outcome, progress: str) -> None:
        self.kills.add(outcome.kills)
        self.findings.add(outcome.findings)
        points, instants = self.kills.points.total(), self.kills.instants
        say = self.options.say
        say(f"{progress} ({task.tool}, {task.resume}); killed at points: {points}, at instants: {instants}")
        for problem in outcome.findings.problems[:SHOWN]:
            say(f"    {problem.promise}: {problem.sentence}")
        if outcome.folder is not None:
            say(f"    kept in {outcome.folder}")


# --- what is done ---------------------------------------------------------------------------------------------


async def _all_places(rig: Rig) -> Mapping[Kind, Sequence[Place]]:
    """Every point, each time that a life comes there."""
    places: dict[Kind, Sequence[Place]] = {}
    came: set[str] = set()
    for task, outcome in await rig.do([Task(*kind, seed="") for kind in _kinds(rig.options)]):
        places[task.tool, task.resume] = [
            (point, nth) for point, times in outcome.reached.items() for nth in range(1, times + 1)
        ]
        came.update(outcome.reached)
    rig.findings.complain(Promise.OTHER, *(f'no life comes to "{point}"' for point in POINTS if point not in came))
    return places


def _some_places(options: Options) -> Mapping[Kind, Sequence[Place]]:
    """Every point once, and more when the share wants more; of each replay class, and more kinds when it does."""
    chance = random.Random(f"{options.seed} places")
    kinds = _kinds(options)
    kinds = kinds[: max(CLASSES, options.of(len(kinds)))]
    places = list(product(POINTS, range(1, SURE + 1)))
    wanted = [(point, chance.randint(1, SURE)) for point in POINTS]
    more = options.of(len(_kinds(options)) * len(places)) - len(wanted)
    wanted += chance.choices(places, k=max(0, more))
    return {kind: wanted[index :: len(kinds)] for index, kind in enumerate(kinds)}


def _kinds(options: Options) -> list[Kind]:
    """Every tool with every way to go on; the first `CLASSES` are of different classes and go on in different ways."""
    ways = _ways(options)
    return [(tool, ways[(turn + number) % len(ways)]) for turn in range(len(ways)) for number, tool in enumerate(TOOLS)]


def _ways(options: Options) -> Sequence[str]:
    return RESUME if options.resume is None else (options.resume,)


def _at_points(places: Mapping[Kind, Sequence[Place]], options: Options) -> Iterator[Task]:
    for (tool, resume), wanted in places.items():
        for index in range(0, len(wanted), PER_HOME):
            yield Task(tool, resume, f"{options.seed} {tool} {index}", points=wanted[index : index + PER_HOME])


def at_instants(options: Options) -> Iterator[Task]:
    """Homes that are killed at random instants."""
    count = options.of(INSTANTS) if options.kills is None else options.kills
    ways = _ways(options)
    for number, before in enumerate(range(0, count, PER_HOME)):
        instants = min(PER_HOME, count - before)
        yield Task(MIX, ways[number % len(ways)], f"{options.seed} {number}", instants=instants)


# --- what is told ---------------------------------------------------------------------------------------------


def rows(rig: Rig, name: str, seconds: float) -> list[Row]:
    """What has come of the check with this name: a row for work, and one for clients."""
    broken = {promise: sum(one.promise is promise for one in rig.findings.problems) for promise in Promise}
    in_run = rig.kills.in_run["instants"] >= IN_RUN * rig.kills.instants
    events = rig.findings.counts["events"]
    found = (
        (_what_was_killed(rig.kills), KILLED, in_run),
        (f"two clients that reconnect across those kills, {events:,} events", (Promise.EVENTS,), True),
    )
    return [
        Row(
            check=check,
            must_give=", ".join(f"0 {promise}" for promise in promises),
            got=", ".join(f"{broken[promise]:,}" for promise in promises),
            ok=is_ok and not any(broken[promise] for promise in promises),
            command=_command(name, rig.options),
            seconds=seconds,
            seed=rig.options.seed,
        )
        for check, promises, is_ok in found
    ]


def _what_was_killed(kills: Kills) -> str:
    inside = 100 * kills.in_run["instants"] / max(1, kills.instants)
    cut = ", ".join(f"{kills.cut[replay]:,} {replay}" for replay in Replay if replay is not Replay.SAFE)
    points = f"{len(kills.points)} points, {kills.points.total():,} times, and at " if kills.points else ""
    return (
        f"kill -9 at {points}{kills.instants:,} random "
        f"instants, {inside:.0f} % of them inside a run; calls that were cut: {cut}"
    )


def _command(name: str, options: Options) -> str:
    given = {"--share": None if options.share == 1 else f"{options.share:g}", "--kills": options.kills}
    given["--resume"] = options.resume
    more = "".join(f" {name} {value}" for name, value in given.items() if value is not None)
    return f"python -m tests.faults {name} --seed {options.seed}{more}"
