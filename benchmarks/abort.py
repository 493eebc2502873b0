"""Abort in the middle of a stream to `turn_end`; also while another client of the session reads nothing."""

import time
from contextlib import closing

from benchmarks import floors, rig
from benchmarks.rig import Row, World
from zotd.client.session import Session
from zotd.wire.events import TextDelta, TurnEnd

ROUNDS = 20

TARGET_MS = 5.0

RATE = 500

SMALL = f"paced/{RATE}/100000/16"

LARGE = f"paced/{RATE}/100000/8192"
"""4 MB in a second: a client that reads nothing is stalled after a third of one, long before it is cut."""

BEFORE = {SMALL: 20, LARGE: 300}
"""Deltas to see before the abort; with the large ones a stalled client's buffers are full by then."""


async def measure() -> list[Row]:
    """Two rows."""
    async with rig.world() as world, rig.bare(world.place) as bare:
        session = await world.session("anthropic", SMALL)
        with closing(floors.Echo(bare)) as echo:

            async def trip() -> float:
                return echo.trip()

            taken = await rig.in_turns(
                ROUNDS, {"echo": trip, "alone": lambda: _abort(session, SMALL), "stalled": lambda: _stalled(world)}
            )
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    names = {
        "alone": "abort in mid-stream to `turn_end`",
        "stalled": "the same, another client reads nothing",
    }
    target = f"<= {TARGET_MS:g} ms"
    return [
        Row(said, ms[name], "ms", ms["echo"], "echo over a Unix socket", target, ms[name] <= TARGET_MS)
        for name, said in names.items()
    ]


async def _abort(session: Session, plan: str) -> float:
    seen = 0
    start = 0.0
    taken = 0.0
    async for batch in session.prompt_batches("go"):
        seen += sum(type(event) is TextDelta for event in batch)
        if start and not taken and any(type(event) is TurnEnd for event in batch):
            taken = time.perf_counter() - start
        elif not start and seen >= BEFORE[plan]:
            start = time.perf_counter()
            await session.abort()
    return taken


async def _stalled(world: World) -> float:
    session = await world.session("anthropic", LARGE)
    with closing(floors.connected(rig.socket_of(world.place))) as silent:
        silent.sendall(b'{"type":"attach","session":"%b"}\n' % session.id.encode())
        silent.recv(floors.RECEIVE_BYTES)  # the answer: it is attached, and reads nothing from now on
        taken = await _abort(session, LARGE)
    await session.close()
    return taken


if __name__ == "__main__":
    rig.run(measure)
