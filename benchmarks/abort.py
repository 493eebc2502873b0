"""Abort in the middle of a stream to `turn_end`, also while another client reads nothing; and while `bash` runs."""

import time
from contextlib import closing

from benchmarks import floors, model, rig
from benchmarks.rig import Row, World
from zotd.client.session import Session
from zotd.wire.events import Done, TextDelta, ToolProgress, TurnEnd

ROUNDS = 20

TARGET_MS = 0.6

STALLED_TARGET_MS = 5.0

PLAN = "paced/500/100000/16"

BEFORE = 20
"""Deltas to see before the abort."""

FILL = "paced/500/110/8192"
"""0.9 MB: more than the kernel and the daemon's transport hold for a client that reads nothing (0.7 MB), so that it is
stalled; less than what it is cut for (2 MiB more)."""


async def measure() -> list[Row]:
    """Three rows."""
    async with rig.world() as world, rig.bare(world.place) as bare:
        session = await world.session("anthropic", PLAN)
        commanding = await world.session("anthropic", "once/wait")
        with closing(floors.Echo(bare)) as line:

            async def trip() -> float:
                return line.trip()

            async def ended() -> float:
                return floors.ended("bash", "-c", model.WAIT)

            taken = await rig.in_turns(
                ROUNDS,
                {
                    "echo": trip,
                    "alone": lambda: _abort(session),
                    "stalled": lambda: _beside_stalled(world, session),
                    "ended": ended,
                    "bash": lambda: _abort_bash(commanding),
                },
            )
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    echo = ms["echo"], "echo over a Unix socket"
    end = ms["ended"], "SIGTERM to the same command and wait"
    return [
        _row("abort in mid-stream to `turn_end`", ms["alone"], echo, TARGET_MS),
        _row("the same, another client reads nothing", ms["stalled"], echo, STALLED_TARGET_MS),
        _row("abort while `bash` runs to `done`", ms["bash"], end, TARGET_MS),
    ]


def _row(measure: str, ms: float, floor: tuple[float, str], target_ms: float) -> Row:
    return Row(measure, ms, "ms", *floor, f"<= {target_ms:g} ms", ms <= target_ms)


async def _abort(session: Session) -> float:
    """Seconds from the abort to `turn_end`."""
    seen = 0
    start = taken = 0.0
    async for batch in session.prompt_batches("go"):
        seen += sum(type(event) is TextDelta for event in batch)
        if start and not taken and any(type(event) is TurnEnd for event in batch):
            taken = time.perf_counter() - start
        elif not start and seen >= BEFORE:
            start = time.perf_counter()
            await session.abort()
    return taken


async def _abort_bash(session: Session) -> float:
    """Seconds from the abort of a command that has begun to the end of the run."""
    start = taken = 0.0
    async for batch in session.prompt_batches("go"):
        if start and any(type(event) is Done for event in batch):
            taken = time.perf_counter() - start
        elif not start and any(type(event) is ToolProgress for event in batch):
            start = time.perf_counter()
            await session.abort()
    return taken


async def _beside_stalled(world: World, session: Session) -> float:
    """The same, while another follower does not read and its queue is full."""
    filling = await world.session("anthropic", FILL)
    with closing(floors.connected(rig.socket_of(world.place))) as silent:
        for number, followed in enumerate((session, filling)):
            silent.sendall(b'{"type":"attach","session":"%b","id":%d}\n' % (followed.id.encode(), number))
            silent.recv(floors.RECEIVE_BYTES)
        await rig.finish(filling)
        taken = await _abort(session)
    await filling.close()
    return taken


if __name__ == "__main__":
    rig.run(measure)
