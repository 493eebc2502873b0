"""What the daemon adds to a delta's way: 100 sessions with 50 deltas a second each, 20 clients that follow 5 each.

Each delta holds the time it was sent. The floor is the same load, read from the model without a daemon.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks import floors, rig
from benchmarks.model import sent_ns
from benchmarks.rig import Row, World
from zotd.client.client import Client
from zotd.client.session import Session
from zotd.wire.events import TextDelta

SESSIONS = 100

CLIENTS = 20

RATE = 50
"""Deltas a second and session."""

SECONDS = 6

PLAN = f"paced/{RATE}/{RATE * SECONDS}/4"

SKIPPED = RATE
"""Deltas of each session's first second, in which the others are still starting."""

TARGET_MS = 20.0

ROUNDS = 2

_SENT = re.compile(rb'"text":"(\d+) ')


async def measure() -> list[Row]:
    """Two rows: half of all deltas, and 99 of 100."""
    direct: list[float] = []
    through: list[float] = []
    async with rig.world() as world, _sessions(world) as sessions:
        await _round(sessions)
        before = rig.cpu_s(world.daemon)
        for _ in range(ROUNDS):
            direct += await _directly(world)
            through += await _round(sessions)
        busy = (rig.cpu_s(world.daemon) - before) / (ROUNDS * SECONDS) * 100
    return [
        _row("half of all deltas", 50, through, direct, note=f"the daemon used {busy:.0f} % of a core"),
        _row("99 % of all deltas", 99, through, direct),
    ]


def _row(name: str, percent: float, through: list[float], direct: list[float], *, note: str = "") -> Row:
    floor, whole = rig.percentile(direct, percent), rig.percentile(through, percent)
    target = f"<= {TARGET_MS:g} ms" if percent == 99 else ""
    met = whole - floor <= TARGET_MS if target else None
    name = f"{SESSIONS} sessions x {RATE} deltas/s, {CLIENTS} clients: added to {name}"
    return Row(name, whole - floor, "ms", floor, "direct HTTP read, taken off", target, met, note=note)


@asynccontextmanager
async def _sessions(world: World) -> AsyncIterator[list[Session]]:
    async with AsyncExitStack() as stack:
        clients: list[Client] = [await stack.enter_async_context(rig.connect(world.place)) for _ in range(CLIENTS)]
        yield [await world.session("anthropic", PLAN, client=clients[number % CLIENTS]) for number in range(SESSIONS)]


async def _round(sessions: Sequence[Session]) -> list[float]:
    """Milliseconds of each delta."""
    found: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        for session in sessions:
            tasks.create_task(_follow(session, found))
    return found


async def _follow(session: Session, found: list[float]) -> None:
    taken: list[float] = []
    async for batch in session.prompt_batches("go"):
        now = time.monotonic_ns()
        for event in batch:
            if type(event) is TextDelta:
                taken.extend((now - sent) / 1e6 for sent in sent_ns(event.delta))
    found.extend(taken[SKIPPED:])


class _Reader(asyncio.Protocol):
    """A request to the model, and when its deltas come."""

    def __init__(self, path: str, ended: asyncio.Event) -> None:
        self._path = path
        self._ended = ended
        self.taken: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(floors.REQUEST % (self._path.encode(), 2, b"{}"))

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self.taken.extend((now - int(sent)) / 1e6 for sent in _SENT.findall(data))
        if data.endswith(floors.END):
            self._transport.close()
            self._ended.set()


async def _directly(world: World) -> list[float]:
    """Milliseconds of each delta, without a daemon."""
    found: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        for _ in range(SESSIONS):
            tasks.create_task(_read(world.model, found))
    return found


async def _read(model_url: str, found: list[float]) -> None:
    host, port = floors.address(model_url)
    ended = asyncio.Event()
    path = f"/{PLAN}{floors.PATHS['anthropic']}"
    _, reader = await asyncio.get_running_loop().create_connection(lambda: _Reader(path, ended), host, port)
    await ended.wait()
    found.extend(reader.taken[SKIPPED:])


if __name__ == "__main__":
    rig.run(measure)
