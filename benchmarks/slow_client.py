"""16 clients of one session with 2,000 events a second, and one of them reads nothing: who pays for it?"""

import asyncio
import select
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass

import psutil

from benchmarks import floors, rig
from benchmarks.model import sent_ns
from benchmarks.rig import Row, World
from zotd.client.session import Session
from zotd.wire.events import AnyEvent, Done, TextDelta

CLIENTS = 16

RATE = 2000

SECONDS = 12
"""Of each of the two rounds. A client that reads nothing is disconnected after 5 s."""

LOOK_S = 0.05
"""How often memory, and whether the client was cut, is looked at."""

CUT_TARGET_S = 5.0

LATENCY_TARGET_MS = 20.0

MEMORY_TARGET_MIB = 4.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one reply, whose deltas each of the clients should get."""

    ms: list[float]
    """How long each delta took to each client that reads."""
    lost: int
    """Deltas that one of them did not get."""
    mib: float
    """By how much the daemon had grown at most."""
    cut_s: float
    """When the client that reads nothing was cut; 0 when it was not."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one that reads nothing costs the others."""

    alone: Outcome
    """When all read."""
    beside: Outcome
    """When one does not."""

    @property
    def grown_mib(self) -> float:
        """How much more memory the daemon took."""
        return self.beside.mib - self.alone.mib

    @property
    def is_met(self) -> bool:
        """All four targets."""
        is_cut = 0 < self.beside.cut_s <= CUT_TARGET_S
        is_fast = rig.percentile(self.beside.ms, 99) <= LATENCY_TARGET_MS
        return is_cut and is_fast and self.beside.lost == 0 and self.grown_mib <= MEMORY_TARGET_MIB


async def compare() -> Comparison:
    """Two rounds, each in a daemon of its own."""
    return Comparison(await watch(SECONDS, silent=False), await watch(SECONDS, silent=True))


async def watch(seconds: int, *, silent: bool) -> Outcome:
    """One round of so many seconds; with `silent` one of the clients reads nothing."""
    async with rig.world() as world:
        return await _round(world, RATE * seconds, silent=silent)


async def measure() -> list[Row]:
    """Rows about the one that reads nothing, and about the others."""
    comparison = await compare()
    alone, beside = comparison.alone, comparison.beside
    grown = comparison.grown_mib
    floor, p99 = rig.percentile(alone.ms, 99), rig.percentile(beside.ms, 99)
    name = f"{CLIENTS} clients, {RATE:,} events/s, one reads nothing"
    return [
        Row(
            f"{name}: it is cut, after it stopped reading",
            beside.cut_s,
            "s",
            None,
            "",
            f"<= {CUT_TARGET_S:g} s",
            0 < beside.cut_s <= CUT_TARGET_S,
        ),
        Row(f"{name}: lost by the others", beside.lost, "events", None, "", "0", beside.lost == 0),
        Row(
            f"{name}: 99 % of the others' events come within",
            p99,
            "ms",
            floor,
            "all 16 read",
            f"<= {LATENCY_TARGET_MS:g} ms",
            p99 <= LATENCY_TARGET_MS,
        ),
        Row(
            f"{name}: more memory than when all read",
            grown,
            "MiB",
            None,
            "",
            f"<= {MEMORY_TARGET_MIB:g} MiB",
            grown <= MEMORY_TARGET_MIB,
        ),
    ]


async def _round(world: World, count: int, *, silent: bool) -> Outcome:
    await rig.finish(await world.session("anthropic", f"deltas/{count}"))  # buffers and caches, which stay
    session = await world.session("anthropic", f"paced/{RATE}/{count}/4")
    async with AsyncExitStack() as stack:
        stalled = stack.enter_context(closing(floors.connected(rig.socket_of(world.place))))
        if silent:
            stalled.sendall(b'{"type":"attach","session":"%b"}\n' % session.id.encode())
            stalled.recv(floors.RECEIVE_BYTES)
        others = CLIENTS - 1 - silent
        readers = [await stack.enter_async_context(_reader(world, session.id)) for _ in range(others)]
        received, mib, cut_s = await _read_all(world, session, readers, stalled)
    return Outcome([ms for one in received for ms in one], sum(count - len(one) for one in received), mib, cut_s)


async def _read_all(
    world: World, session: Session, readers: list[Session], stalled: socket.socket
) -> tuple[list[list[float]], float, float]:
    """The milliseconds of each reader's deltas, and what `_watch` has seen."""
    received: list[list[float]] = []
    over = threading.Event()
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(asyncio.to_thread(_watch, world.daemon, stalled, over))
        async with asyncio.TaskGroup() as reading:
            for reader in readers:
                reading.create_task(_follow(reader, received))
            received.append(await _prompt(session))
        over.set()
    return received, *watching.result()


@asynccontextmanager
async def _reader(world: World, session_id: str) -> AsyncIterator[Session]:
    """The session, followed by a client of its own."""
    async with rig.connect(world.place) as client:
        await client.attach(session_id)
        yield client.session(session_id)


async def _prompt(session: Session) -> list[float]:
    taken: list[float] = []
    async for batch in session.prompt_batches("go"):
        _take(batch, taken)
    return taken


async def _follow(session: Session, received: list[list[float]]) -> None:
    taken: list[float] = []
    received.append(taken)
    async for batch in session.batches():
        _take(batch, taken)
        if any(type(event) is Done for event in batch):
            return


def _take(batch: list[AnyEvent], taken: list[float]) -> None:
    """Add the milliseconds of each delta; several may have become one event on their way."""
    now = time.monotonic_ns()
    for event in batch:
        if type(event) is TextDelta:
            taken.extend((now - sent) / 1e6 for sent in sent_ns(event.delta))


def _watch(process: psutil.Process, stalled: socket.socket, over: threading.Event) -> tuple[float, float]:
    """By how many MiB the daemon grows at most, and after how many seconds it closes the stalled connection."""
    start = time.monotonic()
    first = most = rig.rss_mib(process)
    cut_s = 0.0
    hung_up = select.poll()
    hung_up.register(stalled, 0)  # POLLHUP is always reported
    while not over.wait(LOOK_S):
        most = max(most, rig.rss_mib(process))
        if not cut_s and hung_up.poll(0):
            cut_s = time.monotonic() - start
    return most - first, cut_s


if __name__ == "__main__":
    rig.run(measure)
