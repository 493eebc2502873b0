"""Text deltas in a second: one session, one client, from the prompt to `done`."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from benchmarks import floors, rig
from benchmarks.model import WORD
from benchmarks.rig import Row, World
from zotd.client.session import Session
from zotd.client.typed import BlockingClient, BlockingSession
from zotd.wire.events import AnyEvent, TextDelta

COUNT = 20_000

ROUNDS = 7

TARGET = 150_000

PLAN = f"deltas/{COUNT}"

MESSAGE = b'"type":"assistant_message"'
"""It holds the whole text once more."""

DONE = b'"type":"done"'


async def measure() -> list[Row]:
    """Rows for each vendor."""
    rows: list[Row] = []
    async with rig.world() as world, rig.bare(world.place) as bare:
        for vendor in rig.VENDORS:
            rows += await _vendor(world, vendor, bare)
    return rows


async def _vendor(world: World, vendor: str, bare: str) -> list[Row]:
    session = await world.session(vendor, PLAN)
    raw = await world.session(vendor, PLAN)
    host, port = floors.address(world.model)
    fetch = f"{host} {port} /{PLAN}{floors.PATHS[vendor]}\n".encode()
    prompt = b'{"type":"prompt","session":"%b","message":"go"}\n' % raw.id.encode()
    cpu: list[float] = []

    async def asyncio_client() -> float:
        before = rig.cpu_s(world.daemon)
        rate = await _asyncio_client(session)
        cpu.append(rig.cpu_s(world.daemon) - before)
        return rate

    with ExitStack() as stack:
        relay = stack.enter_context(closing(floors.connected(bare)))
        reader = stack.enter_context(closing(_attached(world, raw.id)))
        blocking = stack.enter_context(_blocking_session(world, vendor))
        taken = await rig.in_turns(
            ROUNDS,
            {
                "bare": lambda: asyncio.to_thread(_raw, relay, fetch),
                "raw": lambda: asyncio.to_thread(_raw, reader, prompt),
                "asyncio": asyncio_client,
                "blocking": lambda: asyncio.to_thread(_blocking_client, blocking),
            },
        )
    rates = {name: rig.median(samples) for name, samples in taken.items()}
    return _rows(vendor, rates, us=rig.median(cpu) / COUNT * 1e6)


@contextmanager
def _blocking_session(world: World, vendor: str) -> Iterator[BlockingSession]:
    path = rig.socket_of(world.place)
    with BlockingClient.connect(path=path, env=world.place.env, autostart=False) as client:
        yield client.create(
            str(world.place.cwd),
            provider=vendor,
            base_url=rig.base_url(world.model, vendor, PLAN),
            api_key="none",
            ephemeral=True,
        )


def _attached(world: World, session: str) -> socket.socket:
    sock = floors.connected(rig.socket_of(world.place))
    sock.sendall(b'{"type":"attach","session":"%b","id":1}\n' % session.encode())
    _read_until(sock, b'"replay_complete"')
    return sock


def _rows(vendor: str, rates: dict[str, float], *, us: float) -> list[Row]:
    names = {
        "raw": "counted in the bytes",
        "asyncio": "counted by `zotd.client` (asyncio)",
        "blocking": "counted by `zotd.client` (blocking)",
    }
    return [
        Row(
            f"deltas, {vendor}, {said}",
            rates[name],
            "/s",
            rates["bare"],
            "bare loop, counted in the bytes",
            f">= {TARGET:,}/s",
            rates[name] >= TARGET,
            note=f"{us:.1f} us of the daemon's CPU each" if name == "asyncio" else "",
        )
        for name, said in names.items()
    ]


async def _asyncio_client(session: Session) -> float:
    start = time.perf_counter()
    seen = 0
    async for batch in session.prompt_batches("go"):
        seen += sum(_words(event) for event in batch)
    return _rate(seen, start)


def _blocking_client(session: BlockingSession) -> float:
    start = time.perf_counter()
    seen = sum(map(_words, session.prompt("go")))
    return _rate(seen, start)


def _words(event: AnyEvent) -> int:
    return len(event.delta) // len(WORD) if type(event) is TextDelta else 0


def _raw(sock: socket.socket, request: bytes) -> float:
    start = time.perf_counter()
    sock.sendall(request)
    live, _, _ = _read_until(sock, DONE).partition(MESSAGE)
    return _rate(live.count(WORD.encode()), start)


def _rate(seen: int, start: float) -> float:
    if seen != COUNT:
        raise RuntimeError(f"{seen} deltas came of {COUNT}")
    return seen / (time.perf_counter() - start)


def _read_until(sock: socket.socket, end: bytes) -> bytes:
    chunks = [sock.recv(floors.RECEIVE_BYTES)]
    while end not in (b"".join(chunks[-2:])):
        chunks.append(sock.recv(floors.RECEIVE_BYTES))
    return b"".join(chunks)


if __name__ == "__main__":
    rig.run(measure)
