"""Daemons that share a database: nothing is lost and nothing runs twice when one of them, or the server, goes away.

Each story has a server and two daemons of its own (`tests.faults.fleet_home`). Most of the time nothing happens: a lease
expires after 10 s, so many stories go on side by side.
"""

import asyncio
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tests.faults import fleet_home, network
from tests.faults.check import Findings, Promise
from tests.faults.daemon import Nursery
from tests.faults.fleet_story import (
    CUT,
    DRAIN,
    KILL,
    NETWORKS,
    PAUSE,
    PROMOTE,
    SERVER,
    SOCKETS,
    SPLIT,
    STANDBY,
    Blows,
    Story,
)
from tests.faults.homes import RESUME
from tests.faults.kills import SHOWN
from tests.faults.row import Options, Row, skipped
from zotd.testing.postgres_server import MISSING

COUNTS = {KILL: 1000, PAUSE: 200, CUT: 200, SERVER: 50}

NETWORK_COUNTS = {CUT: 100, SPLIT: 50, KILL: 50}
"""With a network for each daemon; these kills and partitions are some of `COUNTS`."""

STANDBY_COUNTS = {PROMOTE: 20, KILL: 20}
"""With a standby of the database; these kills are some of `COUNTS`."""

DRAINS = 100

JOURNAL = {SERVER, PROMOTE}
"""What happens to the database, and not to a daemon."""

PER_STORY = 10

LANES = 8
"""Stories side by side: each of them computes for a second of 12."""

FAILOVER_S = 14.0
"""Longest time that 99 of 100 failovers after a crash may take, …"""

HANDOVER_S = 0.3
"""… and that a run may stand still when its daemon is drained."""


async def run(options: Options) -> list[Row]:
    """A row for what was stored and done, and one for the time that failovers took."""
    if MISSING is not None:
        return [skipped("two daemons of one database", MISSING, "python -m tests.faults fleet")]
    started = time.monotonic()
    blows, findings = Blows(), Findings()
    lacking = network.missing()
    async with Nursery.open() as nursery:
        # The time of a hand-over is measured while nothing else happens.
        for stories, lanes in ((_stories(options, with_networks=lacking is None), LANES), (_drains(options), 1)):
            left = iter(enumerate(stories))

            async def lane(left: Iterator[tuple[int, Story]] = left) -> None:
                for number, story in left:
                    done, found, folder = await fleet_home.run(story, nursery)
                    blows.add(done)
                    findings.add(found)
                    options.say(f"story {number} ({story.resume}, {story.ground}): {blows.count.total()} blows")
                    for problem in found.problems[:SHOWN]:
                        options.say(f"    {problem.promise}: {problem.sentence}")
                    if folder is not None:
                        options.say(f"    kept in {folder}")

            async with asyncio.TaskGroup() as tasks:
                for number in range(lanes):
                    tasks.create_task(lane(), name=f"lane {number}")
    return _rows(blows, findings, options, time.monotonic() - started, lacking)


def _stories(options: Options, *, with_networks: bool) -> Sequence[Story]:
    """Return the stories whose blows come side by side; those with networks first, because they take longest."""
    counts = _counts(options, COUNTS)
    standby = _counts(options, STANDBY_COUNTS)
    stories = _told(options, standby, STANDBY)
    if with_networks:
        networked = _counts(options, NETWORK_COUNTS)
        stories = [*_told(options, networked, NETWORKS), *stories]
        counts -= networked
    return [*stories, *_told(options, counts - standby, SOCKETS)]


def _counts(options: Options, counts: Mapping[str, int]) -> Counter[str]:
    return Counter({blow: options.of(count) for blow, count in counts.items()})


def _drains(options: Options) -> Sequence[Story]:
    return _told(options, {DRAIN: options.of(DRAINS)}, SOCKETS)


def _told(options: Options, counts: Mapping[str, int], ground: str) -> Sequence[Story]:
    chance = random.Random(f"{options.seed} {ground}")
    blows = [blow for blow, count in counts.items() for _ in range(count)]
    chance.shuffle(blows)
    firsts = range(0, len(blows), PER_STORY)
    return [_story(options.seed, index, blows[first : first + PER_STORY], ground) for index, first in enumerate(firsts)]


def _story(seed: int, number: int, blows: Sequence[str], ground: str) -> Story:
    # After a failure of the journal nothing goes on by itself.
    ways = [way for way in RESUME if way != "auto" or not JOURNAL.intersection(blows)]
    return Story(f"{seed} {ground} {number}", ways[number % len(ways)], blows, ground)


def _rows(blows: Blows, findings: Findings, options: Options, seconds: float, lacking: str | None) -> list[Row]:
    broken = {promise: sum(one.promise is promise for one in findings.problems) for promise in Promise}
    done = ", ".join(f"{count:,} times {blow}" for blow, count in blows.count.items())
    events = findings.counts["events"]
    found = [
        Row(
            check=f"two daemons of one database: {done}; {blows.in_run:,} met a run; {blows.moves:,} moves of a session; {events:,} events of two clients",
            must_give=", ".join(f"0 {promise}" for promise in Promise),
            got=", ".join(f"{broken[promise]:,}" for promise in Promise),
            ok=not any(broken.values()),
            command=_command(options),
            seconds=seconds,
            seed=options.seed,
        )
    ]
    timed = (
        ("from the kill of a daemon until its sessions are another one's", blows.failovers_s, FAILOVER_S),
        (
            "from the end of a step in a daemon that is drained to the next step in another one",
            blows.handovers_s,
            HANDOVER_S,
        ),
    )
    if lacking is not None:
        found.append(skipped("daemons with networks of their own", lacking, _command(options)))
    return found + [
        _timed(check, times_s, most_s, options, seconds) for check, times_s, most_s in timed if len(times_s) > 1
    ]


def _timed(check: str, times_s: Sequence[float], most_s: float, options: Options, seconds: float) -> Row:
    *_, late = statistics.quantiles(times_s, n=100, method="inclusive")
    return Row(
        check=f"{check}, {len(times_s):,} times",
        must_give=f"99 % within {most_s:g} s",
        got=f"half within {statistics.median(times_s):.2f} s, 99 % within {late:.2f} s",
        ok=late <= most_s,
        command=_command(options),
        seconds=seconds,
        seed=options.seed,
    )


def _command(options: Options) -> str:
    share = "" if options.share == 1 else f" --share {options.share:g}"
    return f"python -m tests.faults fleet --seed {options.seed}{share}"
