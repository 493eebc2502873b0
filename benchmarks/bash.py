"""A `bash` call of a trivial command: from the call in the transcript to its result."""

import time

from benchmarks import floors, rig
from benchmarks.rig import Row
from zotd.wire.events import ToolCallEvent, ToolResultEvent

ROUNDS = 40

TARGET_MS = 5.0


async def measure() -> list[Row]:
    """One row."""
    async with rig.world() as world:

        async def call() -> float:
            session = await world.session("anthropic", "call/bash/1")
            seen: dict[type[object], float] = {}
            async for batch in session.prompt_batches("go"):
                seen.update((type(event), time.perf_counter()) for event in batch)
            await session.close()
            return seen[ToolResultEvent] - seen[ToolCallEvent]

        async def bare() -> float:
            return floors.spawn("bash", "-c", "true")

        taken = await rig.in_turns(ROUNDS, {"bare": bare, "call": call})
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    target = f"<= {TARGET_MS:g} ms"
    return [
        Row("`bash` call of `true`", ms["call"], "ms", ms["bare"], "spawn and wait", target, ms["call"] <= TARGET_MS)
    ]


if __name__ == "__main__":
    rig.run(measure)
