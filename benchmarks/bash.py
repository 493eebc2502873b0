"""A `bash` call of a trivial command: from the call in the transcript to its result, without a jail and in one."""

import time
from functools import partial

from benchmarks import floors, rig
from benchmarks.rig import Row
from zotd.wire.events import ToolCallEvent, ToolResultEvent

ROUNDS = 40

TARGET_MS = 5.0

JAIL_TARGET_MS = 8.0
"""With bubblewrap."""


async def measure() -> list[Row]:
    """Two rows."""
    async with rig.world() as world:

        async def call(mode: str) -> float:
            # The last of two calls: for the first one, a session makes its jail.
            session = await world.session("anthropic", "call/bash/2", mode=mode)
            seen: dict[type[object], float] = {}
            async for batch in session.prompt_batches("go"):
                seen.update((type(event), time.perf_counter()) for event in batch)
            await session.close()
            return seen[ToolResultEvent] - seen[ToolCallEvent]

        async def bare() -> float:
            return floors.spawn("bash", "-c", "true")

        taken = await rig.in_turns(
            ROUNDS, {"bare": bare, **{mode: partial(call, mode) for mode in ("yolo", "workspace")}}
        )
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    target = f"<= {TARGET_MS:g} ms"
    more = ms["workspace"] - ms["yolo"]
    most = f"<= {JAIL_TARGET_MS:g} ms"
    return [
        Row("`bash` call of `true`", ms["yolo"], "ms", ms["bare"], "spawn and wait", target, ms["yolo"] <= TARGET_MS),
        Row("what the mode `workspace` adds to it", more, "ms", ms["yolo"], "without it", most, more <= JAIL_TARGET_MS),
    ]


if __name__ == "__main__":
    rig.run(measure)
