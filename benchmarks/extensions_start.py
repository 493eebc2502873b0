"""A workspace with many Python extensions: from the start of its host until all are ready."""

import asyncio
import sys
import time
from functools import partial

from benchmarks import extensions_rig, rig
from benchmarks.rig import Place, Row

COUNTS = (1, 10, 20)

ROUNDS = 7

SOURCE = '''
@ext.tool
def tool_of_NAME() -> str:
    """Does nothing."""
    return ""
'''


async def measure() -> list[Row]:
    """A row for each number of extensions."""
    rows: list[Row] = []
    for count in COUNTS:
        with rig.place() as place:
            for number in range(count):
                extensions_rig.write(place, f"e{number}", SOURCE.replace("NAME", f"e{number}"))
            taken = await rig.in_turns(
                ROUNDS, {"bare": partial(_bare, count), "ready": partial(_ready, place)}, warm_up=1
            )
        bare, ready = (rig.median(taken[name]) * 1000 for name in ("bare", "ready"))
        floor = "bare Python" if count == 1 else f"{count} times bare Python, side by side"
        plural = "" if count == 1 else "s"
        rows.append(Row(f"start of {count} Python extension{plural}, until ready", ready, "ms", bare, floor, "", None))
    return rows


async def _bare(count: int) -> float:
    start = time.perf_counter()
    running = [await asyncio.create_subprocess_exec(sys.executable, "-c", "pass") for _ in range(count)]
    for process in running:
        await process.wait()
    return time.perf_counter() - start


async def _ready(place: Place) -> float:
    start = time.perf_counter()
    async with extensions_rig.hosting(place):
        return time.perf_counter() - start


if __name__ == "__main__":
    rig.run(measure)
