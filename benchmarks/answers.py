"""How long the daemon takes to answer: a ping, and a prompt until it says `started`."""

import time
from contextlib import ExitStack, closing

from benchmarks import floors, rig
from benchmarks.rig import Probe, Row, World
from zotd.client.session import Session
from zotd.wire import api
from zotd.wire.events import Done

ROUNDS = 30

BLOCK = 50
"""Pings one after the other in a turn: what comes right after another program's turn has cold caches."""

PING_TARGET_MS = 0.12

STARTED_TARGET_MS = 1.0

ECHO = "echo over a Unix socket"


async def measure() -> list[Row]:
    """A row for the ping, two for the prompt."""
    async with rig.world() as world, rig.bare(world.place) as bare:
        plain = await world.session("anthropic", "deltas/1")
        stored = await world.session("anthropic", "deltas/1", stored=True)
        with ExitStack() as stack:
            echo = stack.enter_context(closing(floors.Echo(bare)))
            disk = stack.enter_context(closing(floors.Disk(world.place.home)))

            async def sync() -> float:
                return disk.sync()

            async def commit() -> float:
                return disk.commit()

            taken = await rig.in_turns(
                ROUNDS,
                {
                    "echo": _echoes(echo),
                    "ping": lambda: _pings(world),
                    "plain": lambda: _started(world, plain),
                    "sync": sync,
                    "commit": commit,
                    "stored": lambda: _started(world, stored),
                },
            )
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    said = "prompt to the answer `started`"
    return [
        _row("ping of `zotd.client`", ms["ping"], ms["echo"], PING_TARGET_MS),
        _row(said, ms["plain"], ms["echo"], STARTED_TARGET_MS),
        rig.stored_row(f"{said}: more when it is stored", ms["stored"] - ms["plain"], ms["commit"], ms["sync"]),
    ]


def _echoes(echo: floors.Echo) -> Probe:
    async def echoes() -> float:
        return rig.median([echo.trip() for _ in range(BLOCK)])

    return echoes


async def _pings(world: World) -> float:
    samples: list[float] = []
    for _ in range(BLOCK):
        start = time.perf_counter()
        await world.client.ask(api.Nothing(), api.Pong, command="ping")
        samples.append(time.perf_counter() - start)
    return rig.median(samples)


async def _started(world: World, session: Session) -> float:
    """Seconds from a prompt to its answer; returns after the run."""
    with world.client.connection.feed(session.id) as feed:
        start = time.perf_counter()
        await world.client.ask(api.Prompt(session=session.id, message="go"), api.Started)
        taken = time.perf_counter() - start
        while not any(type(event) is Done for event in await feed.batch()):
            pass
    return taken


def _row(measure: str, ms: float, echo_ms: float, target_ms: float) -> Row:
    return Row(measure, ms, "ms", echo_ms, ECHO, f"<= {target_ms:g} ms", ms <= target_ms)


if __name__ == "__main__":
    rig.run(measure)
