"""What subagents cost: memory for each of 100 that work, and what 100 at once add to the first delta of one.

The floor of the memory is a session of a person that does the same. First deltas hold the time at which the model sent them.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks import rig
from benchmarks.model import sent_ns
from benchmarks.rig import Row, World
from zotd.client.session import Session
from zotd.wire.api import OfSession, Sessions
from zotd.wire.events import TextDelta

SUBAGENTS = 100

CONFIG = f"[agents]\nat_once = {SUBAGENTS}\nper_run = {SUBAGENTS}\n"

WAIT_S = 4
"""The model waits that long before its first delta, so that all subagents work, and are followed, by then."""

RATE, COUNT = 10, 20
"""Deltas a second, and of each subagent."""

ROUNDS = 3

ALONE = 30
"""First deltas of a subagent alone, a family each."""

LOOK_S = 0.02
"""Time between two looks at a family that is still growing."""

GROWN_S = 30.0
"""Longest time that it may take to grow."""

TARGET_MS = 20.0

LIKE_A_SESSION = 1.5
"""Most memory of a subagent, in memories of a session. It has a call that waits for it, whose progress and result count here, too."""


async def measure() -> list[Row]:
    """Rows for memory and the first delta."""
    session_mib, subagent_mib, first = await _sessions_mib(), *(await _families())
    alone = await _alone()
    added, floor = rig.percentile(first, 99), rig.percentile(alone, 99)
    ratio = subagent_mib / session_mib
    return [
        Row(
            f"memory of a subagent, {SUBAGENTS} work",
            subagent_mib,
            "MiB",
            session_mib,
            "session that does the same",
            f"<= {LIKE_A_SESSION:g}x",
            ratio <= LIKE_A_SESSION,
        ),
        Row(
            f"first delta of one of {SUBAGENTS} subagents, 99 %: added",
            added - floor,
            "ms",
            floor,
            "one subagent, 99 %",
            f"<= {TARGET_MS:g} ms",
            added - floor <= TARGET_MS,
            note=f"half: {rig.median(first):.1f} ms, of one {rig.median(alone):.1f} ms",
        ),
    ]


def _plan(size: int, wait_s: int) -> str:
    return f"family/{size}/{wait_s}/{RATE}/{COUNT}"


@asynccontextmanager
async def _world() -> AsyncIterator[World]:
    with rig.place() as where:
        where.home.mkdir(mode=0o700)
        (where.home / "config.toml").write_text(CONFIG)
        async with rig.model(where) as url, rig.daemon(where) as process, rig.connect(where) as client:
            yield World(where, process, url, client)


async def _families() -> tuple[float, list[float]]:
    """MiB for each subagent that works, and the milliseconds of their first deltas."""
    found: list[float] = []
    async with _world() as world:
        await _family(world, 1, wait_s=0)
        before = rig.rss_mib(world.daemon)
        await _family(world, SUBAGENTS, wait_s=WAIT_S, found=found)
        mib = (rig.rss_mib(world.daemon) - before) / SUBAGENTS
        for _ in range(ROUNDS - 1):
            await _family(world, SUBAGENTS, wait_s=WAIT_S, found=found)
    return mib, found


async def _alone() -> list[float]:
    found: list[float] = []
    async with _world() as world:
        for _ in range(ALONE):
            await _family(world, 1, wait_s=1, found=found)
    return found


async def _sessions_mib() -> float:
    """MiB for each of as many sessions of a person, after they have answered the prompt of a subagent."""
    async with _world() as world:
        await _family(world, 1, wait_s=0)
        before = rig.rss_mib(world.daemon)
        sessions = [await world.session("anthropic", f"paced/{RATE}/{COUNT}/1", stored=True) for _ in range(SUBAGENTS)]
        async with asyncio.TaskGroup() as tasks:
            for session in sessions:
                tasks.create_task(rig.finish(session))
        return (rig.rss_mib(world.daemon) - before) / SUBAGENTS


async def _family(world: World, size: int, *, wait_s: int, found: list[float] | None = None) -> None:
    """A run that has so many subagents work at once; `found` gets the milliseconds of their first deltas."""
    parent = await world.session("anthropic", _plan(size, wait_s), stored=True)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rig.finish(parent))
        if found is not None:
            for child in await _grown(world, parent, size):
                tasks.create_task(_first(world.client.session(child), found))


async def _grown(world: World, parent: Session, size: int) -> list[str]:
    """The ids of all subagents, as soon as they are there."""
    async with asyncio.timeout(GROWN_S):
        while True:
            family = await world.client.ask(OfSession(parent.id), Sessions, command="session.family")
            if len(family.sessions) > size:
                return [one.id for one in family.sessions if one.id != parent.id]
            await asyncio.sleep(LOOK_S)


async def _first(session: Session, found: list[float]) -> None:
    async for batch in session.batches():
        now = time.monotonic_ns()
        for event in batch:
            if type(event) is TextDelta:
                found.append((now - sent_ns(event.delta)[0]) / 1e6)
                return


if __name__ == "__main__":
    rig.run(measure)
