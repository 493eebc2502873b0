"""A workspace with many Python extensions: from the start of its host until all are ready, forked and cold."""

import asyncio
import sys
import time
from functools import partial

from benchmarks import extensions_rig, rig
from benchmarks.rig import Place, Row
from zotd.process import OrphanReaper
from zotd.template.forks import Forks

COUNTS = (1, 10, 20)

ROUNDS = 9

ONE_TARGET_MS = 5.0
"""For one extension, until it is ready."""

SOURCE = '''
@ext.tool
def tool_of_NAME() -> str:
    """Does nothing."""
    return ""
'''


async def measure() -> list[Row]:
    """Two rows for each number of extensions."""
    rows: list[Row] = []
    for count in COUNTS:
        with rig.place() as place:
            for number in range(count):
                extensions_rig.write(place, f"e{number}", SOURCE.replace("NAME", f"e{number}"))
            async with extensions_rig.forking(place) as (forks, reaper):
                runs = {
                    "bare": partial(_bare, count),
                    "cold": partial(_ready, place, reaper, None),
                    "forked": partial(_ready, place, reaper, forks),
                }
                taken = await rig.in_turns(ROUNDS, runs, warm_up=1)
        bare, cold, forked = (rig.median(taken[name]) * 1000 for name in ("bare", "cold", "forked"))
        floor = "bare Python" if count == 1 else f"{count} times bare Python, side by side"
        what = f"start of {count} Python extension{'' if count == 1 else 's'}, until ready"
        target, is_met = (f"<= {ONE_TARGET_MS:g} ms", forked <= ONE_TARGET_MS) if count == 1 else ("", None)
        rows += [
            Row(f"{what}, from the template process", forked, "ms", bare, floor, target, is_met),
            Row(f"{what}, cold", cold, "ms", bare, floor, "", None),
        ]
    return rows


async def _bare(count: int) -> float:
    start = time.perf_counter()
    running = [await asyncio.create_subprocess_exec(sys.executable, "-c", "pass") for _ in range(count)]
    for process in running:
        await process.wait()
    return time.perf_counter() - start


async def _ready(place: Place, reaper: OrphanReaper, forks: Forks | None) -> float:
    start = time.perf_counter()
    async with extensions_rig.hosting(place, reaper=reaper, forks=forks):
        return time.perf_counter() - start


if __name__ == "__main__":
    rig.run(measure)
