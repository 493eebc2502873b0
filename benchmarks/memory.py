"""What idle sessions cost: memory for each, and the processor's time for 200 of them."""

import asyncio
from dataclasses import dataclass

import psutil

from benchmarks import history, rig
from benchmarks.rig import Row, World

SESSIONS = 200

PROMPTS = 10
"""Of each session; as many answers."""

IDLE_S = 20.0
"""One beat of the daemon's heart falls into it."""

LOOK_S = 0.5

SETTLED_S = 20.0
"""Longest wait until the daemon has loaded a vendor's SDK, which takes 2 s."""

SETTLED = 5
"""Sessions that have run before the first figure of those that ran: the vendor's SDK and its caches are loaded then."""

EACH_TARGET_MIB = 0.3

ALL_TARGET_MIB = 150.0

CPU_TARGET = 0.2
"""Percent of a core."""


@dataclass(frozen=True, slots=True)
class Attached:
    """200 stored sessions that a client follows, in a daemon that has not called a model yet."""

    empty_mib: float
    first_mib: float
    """With one of them, and the vendor's SDK, which is loaded when a client attaches."""
    full_mib: float
    cpu_percent: float


async def measure() -> list[Row]:
    """Rows for memory and the processor."""
    idle = await _attached()
    settled, full = await _used()
    attached = (idle.full_mib - idle.first_mib) / (SESSIONS - 1)
    used = (full - settled) / (SESSIONS - SETTLED)
    each = f"<= {EACH_TARGET_MIB:g} MiB"
    return [
        Row("memory of the idle daemon", idle.empty_mib, "MiB", None, "", "", None),
        Row("memory of a session that is followed", attached, "MiB", None, "", each, attached <= EACH_TARGET_MIB),
        Row("memory of a session that has run", used, "MiB", None, "", each, used <= EACH_TARGET_MIB),
        Row(
            f"{SESSIONS} followed sessions, with one vendor's SDK",
            idle.full_mib,
            "MiB",
            idle.first_mib,
            "1 of them",
            f"<= {ALL_TARGET_MIB:g} MiB",
            idle.full_mib <= ALL_TARGET_MIB,
        ),
        Row(f"{SESSIONS} sessions that have run, with one vendor's SDK", full, "MiB", settled, "5 of them", "", None),
        Row(
            f"processor for {SESSIONS} idle sessions",
            idle.cpu_percent,
            "% of a core",
            None,
            "",
            f"<= {CPU_TARGET:g} %",
            idle.cpu_percent <= CPU_TARGET,
        ),
    ]


async def _attached() -> Attached:
    with rig.place() as where:
        ids = await history.write(where.home, where.cwd, sessions=SESSIONS, messages=2 * PROMPTS)
        async with rig.daemon(where) as process, rig.connect(where) as client:
            empty = rig.rss_mib(process)
            await client.attach(ids[0])
            await _settled(process)
            first = rig.rss_mib(process)
            for session in ids[1:]:
                await client.attach(session)
            full = rig.rss_mib(process)
            before = rig.cpu_s(process)
            await asyncio.sleep(IDLE_S)
            return Attached(empty, first, full, (rig.cpu_s(process) - before) / IDLE_S * 100)


async def _settled(process: psutil.Process) -> None:
    """Wait until the daemon computes no more."""
    before = -1.0
    async with asyncio.timeout(SETTLED_S):
        while (now := rig.cpu_s(process)) != before:
            before = now
            await asyncio.sleep(LOOK_S)


async def _used() -> tuple[float, float]:
    """MiB after `SETTLED` stored sessions have run, and after all have."""
    async with rig.world() as world:
        await _run(world, SETTLED)
        settled = rig.rss_mib(world.daemon)
        await _run(world, SESSIONS - SETTLED)
        return settled, rig.rss_mib(world.daemon)


async def _run(world: World, sessions: int) -> None:
    for _ in range(sessions):
        session = await world.session("anthropic", "deltas/1", stored=True)
        for _ in range(PROMPTS):
            await rig.finish(session)


if __name__ == "__main__":
    rig.run(measure)
