"""A `bash` call of a trivial command: from the call in the transcript to its result, without a jail and in one."""

import time
from functools import partial

from benchmarks import floors, rig
from benchmarks.rig import Row, World
from zotd.wire.events import ToolCallEvent, ToolResultEvent

ROUNDS = 40

TARGET_MS = 5.0

CHECKPOINT_TARGET_MS = 30.0
"""With a checkpoint of the files in 20,000, of which one has changed."""

JAIL_TARGET_MS = 8.0
"""With bubblewrap."""


async def measure() -> list[Row]:
    """Three rows."""
    async with rig.world(checkpoints=False) as alone, rig.world() as recorded:

        async def call(mode: str, world: World = alone) -> float:
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
            ROUNDS,
            {
                "bare": bare,
                "recorded": partial(call, "yolo", recorded),
                **{mode: partial(call, mode) for mode in ("yolo", "workspace")},
            },
        )
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    target = f"<= {TARGET_MS:g} ms"
    more, recording = ms["workspace"] - ms["yolo"], ms["recorded"] - ms["yolo"]
    most, longest = f"<= {JAIL_TARGET_MS:g} ms", f"<= {CHECKPOINT_TARGET_MS:g} ms"
    is_short = recording <= CHECKPOINT_TARGET_MS
    return [
        Row("`bash` call of `true`", ms["yolo"], "ms", ms["bare"], "spawn and wait", target, ms["yolo"] <= TARGET_MS),
        Row("what a checkpoint adds to it", recording, "ms", ms["yolo"], "without it", longest, is_short),
        Row("what the mode `workspace` adds to it", more, "ms", ms["yolo"], "without it", most, more <= JAIL_TARGET_MS),
    ]


if __name__ == "__main__":
    rig.run(measure)
