"""Prompt to first delta, without the model's own time; for stored sessions also in waits for this disk."""

import time
from contextlib import ExitStack, closing

from benchmarks import floors, rig
from benchmarks.rig import Row, World
from zotd.client.session import Session
from zotd.wire.events import TextDelta

ROUNDS = 60

TARGET_MS = 2.0

PLAN = "deltas/1"


async def measure() -> list[Row]:
    """Rows for each vendor."""
    rows: list[Row] = []
    async with rig.world() as world:
        for vendor in rig.VENDORS:
            rows += await _vendor(world, vendor)
    return rows


async def first_delta(session: Session) -> float:
    """Seconds from the prompt to the first text; returns after the run."""
    start = time.perf_counter()
    first = 0.0
    async for batch in session.prompt_batches("go"):
        if not first and any(type(event) is TextDelta for event in batch):
            first = time.perf_counter() - start
    return first


async def _vendor(world: World, vendor: str) -> list[Row]:
    ephemeral = await world.session(vendor, PLAN)
    stored = await world.session(vendor, PLAN, stored=True)
    with ExitStack() as stack:
        http = stack.enter_context(closing(floors.Http(world.model, vendor, PLAN)))
        disk = stack.enter_context(closing(floors.Disk(world.place.home)))

        async def model() -> float:
            return http.read()[0]

        async def sync() -> float:
            return disk.sync()

        async def commit() -> float:
            return disk.commit()

        taken = await rig.in_turns(
            ROUNDS,
            {
                "model": model,
                "ephemeral": lambda: first_delta(ephemeral),
                "sync": sync,
                "commit": commit,
                "stored": lambda: first_delta(stored),
            },
        )
    least = rig.percentile(taken["ephemeral"], 10) - rig.percentile(taken["model"], 10)
    return _rows(vendor, {name: rig.median(samples) * 1000 for name, samples in taken.items()}, least=least * 1000)


def _rows(vendor: str, ms: dict[str, float], *, least: float) -> list[Row]:
    name = f"prompt to first delta, {vendor}"
    own, more = ms["ephemeral"] - ms["model"], ms["stored"] - ms["ephemeral"]
    return [
        Row(
            name,
            own,
            "ms",
            ms["model"],
            "direct HTTP read, taken off",
            f"<= {TARGET_MS:g} ms",
            own <= TARGET_MS,
            note=f"the fastest tenth {least:.2g}",
        ),
        rig.stored_row(f"{name}: more when it is stored", more, ms["commit"], ms["sync"]),
    ]


if __name__ == "__main__":
    rig.run(measure)
