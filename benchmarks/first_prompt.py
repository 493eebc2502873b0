"""The first prompt after the daemon's start, and what the import of a vendor's SDK does to other clients.

A client attaches, which makes the daemon load the SDK in a thread. Another one pings it meanwhile, without a pause that
would let the thread have the interpreter to itself. Two seconds later comes the first prompt.
"""

import time
from collections.abc import Sequence
from contextlib import closing

from benchmarks import floors, rig
from benchmarks.first_delta import PLAN, first_delta
from benchmarks.rig import Row
from zotd.client.client import Client
from zotd.wire.api import Nothing

ATTACHED_S = 2.0
"""From the attachment to the prompt: as fast as people type."""

ROUNDS = 5

TARGET_MS = 50.0

DELAY_MS = 20.0


async def measure() -> list[Row]:
    """Two rows for each vendor."""
    return [row for vendor in rig.VENDORS for row in await _vendor(vendor)]


async def _vendor(vendor: str) -> list[Row]:
    firsts: list[float] = []
    floor: list[float] = []
    pings: list[list[float]] = []
    for _ in range(ROUNDS):
        async with rig.world() as world, rig.connect(world.place) as other:
            with closing(floors.Http(world.model, vendor, PLAN)) as http:
                floor += [http.read()[0] * 1000 for _ in range(ROUNDS)]
            session = await world.session(vendor, PLAN, stored=True)
            pings.append(await _pings(other))
            firsts.append(await first_delta(session) * 1000)
    return _rows(vendor, rig.median(firsts), rig.median(floor), pings, worst=max(firsts))


async def _pings(client: Client) -> list[float]:
    """Milliseconds of each ping."""
    found: list[float] = []
    end = time.perf_counter() + ATTACHED_S
    while (start := time.perf_counter()) < end:
        await client.call(Nothing(), command="ping")
        found.append((time.perf_counter() - start) * 1000)
    return found


def _rows(vendor: str, first: float, floor: float, pings: Sequence[Sequence[float]], *, worst: float) -> list[Row]:
    slowest = [max(taken) for taken in pings]
    usual = rig.median([ms for taken in pings for ms in taken])
    return [
        Row(
            f"first prompt after the daemon's start, attached for {ATTACHED_S:g} s, to first delta, {vendor}",
            first - floor,
            "ms",
            floor,
            "direct HTTP read, taken off",
            f"<= {TARGET_MS:g} ms",
            first - floor <= TARGET_MS,
            note=f"the slowest of {ROUNDS}: {worst:.3g}",
        ),
        Row(
            f"ping of another client meanwhile, the slowest of each {ATTACHED_S:g} s, {vendor}",
            rig.median(slowest),
            "ms",
            usual,
            "half of these pings",
            f"<= {DELAY_MS:g} ms",
            rig.median(slowest) <= DELAY_MS,
            note=f"at worst {max(slowest):.3g}",
        ),
    ]


if __name__ == "__main__":
    rig.run(measure)
